"""The commands that make recordings: `record`, `import` and `bundle`."""

from __future__ import annotations

import argparse
import os
import sys

from mqreplay.cli.arguments import add_json
from mqreplay.cli.command import Command
from mqreplay.words.errors import InputError


def add_record(record: argparse.ArgumentParser) -> None:
    """Add the options of record."""
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


def run_record(args: argparse.Namespace) -> None:
    """Record until it is stopped. Exactly one of NAMESRV and --store says what."""
    from mqreplay.recorder.network.options import record_options
    from mqreplay.recorder.network.record_command import record
    from mqreplay.recorder.remoting.credentials import client_context, load_credentials
    from mqreplay.terminal.progress import Progress

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
    from mqreplay.recorder.network.options import bytes_of, seconds_of
    from mqreplay.recorder.store import record_store
    from mqreplay.terminal.progress import Progress

    if args.name_servers is not None:
        raise InputError("give either NAMESRV or --store; two recorders can write two recordings")
    every_s = seconds_of(args.every or "1s", "--every")
    if not 0.1 <= every_s <= 60:
        raise InputError(f"--every {args.every} is not 100ms to 60s")
    for_s = None if args.lasting is None else seconds_of(args.lasting, "--for")
    max_bytes = None if args.max_disk is None else bytes_of(args.max_disk, "--max-disk")
    with Progress(sys.stderr) as progress:
        record_store(args.store, args.out, every_s, for_s, progress, args.broker, max_bytes)


def add_import(command: argparse.ArgumentParser) -> None:
    """Add the options of import."""
    command.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a tar or zip archive")
    command.add_argument("--out", required=True, metavar="DIR", help="folder of the recording; new or empty")
    command.add_argument("--broker", metavar="NAME-ID", help="the broker of files whose path names none: broker-a-0")
    command.add_argument("--time-zone", metavar="ZONE", help="the zone of times that name none: +08:00 (UTC)")
    add_json(command, "print what came of them as JSON")


def run_import(args: argparse.Namespace) -> None:
    """Make a recording of files."""
    from mqreplay.importer.import_command import import_evidence

    import_evidence(args.paths, args.out, sys.stdout, args.broker, args.time_zone, args.json)


def add_bundle(command: argparse.ArgumentParser) -> None:
    """Add the options of bundle."""
    command.add_argument("recording", metavar="RECORDING", help="folder of a recording")
    command.add_argument("--out", required=True, metavar="FILE", help="a new file, .tar.xz or .tar.gz, or a new folder")
    command.add_argument("--redact", action="store_true", help="replace names, addresses, tags and keys")
    command.add_argument("--mapping", metavar="FILE", help="new file for the names and their replacements")
    add_json(command, "print what came of it as JSON")


def run_bundle(args: argparse.Namespace) -> None:
    """Write the bundle."""
    from mqreplay.bundle.bundle_command import bundle

    options = {"is_redacted": args.redact, "mapping": args.mapping, "as_json": args.json}
    bundle(args.recording, args.out, sys.stdout, **options)


COMMANDS = (
    Command("record", add_record, run_record),
    Command("import", add_import, run_import),
    Command("bundle", add_bundle, run_bundle),
)
