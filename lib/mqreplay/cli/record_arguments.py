"""The command `mqreplay record`: its options, and what they start."""

from __future__ import annotations

import argparse
import os
import sys

from mqreplay.errors import InputError

DESCRIPTION = (
    "Polls a running cluster and writes a recording, which nightly can also read while it grows. It sends only "
    "requests that read. Run it again with the same --out to continue the recording."
)


def add(record: argparse.ArgumentParser) -> None:
    """Add the options to the command."""
    record.description = DESCRIPTION
    record.add_argument(
        "name_servers", nargs="?", metavar="NAMESRV", help="HOST:PORT, several as 'HOST:PORT;HOST:PORT'"
    )
    record.add_argument(
        "--store",
        action="append",
        default=[],
        metavar="DIR",
        help="in place of NAMESRV, on a broker's host: copy the broker's files from its storePathRootDir; repeatable",
    )
    record.add_argument(
        "--broker",
        action="append",
        default=[],
        metavar="NAME-ID",
        help="the broker of a --store, such as broker-a-0, or the path of its broker.conf; one for each --store",
    )
    record.add_argument("--out", required=True, metavar="RECORDING", help="folder of the recording")
    record.add_argument("--every", metavar="TIME", help="interval of the most frequent polls (5s; with --store 1s)")
    record.add_argument("--for", dest="lasting", metavar="TIME", help="how long, such as 8h; by default until stopped")
    record.add_argument("--group", action="append", default=[], metavar="GLOB", help="only these groups; repeatable")
    record.add_argument("--topic", action="append", default=[], metavar="GLOB", help="only these topics; repeatable")
    record.add_argument("--cluster", metavar="NAME", help="the cluster, where the name servers know several")
    record.add_argument(
        "--physical-memory",
        metavar="SIZE",
        help="of a broker's machine, in bytes or as 64g: no request reveals it, and slave suggestions depend on it",
    )
    record.add_argument(
        "--requests-per-second", type=float, default=50.0, metavar="N", help="the most for each server (%(default)g)"
    )
    record.add_argument(
        "--proxy",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a proxy's remoting port, if it is not 8080; repeatable. Members behind a proxy are unknown to brokers",
    )
    record.add_argument("--max-disk", metavar="SIZE", help="stop when the recording has this size, such as 20g")
    record.add_argument(
        "--acl-file",
        metavar="FILE",
        help="accessKey and secretKey; or set MQREPLAY_ACCESS_KEY and MQREPLAY_SECRET_KEY",
    )
    record.add_argument("--tls", action="store_true", help="connect with TLS; the certificate is checked")
    record.add_argument("--tls-ca", metavar="FILE", help="certificates that sign the servers' own (PEM); implies --tls")
    record.add_argument("--tls-cert", metavar="FILE", help="this client's certificate (PEM); implies --tls")
    record.add_argument("--tls-key", metavar="FILE", help="its private key (PEM)")
    record.add_argument("--tls-no-verify", action="store_true", help="take any certificate; implies --tls")


def run(args: argparse.Namespace) -> None:
    """Record until it is stopped. Exactly one of NAMESRV and --store says what."""
    from mqreplay.cli.progress import Progress
    from mqreplay.record.network.options import record_options
    from mqreplay.record.network.record_command import record
    from mqreplay.record.remoting.credentials import load_credentials
    from mqreplay.record.remoting.tls import client_context

    if args.store:
        return _run_store(args)
    if args.name_servers is None:
        raise InputError("nothing to record; give a name server as HOST:PORT, or --store DIR on a broker's host")
    if args.broker:
        raise InputError("--broker belongs to --store")
    options = record_options(
        args.name_servers,
        every=args.every or "5s",
        lasting=args.lasting,
        groups=args.group,
        topics=args.topic,
        cluster=args.cluster,
        physical_memory=args.physical_memory,
        requests_per_second=args.requests_per_second,
        max_disk=args.max_disk,
        proxies=args.proxy,
    )
    credentials = load_credentials(args.acl_file, os.environ)
    has_tls = args.tls or args.tls_ca or args.tls_cert or args.tls_key or args.tls_no_verify
    tls = client_context(args.tls_ca, args.tls_cert, args.tls_key, not args.tls_no_verify) if has_tls else None
    with Progress(sys.stderr) as progress:
        record(options, args.out, credentials, tls, progress)


def _run_store(args: argparse.Namespace) -> None:
    from mqreplay.cli.progress import Progress
    from mqreplay.record.network.options import bytes_of, seconds_of
    from mqreplay.record.store import record_store

    if args.name_servers is not None:
        raise InputError("give either NAMESRV or --store; two recorders can write two recordings")
    every_s = seconds_of(args.every or "1s", "--every")
    if not 0.1 <= every_s <= 60:
        raise InputError(f"--every {args.every} is not 100ms to 60s")
    for_s = None if args.lasting is None else seconds_of(args.lasting, "--for")
    max_bytes = None if args.max_disk is None else bytes_of(args.max_disk, "--max-disk")
    with Progress(sys.stderr) as progress:
        record_store(args.store, args.out, every_s, for_s, progress, args.broker, max_bytes)
