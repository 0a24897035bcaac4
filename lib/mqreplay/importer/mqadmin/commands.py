"""mqadmin's command lines and the first lines of its outputs. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

# The commands of RocketMQ 3.2 to 5.5. Source: MQAdminStartup#initCommand.
_NAMES: Final = """
clusterList consumerProgress topicStatus brokerStatus getBrokerConfig consumerConnection topicRoute consumerStatus
consumer resetOffsetByTime topicList statsAll getConsumerConfig producerConnection producer topicClusterList
brokerConsumeStats getNamesrvConfig queryMsgById queryMsgByKey queryMsgByOffset queryMsgByUniqueKey queryMsgTraceById
queryCq allocateMQ resetOffsetByTimeOld printMsg printMsgByQueue updateTopic updateTopicList updateTopicPerm
updateSubGroup updateSubGroupList haStatus getSyncStateSet getBrokerEpoch getConsumerStatus skipAccumulatedMessage
cloneGroupOffset deleteTopic deleteSubGroup deleteExpiredCommitLog deleteKvConfig updateKvConfig updateBrokerConfig
updateNamesrvConfig updateOrderConf updateStaticTopic remappingStaticTopic wipeWritePerm addWritePerm cleanExpiredCQ
cleanUnusedTopic cleanBrokerMetadata clusterRT checkMsgSendRT sendMsgStatus sendMessage consumeMessage startMonitoring
setConsumeMode exportConfigs exportMetadata exportMetadataInRocksDB exportMetrics exportPopRecord dumpCompactionLog
DecodeMessageId addBroker removeBroker resetMasterFlushOffset getControllerConfig getControllerMetaData
updateControllerConfig electMaster getColdDataFlowCtrInfo updateColdDataFlowCtrGroupConfig
removeColdDataFlowCtrGroupConfig setCommitLogReadAheadMode checkRocksdbCqWriteProgress rocksDBConfigToJson createUser
updateUser deleteUser getUser listUser copyUser createAcl updateAcl deleteAcl getAcl listAcl copyAcl updateAclConfig
deleteAclConfig clusterAclConfigVersion getAclConfig updateGlobalWhiteAddr help
"""
COMMANDS: Final = frozenset(_NAMES.split())
_CANONICAL: Final = {name.lower(): name for name in COMMANDS}
_BROKER_STATUS = re.compile(r"(?:\S+:[0-9]+\s+)?(?:EndTransaction\w+|bootTimestamp|brokerVersion\w*)\s*: ")
_FIRST: Final = frozenset("#{=0rs")  # characters that other first lines begin with
# The first line of an output, by command. A heading may be cut at the width of a terminal or a page.
HEADERS: Final = (
    ("clusterList", re.compile(r"#Cluster Name\s+#Broker Name\b")),
    ("brokerConsumeStats", re.compile(r"#Topic\s+#Group\s+#Broker Name\b")),
    ("consumerProgress", re.compile(r"#Topic\s+#Broker Name\s+#QID\s+#Broker Offset\b")),
    ("consumerProgress", re.compile(r"#Topic\s+#Broker Name(?:\s+#Q?I?D?(?:\s+#(?:B[roke]*(?: O[ffse]*)?)?)?)?$")),
    ("consumerProgress", re.compile(r"#Group\s+#Count\b")),
    ("topicStatus", re.compile(r"#Broker Name\s+#QID\b")),
    ("consumerConnection", re.compile(r"#ClientId\s+#ClientAddr\b")),
    ("consumerConnection", re.compile(r"001\s+\S+\s+\S+:[0-9]+\s+[A-Z_]+\s+\S+$")),  # before 4.9.3
    ("topicRoute", re.compile(r"#ClusterName\s+#BrokerName\s+#BrokerAddrs\b")),
    ("topicRoute", re.compile(r"\{\s*$")),
    ("consumerStatus", re.compile(r"#Consumer (?:Properties|Subscription|Offset|MQ Detail)#|#Index\s+#ClientId\b")),
    ("consumerStatus", re.compile(r"[0-9]{3}\s+\S+\s+V[0-9]\w+\s+[0-9]{13}/\S+$")),  # 3.x and the command consumer
    ("resetOffsetByTime", re.compile(r"(?:rollback|start reset|reset) consumer offset by specified")),
    ("getBrokerConfig", re.compile(r"=+(?:(?:My )?Master: )?[^\s=]+:[0-9]+=+")),
    ("getConsumerConfig", re.compile(r"=+[^\s=:]+:[^\s=:]+=+$")),
    ("brokerStatus", _BROKER_STATUS),
    ("haStatus", re.compile(r"#MasterAddr\s+\S+$")),
    ("getSyncStateSet", re.compile(r"#brokerName\s+\S+$")),
    ("statsAll", re.compile(r"#Topic\s+#Consumer Group\b")),
    ("producerConnection", re.compile(r"0001\s+\S+@\S+\s+\S+:[0-9]+\s+[A-Z]+\s+V[0-9]\w+$")),
)
CONTINUES: Final = frozenset({"getBrokerConfig", "brokerStatus", "getConsumerConfig", "consumerStatus"})
# Headings within an output, which also begin other outputs.
SECTION_OF: Final = {"consumerStatus": ("consumerProgress", "topicRoute"), "getSyncStateSet": ("haStatus",)}
_COMMAND = re.compile(
    r"(?P<before>^|.*?[\s/\\;&|'\"(.=>$#%\]`])"
    r"(?:mqadmin(?:\.sh|\.cmd|\.bat)?|MQAdminStartup|rocketmq-?admin)[\"']?[ \t]+"
    r"(?P<name>[A-Za-z]\w+)(?P<rest>.*)",
    re.IGNORECASE,
)
_UNKNOWN_AFTER = re.compile(r"(?:.*[\]$#>%:]\s*|\s*)(?:(?:sudo|sh|bash)\s+)?(?:\S*[/\\])?$")
_LONG: Final = {
    "groupName": "g",
    "group": "g",
    "consumerGroup": "g",
    "topic": "t",
    "brokerAddr": "b",
    "clusterName": "c",
    "namesrvAddr": "n",
    "clientId": "i",
}


class CommandLine(NamedTuple):
    """A command with the text before ``mqadmin``, and its short options: {"t": "orders"}.

    ``name`` is as RocketMQ spells it; that of a command which RocketMQ does not have is as written.
    """

    name: str
    before: str
    options: dict[str, str]


def command_of(line: str) -> CommandLine | None:
    """Return the mqadmin command of a line; None for other lines. Case does not matter, as in findSubCommand.

    >>> command_of("$ sh mqadmin topicstatus -t orders").name, command_of("PS D:> .\\\\mqadmin.cmd fooBar -x").name
    ('topicStatus', 'fooBar')
    >>> command_of("mqadmin is a tool"), command_of("see mqadmin clusterlist in the manual").name
    (None, 'clusterList')
    """
    if "admin" not in line.lower():
        return None
    match = _COMMAND.match(line)
    if match is None or match["before"].strip() == "usage:":
        return None
    name = _CANONICAL.get(match["name"].lower())
    if name is None:
        is_alone = re.match(r"\s*(?:$|-)", match["rest"]) is not None
        if not is_alone or _UNKNOWN_AFTER.match(match["before"]) is None:
            return None
        name = match["name"]
    return CommandLine(name, match["before"], _options(match["rest"]))


def header_of(line: str, within: str | None, begun: bool) -> str | None:
    """Return the command whose output ``line`` begins, inside an output of the command ``within``."""
    text = line.strip()
    if text[:1] not in _FIRST and _BROKER_STATUS.match(text) is None:
        return None
    for name, header in HEADERS:
        # A body of JSON has indented braces, so that only the first one of topicRoute may be indented.
        if header.match(line if text == "{" and (begun or within != name) else text):
            return None if begun and name in SECTION_OF.get(within or "", ()) else name
    return None


def _options(text: str) -> dict[str, str]:
    """Return the short options of a command line, up to a pipe or redirection.

    >>> _options(" -g pay -n 'h:9876;i:9876' -s > out.txt")
    {'g': 'pay', 'n': 'h:9876;i:9876', 's': ''}
    """
    try:
        words = shlex.split(text)
    except ValueError:
        words = [word.strip("'\"") for word in text.split()]
    return dict(_pairs(words))


def _pairs(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    name: str | None = None
    for word in words:
        if word[:1] in (">", "|", "&", "#") or word in ("2>&1", "1>"):
            break
        if word.startswith("-") and len(word) > 1 and not word[1:].isdigit():
            if name is not None:
                yield name, ""
            name, _, value = word.lstrip("-").partition("=")
            name = _LONG.get(name, name)
            if value:
                yield name, value
                name = None
        elif name is not None:
            yield name, word
            name = None
    if name is not None:
        yield name, ""
