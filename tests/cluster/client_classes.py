"""RocketMQ's client classes in a Java process, by py4j: strategies, and what differs between 4.9 and 5.x."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway

SOURCES = Path(__file__).with_name("java")
REBALANCE = "org.apache.rocketmq.client.consumer.rebalance"
STRATEGIES = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONFIG",
    "MACHINE_ROOM",
    "MACHINE_ROOM_NEARBY",
    "CONSISTENT_HASH",
)
CLASSES = {
    "AVG": "AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": "AllocateMessageQueueAveragelyByCircle",
    "CONFIG": "AllocateMessageQueueByConfig",
    "MACHINE_ROOM": "AllocateMessageQueueByMachineRoom",
    "CONSISTENT_HASH": "AllocateMessageQueueConsistentHash",
}


class ClientClasses:
    """The classes of one Java process."""

    def __init__(self, gateway: JavaGateway, version: str) -> None:
        self._gateway = gateway
        self._jvm = gateway.jvm
        self._old = version.startswith("4.")
        self._compiled: dict[str, Any] = {}

    def new(self, name: str, *arguments: Any) -> Any:
        """Return an object of the class with this full name."""
        found = self._jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found(*arguments)

    def compiled(self, name: str, *arguments: Any) -> Any:
        """Return an object of a class in java/, compiled by Spark's Janino: a JRE has no compiler."""
        if name not in self._compiled:
            compiler = self._jvm.org.codehaus.janino.SimpleCompiler()
            compiler.cook(f"{name}.java", self._jvm.java.io.StringReader((SOURCES / f"{name}.java").read_text()))
            self._compiled[name] = compiler.getClassLoader().loadClass(name)
        values = self._gateway.new_array(self._jvm.Object, len(arguments))
        for index, argument in enumerate(arguments):
            values[index] = argument
        return self._compiled[name].getConstructors()[0].newInstance(values)

    def message_model(self, name: str) -> Any:
        """Return CLUSTERING or BROADCASTING."""
        package = self._jvm.org.apache.rocketmq
        protocol = package.common.protocol if self._old else package.remoting.protocol
        return protocol.heartbeat.MessageModel.valueOf(name)

    def credentials_hook(self, access_key: str, secret_key: str) -> Any:
        """Return the hook that signs each request."""
        common = self._jvm.org.apache.rocketmq.acl.common
        return common.AclClientRPCHook(common.SessionCredentials(access_key, secret_key))

    def strategy(self, name: str, queues: list[tuple[str, str, int]] | None, rooms: list[str] | None) -> Any:
        """Return an allocation strategy. CONFIG takes `queues` (topic, broker name, queue id), MACHINE_ROOM `rooms`."""
        if name == "MACHINE_ROOM_NEARBY":
            inner = self.new(f"{REBALANCE}.{CLASSES['AVG']}")
            return self.new(f"{REBALANCE}.AllocateMachineRoomNearby", inner, self.compiled("Rooms"))
        strategy = self.new(f"{REBALANCE}.{CLASSES[name]}")
        if name == "CONFIG":
            listed = self._jvm.java.util.ArrayList()
            for queue in queues or []:
                listed.add(self.new("org.apache.rocketmq.common.message.MessageQueue", *queue))
            strategy.setMessageQueueList(listed)
        elif name == "MACHINE_ROOM":
            names = self._jvm.java.util.HashSet()
            for room in rooms or []:
                names.add(room)
            strategy.setConsumeridcs(names)
        return strategy
