"""What the readers of mqadmin's outputs share: known brokers, printed times, and what was left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.mqadmin.outputs import Output
from mqreplay.importer.mqadmin.tables import QueueTable
from mqreplay.importer.times.printed_times import PrintedTimes

MASTER_SEEN_MS: Final = 600_000  # a list of brokers counts for this time before and after it
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
    nearly_full: set[tuple[str, int]] = field(default_factory=set)  # brokers, by name and id
    _examples: dict[str, str] = field(default_factory=dict)
    _masters: dict[str, list[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(list))

    def see_masters(self, brokers: Sequence[tuple[str, int]], ts_ms: int) -> None:
        """Record the brokers, as (name, id), that a name server listed."""
        for name in {name for name, _ in brokers}:
            self._masters[name].append((ts_ms, (name, 0) in brokers))

    def asked(self, output: Output) -> tuple[str, int] | None:
        """Return name and id of the broker at the address of -b; None if nothing names it."""
        return self.names.of_address(output.options.get("b", ""))

    def asked_id(self, broker_name: str, ts_ms: int) -> int | None:
        """Return the id of the broker that mqadmin asked: the master; unknown if a list shows that there was none.

        Source: BrokerData#selectBrokerAddr, which DefaultMQAdminExtImpl#examineConsumeStats uses.
        """
        near = min(self._masters.get(broker_name, []), key=lambda seen: abs(seen[0] - ts_ms), default=None)
        has_none = near is not None and not near[1] and abs(near[0] - ts_ms) <= MASTER_SEEN_MS
        return None if has_none else 0

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
