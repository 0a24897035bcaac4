"""What a recorder asks of a cluster, and what it costs.

    python tools/bench/record_load.py --masters 4 --groups 2000 --clients 1000 --seconds 120
    python tools/bench/record_load.py --cluster '10.0.0.1:9876;10.0.0.2:9876' --seconds 600

The first polls a simulated cluster in a process of its own, the second a real one. Both print requests and bytes per
second of each server, the recorder's CPU and memory, and the bytes per hour on disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "lib")]

from simulated_cluster import SimulatedCluster  # noqa: E402


async def serve(args: argparse.Namespace) -> None:
    """Answer until the parent closes stdin; its first line is the name servers."""
    cluster = SimulatedCluster(args.masters, args.groups, args.clients, args.queues, args.slaves, moving=args.moving)
    await cluster.start()
    for server in [*cluster.name_servers, *cluster.brokers]:
        server.requests = _Nothing()
    print(cluster.addrs, flush=True)
    await asyncio.to_thread(sys.stdin.read)


class _Nothing(list):  # type: ignore[type-arg]
    """Keeps no requests."""

    def append(self, _: object) -> None:
        """Forget it."""


async def measure(args: argparse.Namespace, name_servers: str, folder: Path) -> None:
    """Record for a time, and print what it took after a first round."""
    from mqreplay.recorder.network import record_command
    from mqreplay.recorder.network.options import record_options
    from mqreplay.recorder.remoting.connection import Connections, Traffic
    from mqreplay.recorder.remoting.credentials import load_credentials

    made: list[Connections] = []

    class Counted(Connections):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            made.append(self)

    record_command.Connections = Counted  # type: ignore[misc]
    options = record_options(
        name_servers,
        args.every,
        f"{args.warm_up + args.seconds}s",
        requests_per_second=args.requests_per_second,
        physical_memory="64g",
    )
    credentials = load_credentials(args.acl_file, os.environ)
    running = asyncio.create_task(record_command._record(options, folder, credentials, None, print))
    await asyncio.sleep(args.warm_up)
    before = {
        addr: Traffic(t.connections, t.requests, t.answers, 0, 0, t.bytes_sent, t.bytes_received)
        for addr, t in made[0].counters.items()
    }
    cpu, disk, began = _cpu(), _bytes(folder), time.monotonic()
    await asyncio.sleep(args.seconds - 2)
    seconds = time.monotonic() - began
    after = {addr: (t.requests, t.bytes_sent, t.bytes_received) for addr, t in made[0].counters.items()}
    used, grown = _cpu() - cpu, _bytes(folder) - disk
    await running
    print(f"\n{'server':24}{'requests/s':>12}{'sent B/s':>12}{'received B/s':>14}")
    for addr, (requests, sent, received) in sorted(after.items()):
        was = before.get(addr, Traffic())
        rates = (requests - was.requests, sent - was.bytes_sent, received - was.bytes_received)
        print(
            f"{addr:24}"
            + "".join(f"{each / seconds:>{width},.1f}" for each, width in zip(rates, (12, 12, 14), strict=True))
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"\nrecorder: {100 * used / seconds:.1f} % of a core, {memory:.0f} MiB; "
        f"{grown / seconds * 3600 / 1e6:,.1f} MB an hour on disk"
    )
    skipped = [json.loads(line) for path in folder.glob("recorder_events.*") for line in _lines(path)]
    missed = sum(each.get("count", 0) for each in skipped if each["kind"] == "skipped")
    print(f"polls that were not made, first round included: {missed:,}")


def _lines(path: Path) -> list[bytes]:
    import gzip

    return gzip.decompress(path.read_bytes()).splitlines()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", metavar="NAMESRV", help="a real cluster; by default a simulated one")
    parser.add_argument("--masters", type=int, default=4)
    parser.add_argument("--slaves", type=int, default=0, help="of each master")
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--queues", type=int, default=4, help="of each topic on each broker")
    parser.add_argument("--moving", type=float, default=0.5, help="share of the groups whose offsets grow")
    parser.add_argument("--every", default="5s")
    parser.add_argument("--requests-per-second", type=float, default=50.0)
    parser.add_argument("--acl-file")
    parser.add_argument("--warm-up", type=float, default=30.0, help="seconds of the first round, not measured")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args))
        return
    with tempfile.TemporaryDirectory() as folder:
        if args.cluster:
            asyncio.run(measure(args, args.cluster, Path(folder) / "r"))
            return
        command = [sys.executable, *sys.argv, "--serve"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert server.stdin is not None
            asyncio.run(measure(args, server.stdout.readline().strip(), Path(folder) / "r"))
            server.stdin.close()


if __name__ == "__main__":
    main()
