"""The queues that clients of one process hold, by their log; one record of assignments for each change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from mqreplay.decode.logs.client_facts import QueueAdded, QueueRemoved
from mqreplay.decode.message_queue import MessageQueue

SOURCE: Final = "client_log"
REPEAT_MS: Final = 60_000  # interval at which an unchanged set of queues is repeated
_ROUND_MS: Final = 2_000  # of the commits of one round; rounds are 5 s apart
Member = tuple[str, str]  # client id, group
Record = tuple[str, dict[str, object]]


class HeldQueues:
    """The queues of each member. Changes in one millisecond make one record, which `show_changes` yields later."""

    def __init__(self, process: str | None = None) -> None:
        """No member is known yet. ``process`` is that of the log."""
        self._process = process
        self._held: dict[Member, set[MessageQueue]] = {}
        self._changed: dict[Member, int] = {}  # not yet recorded
        self._shown: dict[Member, int] = {}
        self._repeats: dict[Member, int] = {}  # to be recorded again
        self._moves: dict[str, list[tuple[int, QueueAdded | QueueRemoved]]] = {}  # by group: their client is unknown
        self._rounds: dict[Member, tuple[int, set[MessageQueue]]] = {}

    def of(self, member: Member) -> set[MessageQueue]:
        """Return the queues of a member."""
        return self._held.get(member, set())

    def holders(self, clients: Collection[str], group: str, queue: MessageQueue) -> list[str]:
        """Return those of ``clients`` that hold a queue for the group."""
        return [client_id for client_id in clients if queue in self.of((client_id, group))]

    def hold(self, ts: int, member: Member, queues: set[MessageQueue]) -> None:
        """Set the queues of a member since ``ts``."""
        if queues != self.of(member):
            self._held[member] = queues
            self._changed[member] = ts

    def begin(self, ts: int, member: Member) -> None:
        """Record that a new member holds nothing yet, unless it is known."""
        if member not in self._held:
            self._held[member] = set()
            self._changed[member] = ts

    def end(self, ts: int, member: Member) -> None:
        """Remove all queues of a member that ends."""
        self.hold(ts, member, set())
        self._rounds.pop(member, None)

    def move(self, ts: int, move: QueueAdded | QueueRemoved) -> None:
        """Keep an added or removed queue until a rebalanced result names its client."""
        self._moves.setdefault(move.group, []).append((ts, move))

    def forget_moves(self, group: str | None = None) -> None:
        """Drop the kept changes of a group, or of all groups."""
        if group is None:
            self._moves.clear()
        else:
            self._moves.pop(group, None)

    def unplaced_moves(self) -> int:
        """Return how many changes have no known client yet."""
        return sum(map(len, self._moves.values()))

    def apply_moves(self, member: Member, share: set[MessageQueue]) -> Iterator[Record]:
        """Apply to a member the kept changes of its group that its share explains, each at its own time."""
        others = []
        for ts, move in self._moves.pop(member[1], []):
            held, added = self.of(member), isinstance(move, QueueAdded)
            if (move.queue in share) != added or (move.queue in held) == added:
                others.append((ts, move))
                continue
            if self._changed.get(member, ts) < ts:
                yield self._assignment(self._changed.pop(member), member, True)
            self.hold(ts, member, held | {move.queue} if added else held - {move.queue})
        if others:
            self._moves[member[1]] = others

    def committed(self, ts: int, member: Member, queue: MessageQueue) -> None:
        """Add queues that a member has held since before its log began: a round of commits has all its queues."""
        began = self._rounds.get(member)
        if began is None or ts - began[0] > _ROUND_MS:
            self._hold_round(member)
            began = self._rounds[member] = (ts, set())
        began[1].add(queue)

    def end_of_log(self, committers: Mapping[tuple[str, MessageQueue], tuple[str, int]]) -> Iterator[Record]:
        """Yield what the last lines show: the last round of commits, and who took a queue and then committed it.

        ``committers``: the client that committed a queue of a group last, and when.
        """
        for group, moves in list(self._moves.items()):
            for ts, move in moves:
                client_id, committed_ts = committers.get((group, move.queue), ("", 0))
                member = client_id, group
                if isinstance(move, QueueAdded) and committed_ts >= ts > self._shown.get(member, 0):
                    if self._changed.get(member, ts) < ts:
                        yield self._assignment(self._changed.pop(member), member, True)
                    self.hold(ts, member, self.of(member) | {move.queue})
                    self._moves[group] = [other for other in self._moves[group] if other[1] is not move]
        for member in self._rounds:
            self._hold_round(member)
        yield from self.show_changes(None)

    def _hold_round(self, member: Member) -> None:
        began = self._rounds.get(member)
        if began is not None and max(self._changed.get(member, 0), self._shown.get(member, 0)) <= began[0]:
            # Commits to a broker that is down are not logged: a round may lack queues, so it never removes any.
            self.hold(began[0], member, self.of(member) | began[1])

    def show_changes(self, ts: int | None) -> Iterator[Record]:
        """Yield the changes before ``ts``; None: all."""
        for member, changed in list(self._changed.items()):
            if ts is None or changed < ts:
                del self._changed[member]
                yield self._assignment(changed, member, True)
        for member, seen in list(self._repeats.items()):
            if ts is None or seen < ts:
                del self._repeats[member]
                # Changes without a known client may be its own.
                if member[1] not in self._moves and self._shown.get(member, 0) < seen:
                    yield self._assignment(seen, member, False)

    def repeat(self, ts: int, member: Member) -> None:
        """Record at ``ts`` the queues of a member again, if the last record is a minute old."""
        if self.of(member) and ts - self._shown.get(member, ts) >= REPEAT_MS:
            self._repeats[member] = ts

    def _assignment(self, ts: int, member: Member, changed: bool) -> Record:
        self._shown[member] = ts
        queues = [
            {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id}
            for queue in sorted(self.of(member))
        ]
        record = {"ts": ts, "changed": changed, "client_id": member[0], "consumer_group": member[1], "queues": queues}
        return "assignments", {**record, "source": SOURCE, "process": self._process}
