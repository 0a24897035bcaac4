"""Texts with names in them: messages, expressions, receipts, strategies, settings and properties of messages.

Of a message only known words, numbers and replaced names remain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mqreplay.bundle.fields import SETTING_NAMES
from mqreplay.bundle.names import Names
from mqreplay.core.allocation import NAMES as STRATEGY_NAMES
from mqreplay.core.allocation import PACKAGES

REMOVED_TEXT: Final = "***"
# No decision on a group with this strategy can be kept: it hashes the text of client ids and queues.
HASHED: Final = "REDACTED_CONSISTENT_HASH"
_WORD: Final = re.compile(r"[^\s<>\[\](),;:=\"{}]+")
_IPV4: Final = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w@]|\.\w)")
_NUMBER: Final = re.compile(r"[-+]?\d+(?:[.\-]\d+){0,2}(?:ms|s|%|MiB|GiB)?")
_CLASS: Final = re.compile(r"(?:java|javax|java\.base/java|org\.apache\.rocketmq|com\.alibaba|io\.netty)\.[\w.$<>]+")
_PLAIN_SETTING: Final = re.compile(
    r"|true|false|V\d+_\d+_\d+\w{0,12}|(?:\d+[smhd] ?)+|[-\d., #]+|v\d|JAVA|"
    r"CLUSTERING|BROADCASTING|CONSUME_[A-Z_]+|PUSH|PULL|POP|(?:A?SYNC|ASYNC)_MASTER|SLAVE|A?SYNC_FLUSH|default|"
    r"defaultRocksDB|NORMAL|FIFO|DELAY|TRANSACTION|MIXED|LITE|UNSPECIFIED|CUSTOMIZED|EXPONENTIAL|DISABLE"
)
# Figures with units, as in a broker's runtime table: "Total : 252.0 GiB, Free : 182.5 GiB." and "[<=0ms]:5".
_FIGURES: Final = re.compile(r"(?:[-\s\d.,:;<>=~\[\]()+%]|Total|Free|[KMGTPE]i?B|B|ms|s|(?:day|hour|minute|second)s?)*")
_OBJECT: Final = re.compile(r"[\w.$]+(?:/0x[0-9a-f]+)?@[0-9a-f]{1,8}")
_SQL: Final = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_$][\w$.]*|\s+|.", re.DOTALL)
_SQL_WORDS_TEXT: Final = """
AND OR NOT IN IS NULL BETWEEN TRUE FALSE CONTAINS STARTSWITH ENDSWITH LIKE ESCAPE TAGS KEYS
"""
_SQL_WORDS: Final = frozenset(_SQL_WORDS_TEXT.split())
# Properties of messages that RocketMQ sets itself (MessageConst).
_SYSTEM_PROPERTIES_TEXT: Final = """
KEYS TAGS UNIQ_KEY WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID
ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG RECONSUME_TIME MSG_REGION TRACE_ON CLUSTER
MAX_RECONSUME_TIMES CONSUME_START_TIME INNER_NUM INNER_BASE __SHARDINGKEY TIMER_DELIVER_MS TIMER_DELAY_SEC INSTANCE_ID
DUP_INFO
"""
_SYSTEM_PROPERTIES: Final = frozenset(_SYSTEM_PROPERTIES_TEXT.split())
_KNOWN: Final = """
-w- a again allowed an and answer answers any apply are attributes available be been boot broadcast broker broker's
brokers brokerssent budget busy but by call can cannot caused certificate channel cl closed closes code config connect
connected connection consume consumer consumer's consumerfilterdata consumers control cost could cq create data desc
details did directory disk does down due enough error etc every exception exist exist!your expression failed false faq
file filter first flow following for forbidden found from full further get_all_consumer_offset get_all_delay_offset
get_all_message_request_mode get_all_subscriptiongroup_config get_all_topic_config get_all_topic_list_from_nameserver
get_broker_cluster_info get_broker_config get_broker_ha_status get_broker_runtime_info get_consume_stats
get_consumer_connection_list get_consumer_list_by_group get_consumer_running_info get_max_offset get_min_offset
get_routeinfo_by_topic get_topic_stats_info group groups has have host http https i illegal in index info information
input interrupted invalid invoke io is it its java killed large latest length line lines log lost machine many mapped
master may maybe message message_was_removing messages mode more mqreplay ms name namesrv network new next no
no_matched_logic_queue no_matched_message no_message_in_queue node not nothing now null of offset_found_null
offset_overflow_badly offset_overflow_one offset_reset offset_too_small ok old on one online only open or order os out
overload page parse pc_synchronized pcbusy_clean_queue per period perm permission please polled polls pool possible
previously processed producer producer's properties protocol proxy pull pulling put queue queueid queues r r-- reached
read readqueuenums reason reasons recorder refused register rejectrequest request requests reset response restarted
retry rocketmq rocketmq's role route rw rw- s second seconds see send senddefaultimpl sendkernelimpl sent server
server's servers service service_not_available shut shutdown single_tag size slave slow socket space start started
still stop stopped store stores storing subscription support suspended system system_busy table tag tbw102 than the
then there this thread threshold time timed timeout timeout_clean_queue times to too topic topicconfig
topicconfig.readqueuenums topicconfig.writequeuenums topicfiltertype topicname topicsysflag trace true try type unable
unavailable unit unknown unreachable url used v3_0_6_snapshot v5_0_0_snapshot version visit wait waited was way were
when while with within write writequeuenums wrong your
"""
_WORDS: Final = frozenset(_KNOWN.split())


def text(names: Names, message: str) -> str:
    """Return a message without unknown words: they become ``***``."""
    message = _IPV4.sub(lambda match: names.host(match[0]), message)
    return _WORD.sub(lambda match: _word(names, match[0], message[: match.start()].rstrip()[-1:]), message)


def _word(names: Names, word: str, before: str) -> str:
    lead = word[: len(word) - len(word.lstrip("/'"))]
    core = word[len(lead) :].rstrip("/'.!?")
    tail = word[len(lead) + len(core) :]
    # RocketMQ puts names behind a bracket, comma or colon: there a name may be a usual word, such as `order`.
    known = names.known(core) if before and before in "[<(:,=" else None
    return lead + (known if known is not None else _core(names, core)) + tail


def _core(names: Names, core: str) -> str:
    if not core or core.casefold() in _WORDS or _NUMBER.fullmatch(core) or _CLASS.fullmatch(core):
        return core
    if re.fullmatch(r"(?:\w+\.)*rocketmq\.apache\.org[\w./]*|\w+\.java", core) or _is_new_address(names, core):
        return core
    if "@" in core and re.match(r"\d+\.\d+\.\d+\.\d+@", core):
        return names.client(core) if names.is_client(core) else REMOVED_TEXT
    if (known := names.known(core)) is not None:
        return known
    names.remove("words of messages")
    return REMOVED_TEXT


def _is_new_address(names: Names, core: str) -> bool:
    """Return whether the word is an address that was replaced already."""
    return re.fullmatch(r"10(?:\.\d{3}){3}", core) is not None and names.is_replacement(core)


def expression(names: Names, subscription: str) -> str:
    """Return a subscription's expression, of tags or SQL92, with other tags, properties and values."""
    if subscription in ("", "*"):
        return subscription
    if re.fullmatch(r"[^\s()'=<>]+(?:\s*\|\|\s*[^\s()'=<>]+)*\s*", subscription):
        return re.sub(r"[^\s|]+", lambda match: names.replaced("tag", match[0]), subscription)
    return _SQL.sub(lambda match: _sql(names, match[0]), subscription)


