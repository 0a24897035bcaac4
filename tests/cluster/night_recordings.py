"""Records a made night in each way there is, and makes one recording of all that was kept.

Over the network and of the brokers' files `mqreplay record` records; the packets of the ports of brokers and name
servers are captured by tcpdump; `mqreplay import` puts them together with the logs of clients and servers.
"""

from __future__ import annotations

import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cluster.clients import wait_until
from cluster.clusters import Cluster
from cluster.processes import end
from cluster.recorders import recorder

LISTENS_S = 30
LOGS = ("rocketmq_client.log", "broker.log", "lock.log", "namesrv.log")


def physical_memory() -> str:
    """Return the memory of this machine in bytes, as the brokers see it."""
    return str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@contextmanager
def recorded(cluster: Cluster, kept: Path) -> Iterator[None]:
    """Record the cluster, which runs, until the block ends. Call it inside of `captured`."""
    brokers = [server for server in cluster.servers.values() if not server.is_name_server]
    offsets = [broker.home / "store" / "config" / "consumerOffset.json" for broker in brokers]
    wait_until(lambda: all(path.exists() for path in offsets), "all brokers have written their offsets")
    stores = [word for broker in brokers for word in (f"--store={broker.home / 'store'}", f"--broker={broker.name}")]
    with ExitStack() as running:
        network = [cluster.name_servers, "--every", "5s", "--physical-memory", physical_memory()]
        for name, (first, *rest) in {"network": network, "files": stores}.items():
            running.enter_context(recorder(first, kept / name, *rest))
        yield


@contextmanager
def captured(cluster: Cluster, kept: Path) -> Iterator[None]:
    """Capture the packets of the ports of all servers until the block ends, without those that slaves copy."""
    servers = cluster.servers.values()
    ports = [server.port for server in servers] + [server.port - 2 for server in servers if not server.is_name_server]
    expression = " or ".join(f"port {port}" for port in ports)
    line = ["tcpdump", "-i", "lo", "-Z", "root", "-s", "0", "-w", str(kept / "night.pcap"), expression]
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + LISTENS_S
        while not (kept / "night.pcap").exists():
            assert process.poll() is None, "tcpdump does not run: it needs root"
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)
        yield
    finally:
        time.sleep(1)
        process.send_signal(signal.SIGINT)  # it writes what it has, and ends
        process.wait(LISTENS_S)
        end([process])


def keep_logs(cluster: Cluster, kept: Path) -> None:
    """Copy the logs of clients and servers, each in a folder of its process."""
    for path in sorted(cluster.folder.glob("*/**/*.log")):
        if path.name in LOGS:
            folder = kept / "logs" / path.relative_to(cluster.folder).parts[0]
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path.name)


def put_together(kept: Path, out: Path) -> None:
    """Make the recording `out` and its archive of what was kept, and archive that too: NAME.raw.tar.xz."""
    shutil.rmtree(out, ignore_errors=True)
    import_parts(kept, out, "network", "files", "logs", "night.pcap")
    _pack(out, out.with_name(f"{out.name}.tar.xz"))
    _pack(kept, out.with_name(f"{out.name}.raw.tar.xz"))


def import_parts(kept: Path, out: Path, *names: str) -> None:
    """Make the recording `out` of some of what was kept."""
    parts = [str(kept / name) for name in names]
    subprocess.run([sys.executable, "-m", "mqreplay.cli", "import", *parts, "--out", str(out)], check=True)


def _pack(folder: Path, archive: Path) -> None:
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                tar.add(path, str(path.relative_to(folder)))
