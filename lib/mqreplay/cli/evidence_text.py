"""The evidence of a finding in the terminal: how many rows of which outcome, why some come early, then the rows."""

from __future__ import annotations

import datetime as dt

from rich.console import Console
from rich.text import Text

from mqreplay.cli.explanation import Explanation
from mqreplay.language.language import Language
from mqreplay.printable import printable
from mqreplay.report.evidence_groups import EvidenceGroup
from mqreplay.report.evidence_rows import AROUND, EvidenceRows

MOST_GROUPS = 8
# The time of a pull is that of its request. PullMessageProcessor holds it for brokerSuspendMaxTimeMillis, 15 s.
PULLS = frozenset({"silver.pull"})


def print_evidence(console: Console, explanation: Explanation, limit: int, words: Language) -> None:
    """Print the evidence. ``limit``: rows at most; the text promises no row that a larger limit does not show."""
    evidence = explanation.evidence
    listed = evidence.total - evidence.unnamed
    more = f"(--limit {listed} shows {'more' if evidence.unnamed else 'all'})" if limit < listed else ""
    title = words.text(f"Evidence: {of_total(len(evidence.rows), evidence.total, 'row')}")
    head = Text.assemble((title, "bold"), (f" {words.text(more)}" if more else "", "dim"))
    console.print(head)
    notes = [_unnamed(explanation), _kept(explanation), _early(explanation)]
    for note in filter(None, notes):
        console.print(Text(f"  {words.text(note)}", "dim"), soft_wrap=True)
    _print_groups(console, evidence, words)
    for row in evidence.rows:
        when = _clock(row.ts)
        table = (f"{printable(row.table_name):22}", "cyan")
        both = words.filled("{text}: {more}", text=row.who, more=row.what)
        text = both if row.who and row.what else row.who or row.what
        line = Text.assemble("  ", (f"{when:12}", "dim"), "  ", table, "  ", printable(text))
        console.print(line, soft_wrap=True)  # one line a row, for grep


def of_total(shown: int, total: int, one: str) -> str:
    """Return how many of how many are shown: "3 rows", "50 of 1,315 rows", "none"."""
    if not total:
        return "none"
    noun = one if total == 1 else f"{one}s"
    return f"{total:,} {noun}" if shown == total else f"{shown:,} of {total:,} {noun}"


def _unnamed(explanation: Explanation) -> str:
    """Return why rows that the finding counts cannot be listed."""
    evidence = explanation.evidence
    if not evidence.unnamed:
        return ""
    if not explanation.is_judged:
        return "the tables have these rows after the nightly run: explain it then"
    named = evidence.total - evidence.unnamed
    return f"the finding names {of_total(named, named, 'row') if named else 'no rows'}, and only counts the others"


def _kept(explanation: Explanation) -> str:
    first = explanation.silver_kept_from
    return "" if first is None else f"silver rows before {first} are no longer kept (mqreplay maintain)"


def _early(explanation: Explanation) -> str:
    """Return why evidence has a time before the begin of the finding."""
    begin = explanation.finding["from_ts"]
    groups = [group for group in explanation.evidence.groups if group.early]
    if begin is None or not groups:
        return ""
    reasons = []
    if any(group.table_name in PULLS for group in groups):
        reasons.append("a pull has the time of its request, and a broker may hold it for half a minute")
    if any(group.is_near for group in groups):
        reasons.append(f"what happened or went on up to {AROUND.seconds} s before and after the finding is shown")
    if any(group.table_name not in PULLS and not group.is_near for group in groups):
        reasons.append("some show the state at its begin")
    count = sum(group.early for group in groups)
    were = "1 row is" if count == 1 else f"{count:,} rows are"
    return f"{were} from before the begin of the finding ({_clock(begin)}): {'; '.join(reasons)}"


def _print_groups(console: Console, evidence: EvidenceRows, words: Language) -> None:
    groups = evidence.groups
    total = sum(group.count for group in groups)
    if total <= len(groups) or not any(group.text for group in groups):
        return  # the rows say it as shortly
    width = len(f"{max(group.count for group in groups):,}")
    for group in groups[:MOST_GROUPS]:
        table = (f"{printable(group.table_name):22}", "cyan")
        text = f"  {_span(group, words)}  {printable(group.text)}".rstrip()
        console.print(Text.assemble(f"  {group.count:>{width},} x ", table, text), soft_wrap=True)
    left = groups[MOST_GROUPS:]
    if left:
        rows = sum(group.count for group in left)
        others = words.text(f"and {of_total(rows, rows, 'row')} of {len(left)} other outcomes")
        console.print(Text(f"  {others}", "dim"))


def _span(group: EvidenceGroup, words: Language) -> str:
    first, last = _clock(group.first_ts), _clock(group.last_ts)
    return first if first == last else words.filled("{begin} to {end}", begin=first, end=last)


def _clock(ts: dt.datetime | None) -> str:
    return ts.strftime("%H:%M:%S.%f")[:-3] if ts else ""
