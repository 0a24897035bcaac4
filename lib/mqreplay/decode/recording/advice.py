"""What decisions and findings need, and how to record it, depending on how the recording was made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

from mqreplay.decode.kind import CAPTURE, RECORD, RecordingWays
from mqreplay.decode.kinds import FILE_KINDS

Mode = Literal["network", "hooks", "files"]
NETWORK_KIND: Final = "recorder_events"
HOOK_KINDS: Final = frozenset({"consume_log", "produce_log"})
MODE_KINDS: Final = HOOK_KINDS | {NETWORK_KIND}  # mode_of uses these
# The kinds of files that decisions need and how to record them, in the order of importance.
EVIDENCE: Final[dict[str, RecordingWays]] = {
    stem: kind.recording for stem, kind in FILE_KINDS.items() if kind.recording is not None
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
    return FILE_KINDS[kind].label if kind in FILE_KINDS else kind


def is_ordinary(kind: str) -> bool:
    """Return whether `mqreplay record` records the kind, without packets and hooks.

    >>> is_ordinary("topic_stats"), is_ordinary("pull_log")
    (True, False)
    """
    ways = EVIDENCE.get(kind)
    return ways is not None and ways.files == RECORD


def how_to_record(kind: str, mode: Mode) -> str:
    """Return the best way to record the kind next time; empty for a kind that no decision needs.

    >>> how_to_record("routes", "files"), how_to_record("routes", "hooks")
    ('run `mqreplay record`', 'write routes.jsonl in the hooks')
    """
    ways = EVIDENCE.get(kind)
    if ways is None:
        return ""
    if mode == "network":
        return ways.network
    return f"write {kind}.jsonl in the hooks" if mode == "hooks" and ways.by_hooks else ways.files


def with_capture(ways: str, command: str) -> str:
    """Return ways to record, with the ``command`` that imports a capture in place of the advice to make one."""
    return ways.replace(CAPTURE, command) if command else ways


def all_ways(kind: str, mode: Mode) -> str:
    """Return the best way to record the kind, and the other one if there is one.

    >>> all_ways("rebalance_log", "files")
    'run `mqreplay record`, or import rocketmq_client.log of each client'
    """
    best = how_to_record(kind, mode)
    instead = EVIDENCE[kind].instead if kind in EVIDENCE and mode == "files" else ""
    return f"{best}, or {instead}" if instead else best
