"""Files of RocketMQ's folders that no decision uses, by name, each with what it is. Pure.

Sources: BrokerPathConfigHelper, StorePathConfigHelper, MessageStoreConfig, NamesrvConfig, ControllerConfig, and the
folder distribution/conf of a release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NO_DECISION: Final = "no decision uses it"
_ABOUT: Final = (
    (r"[0-9]{20}", "a file of messages or of an index of a store"),
    (r"checkpoint|abort|lock|timercheck|epochFileCheckpoint\w*", "a marker or checkpoint of a store"),
    (r"timermetrics|transactionMetrics", "a broker's counts of delayed or transactional messages"),
    (r"consumerFilter\.json", "the SQL92 filters of subscriptions"),
    (r"topicQueueMapping\.json", "the queues of static topics"),
    (r"tieredStoreMetadata\.json", "what a broker moved into tiered storage"),
    (r"(?:lmq|lite)[A-Z]\w*\.json", "a broker's state of light message queues"),
    (r"(?:pop|revive)[A-Z]\w*\.json", "a broker's state of POP"),
    (r"brokerMetadata\w*|brokerIdentity\w*", "a replica's identity in controller mode, whose brokerId may change"),
    (r"kvConfig\.json", "a name server's key-value configuration"),
    (
        r"(?:namesrv|nameserver|controller)[\w-]*\.(?:properties|conf)",
        "the configuration of a name server or controller",
    ),
    (r"rmq-proxy[\w-]*\.json", "the configuration of a proxy"),
    (r"(?:plain_)?acl[\w-]*\.ya?ml|tools\.ya?ml|users\.properties", "access rules, which may contain keys"),
    (r"(?:docker-)?compose[\w.-]*\.ya?ml|Dockerfile|values\.ya?ml|\.env", "a description of containers"),
    (r"(?:rmq\.|logback|log4j2?)[\w.-]*\.(?:xml|properties)", "settings of logs"),
    (r"SHA256SUMS|README.*|.*\.(?:md|html|png)", "a description"),
    (r".*\.(?:jar|class|java|sh|cmd|py|pyc|so)", "a program"),
    (r".*\.hprof", "a memory dump"),
    (r".*\.unfinished", "an unfinished file of a recorder"),
)
_COMPILED: Final = tuple((re.compile(pattern), what) for pattern, what in _ABOUT)
_BAK: Final = re.compile(r"\.(?:bak|tmp)$")
# Folders with messages and indexes.
_OF_MESSAGES: Final = frozenset(
    {
        *("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index", "transaction"),
        *("timerwheel", "timerlog", "compaction", "tieredstore"),
    }
)
_OF_TOOLS: Final = frozenset({".git", "__MACOSX"})


def why_in_folder(folders: Sequence[str]) -> str | None:
    """Return what the files in these folders are if no decision uses them; None for other folders.

    >>> why_in_folder(("store", "commitlog"))
    'no decision uses it: messages or an index of a store'
    """
    if _OF_MESSAGES.intersection(folders):
        return f"{_NO_DECISION}: messages or an index of a store"
    if ".rocketmq_client_go" in folders:
        return "it is of a broadcasting client of Go; import reads the offsets of Java clients (offsets.json)"
    return f"{_NO_DECISION}: a file of another tool" if _OF_TOOLS.intersection(folders) else None


def why_not_used(name: str) -> str | None:
    """Return what a file is that no decision uses, from its name; None for any other file.

    >>> why_not_used("consumerFilter.json.bak"), why_not_used("topics.json")
    ('no decision uses it: the SQL92 filters of subscriptions', None)
    """
    name = _BAK.sub("", name)
    what = next((what for pattern, what in _COMPILED if pattern.fullmatch(name)), None)
    return None if what is None else f"{_NO_DECISION}: {what}"


def why_not_of_config(parts: Sequence[str]) -> str | None:
    """Return why an unknown file of a store's config folder is not used; None for a file elsewhere.

    >>> why_not_of_config(("store", "config", "x.json"))
    "no decision uses it: a file of a broker's config folder that mqreplay does not know"
    """
    is_of_config = len(parts) >= 2 and parts[-2] == "config" and _BAK.sub("", parts[-1]).endswith(".json")
    return f"{_NO_DECISION}: a file of a broker's config folder that mqreplay does not know" if is_of_config else None
