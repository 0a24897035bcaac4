"""A real HDFS on this machine: one NameNode and two DataNodes, each in a process of its own.

Most files are closed in 20 ms, because the second DataNode reports a block before the first acknowledges it. With one
DataNode hdfs-native asks too early, and asks again only after half a second.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster.ports import PortBlocks
from cluster.processes import console, end, start_java, wait_for_port
from storage.artefacts import hdfs_class_path

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
DATA_NODES = ("data-node-1", "data-node-2")
HEAP_MB = 192
READY_S = 60
# Port 0 is any free port: nobody needs the web pages or the DataNode's address in advance.
PROPERTIES = {
    "dfs.replication": "2",
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.datanode.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.permissions.enabled": "false",
    "dfs.namenode.safemode.extension": "0",
    "dfs.namenode.redundancy.considerLoad": "false",  # there are no other DataNodes to choose
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.namenode.heartbeat.recheck-interval": "1000000000",  # a stopped DataNode is not given up
}
LOG4J = """rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c - %m%n
"""


@dataclass
class HdfsServer:
    """A file system that runs. ``uri`` is its root, without a slash at the end."""

    uri: str
    name_node: subprocess.Popen[bytes]
    data_nodes: list[subprocess.Popen[bytes]]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def make_folder(self) -> str:
        """Return the URI of a folder that no other test uses."""
        return f"{self.uri}/folder-{next(self._numbers)}"

    @contextmanager
    def stopped(self, *processes: subprocess.Popen[bytes]) -> Iterator[None]:
        """Stop servers' processes during the block: their connections stay open, and they answer nothing."""
        for process in processes:
            os.kill(process.pid, signal.SIGSTOP)
            # Each thread stops when it notices the signal: one that answers requests may do so later than the first.
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process.pid, signal.SIGCONT)


@contextmanager
def running_hdfs_server(home: Path) -> Iterator[HdfsServer]:
    """A file system that ends with the block. It keeps all below ``home``."""
    ports = PortBlocks()
    port = ports.take()
    uri, conf, processes = f"hdfs://127.0.0.1:{port}", home / "conf", list[subprocess.Popen[bytes]]()
    conf.mkdir(parents=True)
    _write(conf / "core-site.xml", {"fs.defaultFS": uri, "hadoop.tmp.dir": str(home / "files")})
    _write(conf / "hdfs-site.xml", PROPERTIES)
    (conf / "log4j2.properties").write_text(LOG4J)
    class_path = [str(conf), *hdfs_class_path()]
    try:
        for_format = start_java(home / "format", class_path, [NAME_NODE, "-format", "-nonInteractive"], heap_mb=HEAP_MB)
        processes.append(for_format)
        assert for_format.wait(READY_S) == 0, console(home / "format")
        processes.append(start_java(home / "name-node", class_path, [NAME_NODE], heap_mb=HEAP_MB))
        for name in DATA_NODES:
            command = [DATA_NODE, f"-Ddfs.datanode.data.dir={home / name / 'blocks'}"]
            processes.append(start_java(home / name, class_path, command, heap_mb=HEAP_MB))
        wait_for_port(processes[1], port, home / "name-node")
        server = HdfsServer(uri, processes[1], processes[2:])
        _wait_until_writable(server, home)
        yield server
    finally:
        end(processes)
        ports.close()


def _wait_until_writable(server: HdfsServer, home: Path) -> None:
    """Return once a file can be written: the NameNode has left safe mode and knows the DataNode's storage."""
    from hdfs_native import Client, WriteOptions

    client, deadline = Client(server.uri), time.monotonic() + READY_S
    for number in itertools.count():
        try:
            with client.create(f"/ready-{number}", WriteOptions(create_parent=True)) as stream:
                stream.write(b"ready")
            return
        except (OSError, RuntimeError):
            if time.monotonic() > deadline:
                raise AssertionError("".join(console(home / name) for name in ("name-node", *DATA_NODES))) from None
            time.sleep(0.2)


def _write(path: Path, properties: dict[str, str]) -> None:
    entries = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    path.write_text(f"<configuration>{''.join(entries)}</configuration>\n")
