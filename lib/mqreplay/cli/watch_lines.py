"""The rounds of `mqreplay nightly --watch` as text: a line for each change of a finding, one for each round."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from rich.text import Text

from mqreplay.cli.estate_lines import headline, padded
from mqreplay.cli.terminal import COLOURS, text_console
from mqreplay.findings.shape import place_text
from mqreplay.language.language import Language
from mqreplay.printable import printable
from mqreplay.quantity import counted
from mqreplay.report.known_issue import issue_name

if TYPE_CHECKING:
    from mqreplay.findings.opened import Change
    from mqreplay.night.watch import ClusterRound, RoundDone


class Printer:
    """Prints rounds as text."""

    def __init__(self, words: Language) -> None:
        self._words = words
        self._console = text_console(soft_wrap=True)

    def print(self, done: RoundDone) -> None:
        """Print a line for each change, and one for the round."""
        for one in done.clusters:
            for change in one.changes:
                self._print_change(one, change)
        words = self._words
        states = [_state(one, words) for one in done.clusters]
        state = "; ".join(states) or words.text("nothing was recorded in the last minutes")
        head = words.text(f"round {done.number}: {counted(done.lines, 'line')} read in {done.seconds:.1f} s")
        text = f"{head}; {state}"
        self._console.print(Text(f"{_clock(done.ts)}  {printable(text)}", "dim"))
        for outcome in done.nights:
            text = headline(outcome, words)
            night = words.filled("night of {cluster}: {verdict}", cluster=outcome.cluster, verdict=text)
            self._console.print(Text(printable(f"{_clock(done.ts)}  {night}")))

    def _print_change(self, one: ClusterRound, change: Change) -> None:
        finding, words = change.finding, self._words
        text = finding.closed_reason if change.what == "closed" else finding.summary
        issues = one.known_issues.get(finding.finding_id, ()) if change.what == "opened" else ()
        known = "".join(" " + words.text(f"Known issue: {issue_name(issue)}.") for issue in issues)
        self._console.print(
            Text.assemble(
                (f"{_clock(one.recorded_until)}  ", "dim"),
                padded(words.text(change.what), 17),
                (padded(words.text(finding.severity), 9), COLOURS[finding.severity]),
                (f"{printable(finding.finding_id[:8])}  ", "dim"),  # as `mqreplay explain` takes it
                (f"{finding.kind}  ", "bold"),
                f"{printable(place_text(finding.place))}  {printable(words.text(text or ''))}{known}",
            )
        )


def _state(one: ClusterRound, words: Language) -> str:
    count = words.text(f"{counted(one.open_findings, 'finding')} open")
    until = f"silent since {_clock(one.recorded_until)}" if one.is_silent else f"{max(0.0, one.lag_s):.0f} s behind"
    return f"{one.cluster}: {count}, {words.text(f'recording {until}')}"


def _clock(ts: dt.datetime) -> str:
    return f"{ts:%Y-%m-%d %H:%M:%S}"