def _sql(names: Names, token: str) -> str:
    if token[0] in "'\"" and len(token) > 1:
        return token[0] + names.value(token[1:-1]) + token[0]
    is_name = token[0].isalpha() or token[0] in "_$"
    return names.replaced("property", token) if is_name and token.upper() not in _SQL_WORDS else token


def keys(names: Names, listed: str) -> str:
    """Return the keys of a message, with spaces between them (MessageConst#KEY_SEPARATOR)."""
    return re.sub(r"\S+", lambda match: names.replaced("key", match[0]), listed)


def wire_properties(names: Names, properties: str) -> str:
    """Return a message's properties in the form of the wire (MessageDecoder#messageProperties2String)."""
    pairs = (pair.partition("\x01") for pair in properties.split("\x02") if pair)
    return "".join(f"{_property(names, name)}\x01{_value(names, name, value)}\x02" for name, _, value in pairs)


def _property(names: Names, name: str) -> str:
    return name if name in _SYSTEM_PROPERTIES else names.replaced("property", name)


def _value(names: Names, name: str, value: str) -> str:
    replaced: dict[str, Callable[[str], str]] = {
        "KEYS": lambda listed: keys(names, listed),
        "TAGS": lambda tag: names.replaced("tag", tag),
        "UNIQ_KEY": names.message_id,
        "ORIGIN_MESSAGE_ID": names.message_id,
        "RETRY_TOPIC": names.topic,
        "REAL_TOPIC": names.topic,
        "PGROUP": names.group,
        "CLUSTER": lambda cluster: names.replaced("cluster", cluster),
    }
    return replaced.get(name, names.value)(value)


def strategy(names: Names, name: str) -> str:
    """Return the name or toString() of an allocation strategy; an application's own class is replaced."""
    class_name, at, code = name.partition("@")
    package, dot, own = class_name.rpartition(".")
    if own == "AllocateMessageQueueConsistentHash" or class_name == "CONSISTENT_HASH":
        return f"{HASHED}{at}{code}"
    is_known = package + dot in PACKAGES and own in STRATEGY_NAMES
    parts = class_name.split("-")
    if is_known or class_name in ("", "null") or all(part in STRATEGY_NAMES.values() for part in parts):
        return name
    return f"{names.replaced('strategy', class_name)}{at}{code}"


def receipt(names: Names, info: str) -> str:
    """Return a receipt of POP, whose sixth part is the broker's name (ExtraInfoUtil#buildExtraInfo)."""
    parts = info.split(" ")
    if len(parts) < 6 or not all(re.fullmatch(r"-?\d+", part) for part in [*parts[:5], *parts[6:]]):
        return names.replaced("receipt", info)
    parts[5] = names.replaced("broker", parts[5])
    return " ".join(parts)


def setting(names: Names, name: str, value: str) -> str:
    """Return the value of a setting of a broker or client; equal values stay equal."""
    if name in SETTING_NAMES:
        return replace(names, SETTING_NAMES[name], value)
    if _PLAIN_SETTING.fullmatch(value) or (_FIGURES.fullmatch(value) and not _IPV4.search(value)):
        return value
    if _OBJECT.fullmatch(value):  # Object's toString(), which is not read
        return "Object@0"
    return names.replaced("setting", value)


_FUNCTIONS: Final = {
    "text": text,
    "expression": expression,
    "keys": keys,
    "wire_properties": wire_properties,
    "strategy": strategy,
    "receipt": receipt,
}
_METHODS: Final = frozenset(
    {"topic", "group", "client", "address", "message_id", "topic_at_group", "broker_and_id", "host"}
)


def replace(names: Names, how: str, name: str) -> str:
    """Return the replacement of a name, ``how`` as in fields.STRINGS."""
    if how in _FUNCTIONS:
        return _FUNCTIONS[how](names, name)
    if how in _METHODS:
        return str(getattr(names, how)(name))
    return names.replaced(how, name)
