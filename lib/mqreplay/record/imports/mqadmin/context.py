"""What the readers of mqadmin's outputs share: known brokers, printed times, and what was left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mqreplay.record.imports.brokers.broker_names import BrokerNames
from mqreplay.record.imports.mqadmin.tables import QueueTable
from mqreplay.record.imports.times.printed_times import PrintedTimes

MASTER_SEEN_MS: Final = 600_000  # a list of brokers proves for this time before and after it that a master exists
CUT_NAMES: Final = "rows of queues with names that mqadmin may have cut at the column width"
BROKEN_ROWS: Final = "rows of mqadmin {command} that are cut, broken by a terminal or not in its format"
_SHOWN: Final = 100


@dataclass
class AdminContext:
    """The state of reading. ``left_out``: numbers of rows by reason."""

    names: BrokerNames
    times: PrintedTimes
    left_out: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)  # what mqadmin itself concluded
    _examples: dict[str, str] = field(default_factory=dict)
    _masters: dict[str, list[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(list))

    def see_masters(self, brokers: Sequence[tuple[str, int]], ts_ms: int) -> None:
        """Record the brokers, as (name, id), that a name server listed."""
        for name in {name for name, _ in brokers}:
            self._masters[name].append((ts_ms, (name, 0) in brokers))

    def asked_id(self, broker_name: str, ts_ms: int) -> int | None:
        """Return the id of the broker that mqadmin asked: the master, if a name server knew one; else unknown."""
        near = min(self._masters.get(broker_name, []), key=lambda seen: abs(seen[0] - ts_ms), default=None)
        return 0 if near is not None and near[1] and abs(near[0] - ts_ms) <= MASTER_SEEN_MS else None

    def count(self, command: str, table: QueueTable) -> None:
        """Count the rows of a table that were left out."""
        if table.cut_names:
            self.left_out[CUT_NAMES] += table.cut_names
        self.count_broken(command, table.broken)

    def count_broken(self, command: str, rows: Sequence[str]) -> None:
        """Count broken rows, and keep the first one as an example."""
        if rows:
            reason = BROKEN_ROWS.format(command=command)
            self._examples.setdefault(reason, " ".join(rows[0].split())[:_SHOWN])
            self.left_out[reason] += len(rows)

    def all_left_out(self) -> Counter[str]:
        """Return the numbers of rows by reason, with an example of each reason that has one."""
        named = {
            reason: f"{reason}, such as {self._examples[reason]!r}" if reason in self._examples else reason
            for reason in self.left_out
        }
        return Counter({named[reason]: number for reason, number in self.left_out.items()})
