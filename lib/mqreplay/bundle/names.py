"""The names of a recording, and their replacements.

A first pass over all files collects the names, then `Names.number` gives each a replacement, and a second pass writes.
RocketMQ sorts client ids and queues as text before it shares them, so replacements sort as the names do
(AllocateMessageQueueStrategy, RebalanceImpl#rebalanceByTopic).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from mqreplay.bundle.replacements import WORDS, client_id_parts, new_addresses, numbered, stays_in_client_id
from mqreplay.core.java import string_hash, utf16_key
from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from mqreplay.core.system_names import PROXY_GROUP, is_system_group, is_system_topic

# Groups that RocketMQ's own clients use, beside those of system_names.
_KNOWN_GROUPS: Final = frozenset({PROXY_GROUP, "DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "CLIENT_INNER_PRODUCER"})
_KNOWN_TOPICS: Final = frozenset({"DefaultHeartBeatSyncerTopic"})
_OF_BROKER: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
_OF_CLUSTER: Final = "rmq_sys_REVIVE_LOG_"
_BROADCAST: Final = "broadcast"  # behind the group of a broadcasting proxy (BroadcastOffsetManager)
_REPLY: Final = "_REPLY_TOPIC"
_SYSTEM_PREFIX: Final = re.compile(r"rmq_sys_|RMQ_SYS_")
# Topics that brokers create, without a name of the cluster in them.
_SYSTEM_TOPICS: Final = frozenset(
    {
        *("rmq_sys_wheel_timer", "rmq_sys_TRANSACTION_OP_HALF_TOPIC", "rmq_sys_ROCKSDB_TRANS_OP_HALF_TOPIC"),
        "rmq_sys_ROCKSDB_TRANS_HALF_TOPIC",
        *("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC"),
        *("rmq_sys_LITE_PUSH_SYNC_TOPIC", "rmq_sys_OFFSET_MOVED_EVENT", "rmq_sys_RETENTION_TOPIC"),
    }
)
_IPV4: Final = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")


class Names:
    """Names by kind. Each method takes a name and returns its replacement; before `number` it only collects it."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, str]] = {kind: {} for kind in (*WORDS, "ip", "ip6", "retry", "client id")}
        self._is_numbered = False
        self._codes: dict[int, int] = {}
        self.removed: Counter[str] = Counter()
        self.clients_keep_hosts = True
        self._new_addresses: frozenset[str] = frozenset()

    def replaced(self, kind: str, name: str) -> str:
        """Return the replacement of a name of one of WORDS."""
        return name if not name else self._of(kind, name)

    def _of(self, kind: str, name: str) -> str:
        found = self._found[kind]
        return found[name] if self._is_numbered else found.setdefault(name, name)

    def remove(self, what: str) -> None:
        """Count something that is left out."""
        if self._is_numbered:
            self.removed[what] += 1

    def topic(self, name: str) -> str:
        """Return a topic's replacement; prefixes and RocketMQ's own topics stay."""
        for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
            if name.startswith(prefix):
                return prefix + self._retry(name.removeprefix(prefix))
        if name.startswith("%LMQ%"):
            return "%LMQ%" + self.replaced("topic", name.removeprefix("%LMQ%"))
        if name.startswith(_OF_BROKER):
            return _OF_BROKER + self.replaced("broker", name.removeprefix(_OF_BROKER))
        if name.startswith(_OF_CLUSTER):
            return _OF_CLUSTER + self.replaced("cluster", name.removeprefix(_OF_CLUSTER))
        if name in _SYSTEM_TOPICS or name in _KNOWN_TOPICS:
            return name
        if name.endswith(_REPLY):
            return self.replaced("cluster", name.removesuffix(_REPLY)) + _REPLY
        if (prefixed := _SYSTEM_PREFIX.match(name)) is not None:
            return prefixed[0] + self.replaced("topic", name[prefixed.end() :])
        return name if is_system_topic(name) else self._spaced("topic", name)

    def group(self, name: str) -> str:
        """Return a group's replacement; RocketMQ's own groups and the prefix CID_ stay."""
        if is_system_group(name) or name in _KNOWN_GROUPS:
            return name
        if name.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return self.topic(name)
        if name.startswith("CID_"):
            return "CID_" + self.replaced("group", name[4:])
        return self._spaced("group", name)

    def _spaced(self, kind: str, name: str) -> str:
        """Replace a name that may have a namespace (NamespaceUtil: `namespace%name`)."""
        space, percent, rest = name.partition("%")
        if percent and space and rest:
            return f"{self.replaced('namespace', space)}%{self.replaced(kind, rest)}"
        known = self._found
        if kind == "topic" and self._is_numbered:  # a broker creates topics with its own name and its cluster's
            kind = next((other for other in ("broker", "cluster") if name in known[other]), kind)
        return self.replaced(kind, name)

    def _retry(self, rest: str) -> str:
        """Replace what follows %RETRY%: a group, or `group+topic` and `group_topic` of POP (KeyBuilder)."""
        group, plus, topic = rest.partition("+")
        if plus:
            return f"{self.group(group)}+{self.topic(topic)}"
        return self._of("retry", rest)

    def topic_at_group(self, key: str) -> str:
        """Return the replacement of `topic@group`, a key of consumerOffset.json."""
        topic, *groups = key.split("@")
        return "@".join([self.topic(topic), *(name if name == _BROADCAST else self.group(name) for name in groups)])

    def broker_and_id(self, name: str) -> str:
        """Return the replacement of `brokerName-brokerId`."""
        broker, dash, number = name.rpartition("-")
        is_key = dash and number.isascii() and number.isdigit()
        return f"{self.replaced('broker', broker)}-{number}" if is_key else self.replaced("broker", name)

    def client(self, client_id: str) -> str:
        """Return the replacement of a client id: `ip@pid#nanos` keeps its shape (ClientConfig#buildMQClientId)."""
        if not client_id:
            return client_id
        if self._is_numbered:
            return self._found["client id"][client_id]
        self._found["client id"][client_id] = client_id
        head, at, rest = client_id.partition("@")
        if at and head:
            self.host(head)
            for part in client_id_parts(rest):
                if not stays_in_client_id(part):
                    self.replaced("instance", part)
        else:
            self.replaced("client", client_id)
        return client_id

    def host(self, name: str) -> str:
        """Return the replacement of an address without a port, or of a host's name."""
        if _IPV4.fullmatch(name):
            return self._of("ip", name)
        if name.count(":") > 1:
            return self._of("ip6", name)
        return self.replaced("host", name)

    def address(self, text: str) -> str:
        """Return the replacement of `host:port`, or of several with ; or , between them."""
        return re.sub(r"[^;,\s]+", lambda match: self._address(match[0]), text)

    def _address(self, text: str) -> str:
        scheme, slashes, rest = text.rpartition("//")
        lead, rest = scheme + slashes, rest or ""
        if rest.startswith("/"):
            lead, rest = lead + "/", rest[1:]
        rest = rest.partition("/")[0]
        if rest.startswith("[") and "]" in rest:
            inner, _, port = rest[1:].partition("]")
            return f"{lead}[{self.host(inner)}]{port}"
        host, colon, port = rest.rpartition(":")
        if not colon or not port.isdecimal() or host.count(":") > 0:
            host, colon, port = rest, "", ""
        return f"{lead}{self.host(host) if host else ''}{colon}{port}"

    def message_id(self, text: str) -> str:
        """Return the replacement of a message id, whose first 8 hex digits are an address (MessageClientIDSetter)."""
        if not re.fullmatch(r"[0-9A-Fa-f]{32}", text):
            return self.replaced("message", text)
        new = self.host(".".join(str(byte) for byte in bytes.fromhex(text[:8])))
        return bytes(map(int, new.split("."))).hex().upper() + text[8:]

    def tag_code(self, code: int) -> int:
        """Return the hash code of the tag that replaces a tag with this hash code; 0 if no tag has it."""
        return self._codes.get(code, 0)

    def value(self, text: str) -> str:
        """Return the replacement of a property's value, which an expression compares; numbers stay."""
        if re.fullmatch(r"[-+]?\d+(\.\d+)?|true|false|TRUE|FALSE", text):
            return text
        return self.replaced("tag" if text in self._found["tag"] else "value", text)

    def known(self, word: str) -> str | None:
        """Return the replacement of a word of a text, None if it is no name of the recording."""
        for kind, replace in (("client id", self.client), ("group", self.group), ("topic", self.topic)):
            if word in self._found[kind]:
                return replace(word)
        for kind in ("broker", "cluster", "host", "tag", "key"):
            if word in self._found[kind]:
                return self.replaced(kind, word)
        if is_system_group(word) or word in _KNOWN_GROUPS:
            return word
        space, percent, rest = word.partition("%")
        is_spaced = bool(percent) and space in self._found["namespace"] and rest in self._found["group"]
        if is_spaced or (word.startswith("CID_") and word[4:] in self._found["group"]):
            return self.group(word)
        if word.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
            rest = word.split("%", 2)[2]
            return (
                self.topic(word) if rest in self._found["retry"] or ("+" not in rest and self._is_known(rest)) else None
            )
        name, _, number = word.rpartition("-")
        if number.isdecimal() and name in self._found["broker"]:
            return self.broker_and_id(word)
        return None

    def _is_known(self, rest: str) -> bool:
        if rest in self._found["group"]:
            self._found["retry"].setdefault(rest, self._found["group"][rest])
            return True
        return False

    def is_client(self, client_id: str) -> bool:
        """Return whether a client id may be replaced: at first each, later the collected ones."""
        return not self._is_numbered or client_id in self._found["client id"]

    def is_replacement(self, address: str) -> bool:
        """Return whether an address is one of the new ones."""
        return self._is_numbered and address in self._new_addresses

    def number(self) -> None:
        """Give each name its replacement."""
        self._resolve_retries()
        originals = set(self._found["ip"])
        self._found["tag"] = numbered("tag", self._found["tag"])
        for kind in WORDS:
            if kind != "tag":
                self._found[kind] = numbered(WORDS[kind], self._found[kind])
        addresses = new_addresses(originals)
        heads = sorted(self._found["ip"], key=lambda ip: utf16_key(f"{ip}@"))
        self._found["ip"] = {ip: next(addresses) for ip in heads}
        ip6 = sorted(self._found["ip6"], key=utf16_key)
        self._found["ip6"] = {ip: f"2001:db8::{number + 0x1000:x}" for number, ip in enumerate(ip6)}
        self._codes = {string_hash(tag): string_hash(new) for tag, new in self._found["tag"].items()}
        self._is_numbered = True
        self._number_clients(addresses)
        self._new_addresses = frozenset(self._found["ip"].values())
        self._found["retry"] = {rest: self._retry_of(rest) for rest in self._found["retry"]}

    def _number_clients(self, addresses: Iterator[str]) -> None:
        clients = sorted(self._found["client id"], key=utf16_key)
        new = [self._client(client) for client in clients]
        if new != sorted(new, key=utf16_key) or len(set(new)) < len(new):
            # Names of hosts and instances sort otherwise than their replacements: one host for each client.
            self.clients_keep_hosts = False
            new = [f"{next(addresses)}@{number + 10_000}" for number in range(len(clients))]
        self._found["client id"] = dict(zip(clients, new, strict=True))

    def _client(self, client_id: str) -> str:
        head, at, rest = client_id.partition("@")
        if not at or not head:
            return self.replaced("client", client_id)
        parts = [
            part if stays_in_client_id(part) else self.replaced("instance", part) for part in client_id_parts(rest)
        ]
        return f"{self.host(head)}@{''.join(parts)}"

    def _resolve_retries(self) -> None:
        """Find the group in each `group_topic`; what is neither is a group."""
        for rest in self._found["retry"]:
            if self._joined(rest) is None:
                self.group(rest)

    def _joined(self, rest: str) -> tuple[str, str] | None:
        if rest in self._found["group"]:
            return None
        cuts = (at for at, character in enumerate(rest) if character == "_")
        pairs = ((rest[:at], rest[at + 1 :]) for at in cuts)
        known = self._found
        return next((pair for pair in pairs if pair[0] in known["group"] and pair[1] in known["topic"]), None)

    def _retry_of(self, rest: str) -> str:
        pair = self._joined(rest)
        return self.group(rest) if pair is None else f"{self.group(pair[0])}_{self.topic(pair[1])}"

    def counts(self) -> dict[str, int]:
        """Return how many different names of each kind were replaced."""
        return {kind: len(names) for kind, names in self._found.items() if names and kind not in ("retry", "instance")}

    def mapping(self) -> dict[str, dict[str, str]]:
        """Return the replacements by kind and name."""
        return {kind: names for kind, names in self._found.items() if names and kind != "retry"}
