"""The rounds of `mqreplay nightly --watch` as text: a line for each change of a finding, one for each round."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from mqreplay.cli.terminal import COLOURS
from mqreplay.findings.shape import place_text
from mqreplay.printable import printable

if TYPE_CHECKING:
    from mqreplay.findings.opened import Change
    from mqreplay.night.watch import ClusterRound, RoundDone


class Printer:
    """Prints rounds as text."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)

    def print(self, done: RoundDone) -> None:
        """Print a line for each change, and one for the round."""
        for one in done.clusters:
            for change in one.changes:
                self._print_change(one, change)
        state = "; ".join(map(_state, done.clusters)) or "nothing was recorded in the last minutes"
        count = "1 line" if done.lines == 1 else f"{done.lines:,} lines"
        text = f"round {done.number}: {count} read in {done.seconds:.1f} s; {state}"
        self._console.print(Text(f"{_clock(done.ts)}  {printable(text)}", "dim"))
        for outcome in done.nights:
            self._console.print(Text(printable(f"{_clock(done.ts)}  night of {outcome.cluster}: {outcome.verdict}")))

    def _print_change(self, one: ClusterRound, change: Change) -> None:
        finding = change.finding
        text = finding.closed_reason if change.what == "closed" else finding.summary
        self._console.print(
            Text.assemble(
                (f"{_clock(one.recorded_until)}  ", "dim"),
                f"{change.what:17}",
                (f"{finding.severity:9}", COLOURS[finding.severity]),
                (f"{printable(finding.finding_id[:8])}  ", "dim"),  # as `mqreplay explain` takes it
                (f"{finding.kind}  ", "bold"),
                f"{printable(place_text(finding.place))}  {printable(text)}",
            )
        )


def _state(one: ClusterRound) -> str:
    count = f"{one.open_findings} finding{'' if one.open_findings == 1 else 's'} open"
    until = f"silent since {_clock(one.recorded_until)}" if one.is_silent else f"{max(0.0, one.lag_s):.0f} s behind"
    return f"{one.cluster}: {count}, recording {until}"


def _clock(ts: dt.datetime) -> str:
    return f"{ts:%Y-%m-%d %H:%M:%S}"
