"""The further evidence that would help most after an import."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

SHOWN: Final = 5  # names in a sentence
FEW: Final = 3  # copies of a file that are needed to see a change


def missing_evidence(
    offset_copies: Mapping[str, int],
    stems: Collection[str],
    known: Sequence[str],
    described: Collection[str],
    has_memory: bool,
    of_logs: Sequence[str],
    out: str,
) -> list[str]:
    """Return advice, the most helpful evidence first.

    ``offset_copies`` counts the copies of consumerOffset.json by broker; ``stems`` are the kinds of records; ``known``
    are all known brokers by name-id, ``described`` those with known settings; ``of_logs`` is what the logs lack.

    >>> stems = {"assignments", "cluster_info", "pull_log"}
    >>> print(missing_evidence({"b-0": 9}, stems, ["b-0"], ["b-0"], True, [], "r"))
    ['for the next night: `mqreplay record NAMESRV --out DIR`, if name servers and brokers can be reached']
    """
    helps = []
    few = [name for name, count in offset_copies.items() if count < FEW]
    lacking = [name for name in known if name not in offset_copies]
    undescribed = [name for name in known if name not in described]
    if not offset_copies:
        helps.append(
            "copies of consumerOffset.json of each broker, one every 5 to 60 seconds (`mqreplay record --store` makes "
            "them): they show offsets that moved back, jumped or stopped"
        )
    if few:
        helps.append(f"more copies of consumerOffset.json of {_some(few)}: fewer than {FEW} show no change")
    if offset_copies and lacking:
        helps.append(f"copies of consumerOffset.json of {_some(lacking)}, which other evidence names")
    has_owners = {"assignments", "rebalance_log", "pull_log"} & set(stems)
    if not has_owners and not any("rocketmq_client.log" in text for text in of_logs):
        helps.append(
            "rocketmq_client.log of the consumers (~/logs/rocketmqlogs): it shows which client owned which queue, and "
            "whether the allocation was right"
        )
    helps += of_logs
    if not described or undescribed:
        whose = _some(undescribed) if undescribed else "the brokers"
        helps.append(
            f"the settings of {whose}: `mqadmin getBrokerConfig -b ADDR > getBrokerConfig_$(date +%s).txt`, or "
            "broker.conf"
        )
    if "cluster_info" not in stems:
        helps.append(
            "`mqadmin clusterList -n NAMESRV > clusterList_$(date +%s).txt`: it names the brokers, their addresses, "
            "and which of them were up"
        )
    if not {"topic_stats", "pull_log"} & set(stems):
        helps.append(
            "`mqadmin topicStatus -t TOPIC`, with the command as a line before its output: it shows offsets beyond a "
            "queue's end, and lag"
        )
    if not has_memory:
        helps.append(
            f"the brokers' physical memory in bytes, as physical_memory_bytes in {out}/brokers.json: suggestions to "
            "pull from a slave cannot be judged without it"
        )
    helps.append("for the next night: `mqreplay record NAMESRV --out DIR`, if name servers and brokers can be reached")
    return helps


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
