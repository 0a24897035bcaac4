"""Consumers, producers and the administrator's client of RocketMQ in Java processes that a test can kill."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from cluster.client_classes import ClientClasses
from cluster.clusters import Cluster
from cluster.processes import end, kill, start_java

JARS = Path(pyspark.__file__).parent / "jars"
PATIENCE_S = 60
LARGE_BYTES = 4_000_000  # maxMessageSize is 4 MiB
Queue = tuple[str, str, int]  # topic, broker name, queue id


@dataclass(frozen=True)
class HeldChange:
    """From this epoch ms on the consumer holds these queues."""

    ts: int
    queues: frozenset[Queue]


class Consumer:
    """A push consumer that runs, and what its own classes tell about it."""

    def __init__(self, java: Any, listeners: Any, held: Any, group: str) -> None:
        self.java = java
        self.group = group
        self.client_id = str(java.buildMQClientId())
        self._listeners = listeners
        self._held = held

    def held_queues(self) -> frozenset[Queue]:
        """Return the queues that it holds now, those of its retry topic too."""
        changes = self.changes()
        return changes[-1].queues if changes else frozenset()

    def changes(self) -> list[HeldChange]:
        """Return each change of the queues held."""
        return [_change(str(text)) for text in self._held.changes()]

    def keys(self) -> list[str]:
        """Return the keys of the messages consumed."""
        return [str(key) for key in self._listeners.consumedKeys()]

    def delay(self, delay_ms: int) -> None:
        """Have the listener sleep before each message."""
        self._listeners.setDelayMs(delay_ms)

    def refuse(self, prefix: str, times: int) -> None:
        """Have the listener refuse messages whose key begins with `prefix` until they were sent back `times` times."""
        self._listeners.refuse(prefix, times)

    def fail(self, failing: bool) -> None:
        """Have the listener refuse messages."""
        self._listeners.setFailing(failing)

    def shutdown(self) -> None:
        """Stop it in order: offsets are committed, and the brokers are notified."""
        self._held.end()
        self.java.shutdown()


class ClientProcess:
    """A Java process with RocketMQ's classes and any number of clients."""

    def __init__(self, cluster: Cluster, name: str, *, options: list[str], credentials: tuple[str, str] | None) -> None:
        self.name = name
        self._name_servers = cluster.name_servers
        self._cluster = cluster
        self._producer: Any = None
        self._large: Any = None
        self._starting = Lock()
        self._admin: Any = None
        jars = [str(path) for pattern in ("py4j-*", "janino-*", "commons-compiler-*") for path in JARS.glob(pattern)]
        self.process = start_java(
            cluster.folder / name,
            [*jars, *cluster.class_path],
            ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"],
            heap_mb=128,
            # 4.9 and 5.x: where rocketmq_client.log comes from.
            options=[
                "-Drocketmq.client.logUseSlf4j=false",
                "-Drmq.logback.configurationFile=rmq.client.logback.xml",
                *options,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        port, token = (self.process.stdout.readline().decode().strip() for _ in range(2))
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token, enable_memory_management=False)
        )
        self.classes = ClientClasses(self._gateway, cluster.version)
        self._hook = [self.classes.credentials_hook(*credentials)] if credentials else []

    def consumer(
        self,
        group: str,
        subscriptions: dict[str, str],
        *,
        client_name: str = "127.0.0.1",
        strategy: str = "AVG",
        queues: list[Queue] | None = None,
        rooms: list[str] | None = None,
        model: str = "CLUSTERING",
        orderly: bool = False,
        start_from: str = "CONSUME_FROM_FIRST_OFFSET",
        settings: dict[str, Any] | None = None,
    ) -> Consumer:
        """Start a consumer. Its client id begins with `client_name`; `subscriptions` has an expression by topic.

        `settings` are further ones by the names of their setters, without "set".
        """
        allocation = self.classes.strategy(strategy, queues, rooms)
        java = self.classes.new(
            "org.apache.rocketmq.client.consumer.DefaultMQPushConsumer", group, *(self._hook or [None]), allocation
        )
        self._set_up(java, client_name)
        java.setMessageModel(self.classes.message_model(model))
        java.setConsumeFromWhere(
            self._gateway.jvm.org.apache.rocketmq.common.consumer.ConsumeFromWhere.valueOf(start_from)
        )
        java.setConsumeThreadMin(2)
        java.setConsumeThreadMax(2)
        for name, value in (settings or {}).items():
            getattr(java, f"set{name}")(value)
        for topic, expression in subscriptions.items():
            java.subscribe(topic, expression)
        listeners = self.classes.compiled("Listeners")
        java.registerMessageListener(listeners.orderly() if orderly else listeners.concurrent())
        java.start()
        held = self.classes.compiled("HeldQueues", java)
        held.start()
        return Consumer(java, listeners, held, group)

    def send(self, topic: str, key: str, *, tag: str = "A", queue: Queue | None = None) -> str:
        """Send a message of 100 bytes, to a certain queue or to the next one. Return the status of the send."""
        producer = self._started_producer()
        message = self.classes.new("org.apache.rocketmq.common.message.Message", topic, tag, key, b"x" * 100)
        if queue is None:
            result = producer.send(message)
        else:
            chosen = self.classes.new("org.apache.rocketmq.common.message.MessageQueue", *queue)
            result = producer.send(message, chosen)
        return str(result.getSendStatus())

    def send_large(self, topic: str) -> str:
        """Send a message of LARGE_BYTES. Return the status of the send."""
        if self._large is None:  # its bytes stay in Java
            self._large = self.classes.compiled("LargeMessages", LARGE_BYTES)
        return str(self._large.send(self._started_producer(), topic))

    def configure_topic(self, topic: str, queues: dict[str, int], *, perm: int = 6) -> None:
        """Have each master keep the topic with this number of read and write queues and this permission."""
        for broker_name, count in queues.items():
            config = self.classes.new("org.apache.rocketmq.common.TopicConfig", topic)
            config.setReadQueueNums(count)
            config.setWriteQueueNums(count)
            config.setPerm(perm)
            address = self._cluster.servers[f"{broker_name}-0"].address
            self._administrator().createAndUpdateTopicConfig(address, config)

    def create_topic(self, topic: str, queues: dict[str, int]) -> None:
        """Create a topic with this number of read and write queues on each master."""
        self.configure_topic(topic, queues)
        wait_until(lambda: self._routed_brokers(topic) == set(queues), f"the name servers know the queues of {topic}")

    def reset_offsets(self, topic: str, group: str, ts: int) -> None:
        """Reset the group's offsets of a topic to the messages stored at this epoch ms, as `mqadmin` does."""
        self._administrator().resetOffsetByTimestamp(topic, group, ts, True)

    def committed_offsets(self, group: str, topic: str) -> dict[tuple[str, int], int]:
        """Return the offsets that the brokers hold, by broker name and queue id."""
        table = self._administrator().examineConsumeStats(group, topic).getOffsetTable()
        return {
            (str(entry.getKey().getBrokerName()), int(entry.getKey().getQueueId())): int(
                entry.getValue().getConsumerOffset()
            )
            for entry in table.entrySet()
        }

    def routed_ids(self, topic: str, broker_name: str) -> set[int]:
        """Return the ids of a broker name that a name server lists for the topic."""
        with suppress(Py4JJavaError):  # it has no route of it yet
            for data in self._administrator().examineTopicRouteInfo(topic).getBrokerDatas():
                if str(data.getBrokerName()) == broker_name:
                    return {int(broker_id) for broker_id in data.getBrokerAddrs().keySet()}
        return set()

    def log_end(self, address: str) -> int | None:
        """Return the end of a broker's commit log, in bytes; None if it does not answer."""
        try:
            return int(self._administrator().fetchBrokerRuntimeStats(address).getTable().get("commitLogMaxOffset"))
        except Py4JJavaError:
            return None

    def create_user(self, address: str, name: str, password: str, kind: str) -> None:
        """Create a user of a 5.x broker that authenticates."""
        self._administrator().createUser(address, name, password, kind)

    def create_acl(self, address: str, subject: str, resources: list[str], actions: list[str]) -> None:
        """Allow a user of a 5.x broker some actions on some resources, from anywhere."""
        lists = [self._list(resources), self._list(actions), self._list([])]
        self._administrator().createAcl(address, subject, *lists, "Allow")

    def kill(self) -> None:
        """Kill the process as `kill -9` does, with all its clients."""
        kill(self.process)

    def close(self) -> None:
        """End the process."""
        self._gateway.close()
        end([self.process])

    def _started_producer(self) -> Any:
        with self._starting:  # several threads may send
            if self._producer is None:
                name = "org.apache.rocketmq.client.producer.DefaultMQProducer"
                producer = self.classes.new(name, "test-producers", *self._hook)
                self._set_up(producer, "127.0.0.1")
                producer.setCompressMsgBodyOverHowmuch(LARGE_BYTES + 1)  # a message takes its size in the log
                producer.start()
                self._producer = producer
            return self._producer

    def _list(self, values: list[str]) -> Any:
        listed = self._gateway.jvm.java.util.ArrayList()
        for value in values:
            listed.add(value)
        return listed

    def _routed_brokers(self, topic: str) -> set[str]:
        try:
            route = self._administrator().examineTopicRouteInfo(topic)
        except Py4JJavaError:  # a name server has no route of it yet
            return set()
        return {str(data.getBrokerName()) for data in route.getQueueDatas()}

    def _administrator(self) -> Any:
        if self._admin is None:
            admin = self.classes.new("org.apache.rocketmq.tools.admin.DefaultMQAdminExt", *self._hook)
            admin.setAdminExtGroup("test-administrators")
            self._set_up(admin, "127.0.0.1")
            admin.start()
            self._admin = admin
        return self._admin

    def _set_up(self, client: Any, client_name: str) -> None:
        client.setNamesrvAddr(self._name_servers)
        client.setClientIP(client_name)
        client.setInstanceName(f"{self.process.pid}#{time.monotonic_ns()}")


@contextmanager
def client_processes(
    cluster: Cluster, *names: str, options: list[str] | None = None, credentials: tuple[str, str] | None = None
) -> Iterator[list[ClientProcess]]:
    """Yield Java processes for clients of the cluster."""
    processes: list[ClientProcess] = []
    try:
        for name in names:
            processes.append(ClientProcess(cluster, name, options=options or [], credentials=credentials))
        yield processes
    except Py4JJavaError as error:
        raise AssertionError(str(error)) from None  # its text comes from the Java process, which ends here
    finally:
        for process in processes:
            process.close()


def wait_until(holds: Callable[[], bool], what: str, *, patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds. Raise AssertionError if it never does."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {patience_s:.0f} s: {what}"
        time.sleep(0.2)


def _change(text: str) -> HeldChange:
    ts, *names = text.split(" ")
    queues = (name.split("/") for name in names)
    return HeldChange(int(ts), frozenset((topic, broker, int(queue_id)) for topic, broker, queue_id in queues))
