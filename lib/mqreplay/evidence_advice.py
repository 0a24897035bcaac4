"""How to record each kind of evidence, depending on how the recording was made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

Mode = Literal["network", "hooks", "files"]
NETWORK_KIND: Final = "recorder_events"
HOOK_KINDS: Final = frozenset({"consume_log", "produce_log"})
MODE_KINDS: Final = HOOK_KINDS | {NETWORK_KIND}  # mode_of uses these


@dataclass(frozen=True)
class Evidence:
    """One kind of file of a recording.

    ``label`` names it for a reader. ``network`` says how to get it with `mqreplay record`, ``files`` how to get it
    otherwise, and ``instead`` is another way. ``by_hooks``: hooks in clients or brokers can write it.
    """

    label: str
    network: str
    files: str = ""
    instead: str = ""
    by_hooks: bool = True


CAPTURE: Final = "capture the brokers' ports with tcpdump and run `mqreplay import` on the capture"
RECORD: Final = "run `mqreplay record`"
AGAIN: Final = "run `mqreplay record` without --group and --topic for the whole night"
OF_CONSUMERS: Final = "write consume_log.jsonl in a hook of the consumers (docs/recording.md)"
OF_PRODUCERS: Final = "write produce_log.jsonl in a hook of the producers (docs/recording.md)"
CLIENT_LOG: Final = "import rocketmq_client.log of each client"
BROKER_LOG: Final = "import broker.log of each broker"
# In the order of importance.
EVIDENCE: Final[dict[str, Evidence]] = {
    "consumer_offset": Evidence(
        "copies of consumerOffset.json", AGAIN, RECORD, "run `mqreplay record --store` on each broker", by_hooks=False
    ),
    "pull_log": Evidence("pulls", CAPTURE, CAPTURE),
    "rebalance_log": Evidence("rebalances", CLIENT_LOG, RECORD, CLIENT_LOG),
    "assignments": Evidence("queues that clients hold", AGAIN, RECORD, CLIENT_LOG),
    "heartbeats": Evidence("heartbeats and unregistrations", BROKER_LOG, RECORD, BROKER_LOG),
    "routes": Evidence("routes of the topics", AGAIN, RECORD),
    "broker_runtime": Evidence("runtime figures of the brokers", AGAIN, RECORD),
    "topic_stats": Evidence("the end offsets of the queues", AGAIN, RECORD, "import output of mqadmin topicStatus"),
    "offset_commits": Evidence("offset commits", CAPTURE, CAPTURE),
    "server_requests": Evidence("resets that brokers push to clients", CAPTURE, CAPTURE),
    "consume_log": Evidence("consumed messages", OF_CONSUMERS, OF_CONSUMERS),
    "produce_log": Evidence("sent messages", OF_PRODUCERS, OF_PRODUCERS),
    "brokers": Evidence(
        "brokers.json",
        "run `mqreplay record` with --physical-memory",
        "add brokers.json with physical_memory_bytes",
        "run `mqreplay record` with --physical-memory",
        by_hooks=False,
    ),
    "subscription_groups": Evidence(
        "subscriptionGroup.json", AGAIN, RECORD, "copy it with the snapshots", by_hooks=False
    ),
    "topics": Evidence("topics.json", AGAIN, RECORD, "copy it with the snapshots", by_hooks=False),
}


@dataclass(frozen=True)
class Need:
    """A kind of file that a decision or finding needs, and what replaces it.

    One of ``or_recorded`` is enough. If the recorder polled the cluster, one of ``or_polled`` is enough, too.
    ``easier`` is one of these that is easier to record: the advice for the next recording names it.
    """

    kind: str
    or_recorded: tuple[str, ...] = ()
    or_polled: tuple[str, ...] = ()
    easier: str = ""

    def is_replaced_by_other_kind(self, missing: Collection[str], polled: bool) -> bool:
        """Return whether another recorded kind replaces this one."""
        others = self.or_recorded + (self.or_polled if polled else ())
        return any(other not in missing for other in others)

    def next_time(self, recorded: Collection[str]) -> str:
        """Return the kind to record next time, so that the decision is no longer undetermined for lack of this one.

        >>> need = Need("pull_log", or_polled=("topic_stats",), easier="topic_stats")
        >>> need.next_time({"routes"}), need.next_time({"topic_stats"}), Need("pull_log").next_time(set())
        ('topic_stats', 'pull_log', 'pull_log')
        """
        return self.easier if self.easier and self.easier not in recorded else self.kind


def mode_of(recorded: Collection[str]) -> Mode:
    """Return how a recording with these kinds of files was made.

    >>> mode_of({"recorder_events", "routes"}), mode_of({"pull_log", "consume_log"}), mode_of({"consumer_offset"})
    ('network', 'hooks', 'files')
    """
    if NETWORK_KIND in recorded:
        return "network"
    return "hooks" if HOOK_KINDS & set(recorded) else "files"


def label_of(kind: str) -> str:
    """Return the name of a kind of file for a reader."""
    return EVIDENCE[kind].label if kind in EVIDENCE else kind


def how_to_record(kind: str, mode: Mode) -> str:
    """Return the best way to record the kind next time; empty for a kind that no decision needs.

    >>> how_to_record("routes", "files"), how_to_record("routes", "hooks")
    ('run `mqreplay record`', 'write routes.jsonl in the hooks')
    """
    evidence = EVIDENCE.get(kind)
    if evidence is None:
        return ""
    if mode == "network":
        return evidence.network
    return f"write {kind}.jsonl in the hooks" if mode == "hooks" and evidence.by_hooks else evidence.files


def all_ways(kind: str, mode: Mode) -> str:
    """Return the best way to record the kind, and the other one if there is one.

    >>> all_ways("rebalance_log", "files")
    'run `mqreplay record`, or import rocketmq_client.log of each client'
    """
    best = how_to_record(kind, mode)
    instead = EVIDENCE[kind].instead if kind in EVIDENCE and mode == "files" else ""
    return f"{best}, or {instead}" if instead else best
