"""Real name servers and brokers of RocketMQ as processes of this machine."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.artefacts import class_path
from cluster.ports import PortBlocks
from cluster.processes import end, kill, start_java, wait_for_port

CLUSTER = "mint"
NAME_SERVER = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER_CLASS = "org.apache.rocketmq.broker.BrokerStartup"
# Without it 5.x finds the broker's configuration of logs first.
NAME_SERVER_LOGS = ["-Drmq.logback.configurationFile=rmq.namesrv.logback.xml"]
# What keeps a broker small and its tests quick; a test may set more.
BROKER = {
    "brokerClusterName": CLUSTER,
    "flushDiskType": "ASYNC_FLUSH",
    "brokerIP1": "127.0.0.1",
    "brokerIP2": "127.0.0.1",
    "mappedFileSizeCommitLog": "16777216",
    "mappedFileSizeConsumeQueue": "120000",
    "maxHashSlotNum": "20000",
    "maxIndexNum": "80000",
    "autoCreateTopicEnable": "false",
    "slaveReadEnable": "true",
    "diskMaxUsedSpaceRatio": "99",
}
# 4.9 does not start without a configuration of its logs; 5.x has its own.
LOGBACK = """<configuration>
<appender name="file" class="ch.qos.logback.core.FileAppender"><file>${{user.home}}/{name}.log</file>
<encoder><pattern>%d %p %c - %m%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="file"/></root>
</configuration>
"""


@dataclass
class Server:
    """A name server or a broker: how it is started, and its process if it runs."""

    name: str
    port: int
    home: Path
    main_class: str
    heap_mb: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_name_server(self) -> bool:
        """True for a name server, False for a broker."""
        return self.main_class == NAME_SERVER

    @property
    def address(self) -> str:
        """The host and port it listens on."""
        return f"127.0.0.1:{self.port}"


class Cluster:
    """A cluster of one version. `options` are Java's, for every server."""

    def __init__(self, folder: Path, version: str, *, options: list[str] | None = None) -> None:
        self.version = version
        self.folder = folder
        self.class_path = class_path(version)
        self.servers: dict[str, Server] = {}
        self._options = options or []
        self._ports = PortBlocks()

    @property
    def name_servers(self) -> str:
        """The addresses of all name servers, as RocketMQ's clients take them."""
        return ";".join(server.address for server in self.servers.values() if server.is_name_server)

    def add_name_server(self) -> Server:
        """Define a name server. Define all name servers before the brokers."""
        name = f"namesrv-{len(self.servers) + 1}"
        server = self._server(name, self._ports.take(), NAME_SERVER, 64)
        self._configure(server, {"listenPort": str(server.port)})
        return server

    def add_broker(self, broker_name: str, broker_id: int = 0, **properties: str) -> Server:
        """Define a broker; id 0 is the master. `properties` are added to its configuration."""
        first = self._ports.take()
        server = self._server(f"{broker_name}-{broker_id}", first + 2, BROKER_CLASS, 192)
        store = server.home / "store"
        self._configure(
            server,
            BROKER
            | {
                "brokerName": broker_name,
                "brokerId": str(broker_id),
                "brokerRole": "SLAVE" if broker_id else "ASYNC_MASTER",
                "listenPort": str(server.port),
                "haListenPort": str(server.port + 1),
                "namesrvAddr": self.name_servers,
                "storePathRootDir": str(store),
                "storePathCommitLog": str(store / "commitlog"),
            }
            | properties,
        )
        return server

    def configure(self, name: str, **properties: str) -> None:
        """Change the configuration of a server from its next start on."""
        with (self.servers[name].home / "server.conf").open("a") as conf:  # the last line of a property counts
            conf.writelines(f"{key}={value}\n" for key, value in properties.items())

    def start(self, *names: str) -> None:
        """Start the servers of these names, or all that do not run, and wait until they accept connections.

        Name servers start first, so that the first registration of each broker succeeds.
        """
        chosen = [self.servers[name] for name in names] or list(self.servers.values())
        for first in (True, False):
            servers = [server for server in chosen if server.is_name_server is first]
            for server in servers:
                self._start(server)
            for server in servers:
                assert server.process is not None
                wait_for_port(server.process, server.port, server.home)

    def kill(self, name: str) -> None:
        """Kill a server as `kill -9` does. `start` starts it again on the same store."""
        process = self.servers[name].process
        assert process is not None
        kill(process)

    def stop_in_order(self, name: str) -> None:
        """Stop a server as a service manager does: it unregisters and writes its files. `start` starts it again."""
        process = self.servers[name].process
        assert process is not None
        end([process])

    def pause(self, name: str) -> None:
        """Stop a server's process: its connections stay open, and it answers nothing."""
        self._signal(name, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Continue a paused server."""
        self._signal(name, signal.SIGCONT)

    def stop(self) -> None:
        """End all servers at once. Their stores are of no further use."""
        for server in self.servers.values():
            if server.process is not None:
                kill(server.process)
        self._ports.close()

    def _start(self, server: Server) -> None:
        if server.process is not None and server.process.poll() is None:
            return
        server.process = start_java(
            server.home,
            self.class_path,
            [server.main_class, "-c", str(server.home / "server.conf")],
            heap_mb=server.heap_mb,
            options=[*(NAME_SERVER_LOGS if server.is_name_server else []), *self._options],
        )

    def _signal(self, name: str, number: int) -> None:
        process = self.servers[name].process
        assert process is not None
        process.send_signal(number)

    def _server(self, name: str, port: int, main_class: str, heap_mb: int) -> Server:
        server = Server(name, port, self.folder / name, main_class, heap_mb)
        (server.home / "conf").mkdir(parents=True)
        self.servers[name] = server
        return server

    def _configure(self, server: Server, properties: dict[str, str]) -> None:
        if self.version.startswith("4."):
            kind = "namesrv" if server.is_name_server else "broker"
            (server.home / "conf" / f"logback_{kind}.xml").write_text(LOGBACK.format(name=kind))
        else:
            properties = {"bindAddress": "127.0.0.1", "timerWheelEnable": "false"} | properties
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        (server.home / "server.conf").write_text("".join(lines))


@contextmanager
def running_cluster(
    folder: Path, version: str, brokers: dict[str, int], *, name_servers: int = 1, options: list[str] | None = None
) -> Iterator[Cluster]:
    """Yield a cluster that runs. `brokers` has the number of slaves of each master."""
    cluster = Cluster(folder, version, options=options)
    try:
        for _ in range(name_servers):
            cluster.add_name_server()
        for broker_name, slaves in brokers.items():
            for broker_id in range(slaves + 1):
                cluster.add_broker(broker_name, broker_id)
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
