"""A cluster that is none: servers on loopback that answer a recorder's requests as name servers and brokers do.

For load (1,000 clients) and for tests of what a real cluster does not do on demand. It is no RocketMQ: what it answers
is what its attributes say.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

SUCCESS, SYSTEM_ERROR, NO_PERMISSION, TOPIC_NOT_EXIST, NOT_ONLINE = 0, 1, 16, 17, 206
PROXY = -1  # instead of a broker id
JAVA = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@41ee8830"


def frame(opaque: int, code: int, body: bytes, fields: dict[str, str], remark: str | None) -> bytes:
    """An answer on the wire."""
    header = {"code": code, "flag": 1, "language": "JAVA", "opaque": opaque, "version": 407, "extFields": fields}
    data = json.dumps(header | ({} if remark is None else {"remark": remark})).encode()
    return struct.pack(">II", 4 + len(data) + len(body), len(data)) + data + body


@dataclass
class Answered:
    """What a server answers."""

    body: bytes = b""
    code: int = SUCCESS
    fields: dict[str, str] = field(default_factory=dict)
    remark: str | None = None


class Server:
    """One address. ``is_silent``: it takes requests and answers none. ``asked`` counts requests by code."""

    def __init__(self, cluster: SimulatedCluster, name: str | None, broker_id: int) -> None:
        self.cluster, self.name, self.broker_id = cluster, name, broker_id
        self.port = 0
        self.is_silent = False
        self.denied: set[int] = set()
        self.asked: Counter[int] = Counter()
        self.requests: list[tuple[float, int, dict[str, str]]] = []
        self._server: asyncio.Server | None = None
        self._peers: set[asyncio.StreamWriter] = set()

    @property
    def addr(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen, at the same port as before."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def kill(self) -> None:
        """Refuse connections, and close those that are open."""
        assert self._server is not None
        self._server.close()
        for peer in list(self._peers):
            peer.transport.abort()
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peers.add(writer)
        try:
            while True:
                (length,) = struct.unpack(">I", await reader.readexactly(4))
                data = await reader.readexactly(length)
                header = json.loads(data[4 : 4 + (struct.unpack(">I", data[:4])[0] & 0xFFFFFF)])
                fields = header.get("extFields") or {}
                self.asked[header["code"]] += 1
                self.requests.append((time.monotonic(), header["code"], fields))
                if not self.is_silent:
                    given = self._answer(header["code"], fields)
                    writer.write(frame(header["opaque"], given.code, given.body, given.fields, given.remark))
                    await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._peers.discard(writer)
            with suppress(OSError):
                writer.close()

    def _answer(self, code: int, fields: dict[str, str]) -> Answered:
        if code in self.denied:
            return Answered(code=NO_PERMISSION, remark="no permission for reader")
        if code in self.cluster.given:
            return self.cluster.given[code]
        if self.name is None:
            return self.cluster.of_name_server(code, fields)
        return self.cluster.of_broker(self, code, fields)


class SimulatedCluster:
    """Brokers with their slaves, name servers, groups with a topic each, and clients."""

    def __init__(
        self,
        masters: int = 2,
        groups: int = 2,
        clients: int = 4,
        queues: int = 4,
        slaves: int = 0,
        name_servers: int = 2,
        moving: float = 1.0,
    ) -> None:
        """``clients`` are spread over the groups; the offsets of the share ``moving`` of the groups grow."""
        self.name = "simulated"
        self.queues, self.moving = queues, moving
        self.name_servers = [Server(self, None, 0) for _ in range(name_servers)]
        self.brokers = [Server(self, f"b-{n}", i) for n in range(masters) for i in range(slaves + 1)]
        self.proxy = Server(self, "proxy", PROXY)  # the caller starts it
        self.proxied: dict[str, list[str]] = {}  # members behind the proxy
        self.left: set[Server] = set()  # brokers that no name server lists
        self.members: dict[str, list[str]] = {f"g-{n}": [] for n in range(groups)}
        for n in range(clients):
            self.members[f"g-{n % groups}"].append(f"10.0.{n // 250}.{n % 250}@{1000 + n}")
        self.dropped: dict[tuple[str, int], bool] = {}
        self.deaf: set[str] = set()  # clients that do not answer 307
        self.given: dict[int, Answered] = {}  # answers in place of the usual ones, by request code
        self._began = time.monotonic()
        self._tables: tuple[int, bytes] = (-1, b"")

    async def start(self) -> None:
        """Start all servers."""
        for server in [*self.name_servers, *self.brokers]:
            await server.start()

    async def stop(self) -> None:
        """Stop all servers."""
        for server in [*self.name_servers, *self.brokers]:
            await server.kill()

    @property
    def addrs(self) -> str:
        """The name servers, as the command line has them."""
        return ";".join(server.addr for server in self.name_servers)

    def broker(self, name: str, broker_id: int = 0) -> Server:
        """A broker."""
        return next(each for each in self.brokers if (each.name, each.broker_id) == (name, broker_id))

    def topic_of(self, group: str) -> str:
        """The topic that a group consumes."""
        return f"t-{group[2:]}"

    def offset(self, group: str) -> int:
        """The offset of each queue of the group's topic."""
        moves = int(group[2:]) < self.moving * len(self.members)
        return 1000 + (int(time.monotonic() - self._began) if moves else 0)

    def of_name_server(self, code: int, fields: dict[str, str]) -> Answered:
        """What a name server answers."""
        listed = [each for each in self.brokers if each not in self.left]
        if code == 106:
            table = ",".join(
                f'"{name}":{{"brokerAddrs":{{{self._addrs(listed, name)}}},"cluster":"{self.name}"}}'
                for name in sorted({str(each.name) for each in listed})
            )
            return Answered(f'{{"brokerAddrTable":{{{table}}},"clusterAddrTable":{{}}}}'.encode())
        if code == 319:
            return Answered(b"listenPort=9876\nscanNotActiveBrokerInterval=5000\n")
        if code == 206:
            return Answered(_json({"topicList": self._topics()}))
        if code == 105 and fields["topic"] in self._topics():
            names = sorted({str(each.name) for each in listed})
            queues = 1 if fields["topic"].startswith("%") else self.queues
            datas = [{"brokerAddrs": json.loads(f"{{{self._addrs(listed, n, True)}}}"), "brokerName": n} for n in names]
            counts = {"perm": 6, "readQueueNums": queues, "topicSysFlag": 0, "writeQueueNums": queues}
            return Answered(_json({"brokerDatas": datas, "queueDatas": [{"brokerName": n} | counts for n in names]}))
        if code == 105:
            return Answered(code=TOPIC_NOT_EXIST, remark=f"No topic route info: {fields['topic']}")
        return Answered(code=3, remark=f"request code {code} is not supported")

    def of_broker(self, broker: Server, code: int, fields: dict[str, str]) -> Answered:
        """What a broker answers."""
        group, topic = fields.get("consumerGroup", ""), fields.get("topic", "")
        members = self.members.get(group, [])
        if broker.broker_id == PROXY:
            known = self.proxied.get(group, []) if code == 203 else []
            return self._connections(group, known)
        if code == 43:
            return Answered(self._offsets())
        if code == 28:
            return Answered(
                _json(
                    {
                        "table": {
                            "brokerVersionDesc": "V5_3_3",
                            "commitLogMaxOffset": "5",
                            "bootTimestamp": "1795472299727",
                        }
                    }
                )
            )
        if code == 26:
            ratio = "accessMessageInMemoryMaxRatio=40"
            return Answered(
                f"brokerName={broker.name}\nbrokerId={broker.broker_id}\n{ratio}\naclSecretKey=x\n".encode()
            )
        if code == 21:
            configs = {t: {"readQueueNums": n, "writeQueueNums": n, "perm": 6} for t, n in self._counts().items()}
            return Answered(_json({"dataVersion": {"counter": int(time.monotonic())}, "topicConfigTable": configs}))
        if code == 201:
            return Answered(_json({"subscriptionGroupTable": {name: {"groupName": name} for name in self.members}}))
        if code == 907:
            return Answered(
                _json({"haConnectionInfo": [], "inSyncSlaveNums": 0, "master": True, "masterCommitLogMaxOffset": 5})
            )
        if code == 402:
            return Answered(b'{"messageRequestModeMap":{"t-0":{"g-0":{"mode":"PULL","popShareQueueNum":0}}}}')
        if code == 45:
            return Answered(b'{"offsetTable":{}}')
        if code == 38:
            remark = f"no consumer for this group, {group}"
            return Answered(_json({"consumerIdList": members})) if members else Answered(code=1, remark=remark)
        if code == 203:
            return self._connections(group, members)
        if code == 307:
            return self._running(group, fields["clientId"])
        if code in (30, 31):
            return Answered(fields={"offset": str(self.offset(self._group_of(topic)) if code == 30 else 0)})
        if code == 202:
            entries = ",".join(
                f'{{"brokerName":"{broker.name}","queueId":{q},"topic":"{topic}"}}:'
                f'{{"lastUpdateTimestamp":0,"maxOffset":{self.offset(self._group_of(topic))},"minOffset":0}}'
                for q in range(self._counts()[topic])
            )
            return Answered(f'{{"offsetTable":{{{entries}}}}}'.encode())
        if code == 208:
            return Answered(b'{"consumeTps":1.5,"offsetTable":{}}')
        return Answered(code=3, remark=f"request code {code} is not supported")

    def _connections(self, group: str, members: list[str]) -> Answered:
        if not members:
            return Answered(code=NOT_ONLINE, remark=f"the consumer group[{group}] not online")
        rows = [{"clientAddr": "127.0.0.1:1", "clientId": m, "language": "JAVA", "version": 479} for m in members]
        topics = {
            t: {"subString": "*", "topic": t, "expressionType": "TAG"}
            for t in (self.topic_of(group), f"%RETRY%{group}")
        }
        return Answered(
            _json({"connectionSet": rows, "subscriptionTable": topics, "messageModel": "CLUSTERING"}),
        )

    def _running(self, group: str, client_id: str) -> Answered:
        members = sorted(self.members.get(group, []))
        if client_id not in members or client_id in self.deaf:
            return Answered(code=SYSTEM_ERROR, remark=f"The Consumer <{group}> <{client_id}> not online")
        place, offset, now = members.index(client_id), self.offset(group), int(time.time() * 1000)
        queues = [(b, q) for b in sorted({str(x.name) for x in self.brokers}) for q in range(self.queues)]
        held = ",".join(
            f'{{"brokerName":"{b}","queueId":{q},"topic":"{self.topic_of(group)}"}}:{{"cachedMsgCount":0,'
            f'"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":{offset},"droped":false,'
            f'"lastConsumeTimestamp":{now},"lastLockTimestamp":{now},"lastPullTimestamp":{now},"locked":true,'
            f'"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}}'
            for b, q in queues[place :: len(members)]
        )
        settings: dict[str, Any] = {f"setting{n}": "value" for n in range(50)}
        settings |= {"allocateMessageQueueStrategy": JAVA, "messageModel": "CLUSTERING", "consumerGroup": group}
        topic = _json([{"subString": "*", "subVersion": now, "topic": self.topic_of(group)}]).decode()
        body = (
            f'{{"mqTable":{{{held}}},"properties":{json.dumps(settings)},"statusTable":{{}},"subscriptionSet":{topic}}}'
        )
        return Answered(body.encode(), remark="not set any response code")

    def _offsets(self) -> bytes:
        second = int(time.monotonic() - self._began)
        if self._tables[0] != second:
            entries = []
            for group in self.members:
                queues = ",".join(f"{q}:{self.offset(group)}" for q in range(self.queues))
                entries += [f'"{self.topic_of(group)}@{group}":{{{queues}}}', f'"%RETRY%{group}@{group}":{{0:0}}']
            text = f'{{"dataVersion":{{"counter":{second}}},"offsetTable":{{{",".join(entries)}}}}}'
            self._tables = second, text.encode()
        return self._tables[1]

    def _counts(self) -> dict[str, int]:
        counts = {self.topic_of(group): self.queues for group in self.members}
        return counts | {f"%RETRY%{group}": 1 for group in self.members}

    def _topics(self) -> list[str]:
        return list(self._counts())

    def _group_of(self, topic: str) -> str:
        return topic.removeprefix("%RETRY%") if topic.startswith("%") else f"g-{topic[2:]}"

    @staticmethod
    def _addrs(listed: list[Server], name: str, quoted: bool = False) -> str:
        mark = '"' if quoted else ""
        return ",".join(f'{mark}{each.broker_id}{mark}:"{each.addr}"' for each in listed if each.name == name)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
