"""The explanation of a finding in the terminal: its rule, causes and effects, then its evidence."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from rich.console import Console
from rich.text import Text

from mqreplay.answers.explanation import Explanation
from mqreplay.findings.texts import summary_of
from mqreplay.language.language import Language, in_english
from mqreplay.report.evidence_groups import EvidenceGroup
from mqreplay.report.evidence_rows import AROUND, EvidenceRow, EvidenceRows
from mqreplay.report.next_step import advice_parts, known_issue_text
from mqreplay.terminal.console import COLOURS, command_text, padded, print_line, print_row, print_text, text_console
from mqreplay.words.printable import printable
from mqreplay.words.time_span import time_span

LABEL = 12  # characters
MOST_EFFECTS = 20
MOST_DECISIONS = 10
SHOWN_GROUPS = 8
# The time of a pull is that of its request. PullMessageProcessor holds it for brokerSuspendMaxTimeMillis, 15 s.
PULLS = frozenset({"silver.pull"})


def print_explained(explanation: Explanation, limit: int, words: Language | None = None) -> None:
    """Print an explanation, made in the language ``words``, as text.

    ``limit``: the rows of evidence that were asked for, at most.
    """
    words = words or in_english()
    console = text_console()
    watch = explanation.watch
    _print_head(console, explanation.finding, words, is_open=explanation.is_open)
    say = partial(_say, console, words)
    say("Watch", "" if watch is None else words.text(_watch_text(watch, explanation)))
    say("Summary", summary_of(explanation.finding, words))
    say("Rule", explanation.rule + (f" ({explanation.follows})" if explanation.follows else ""))
    say("Confidence", f"{explanation.finding['confidence']:.0%}")
    say("Held by", _holders(explanation, words))
    say("Next", explanation.advice(words))
    if explanation.next_command:
        state = words.filled("The state then: {command}", command=command_text(explanation.next_command))
        console.print(Text(" " * LABEL + printable(state)), soft_wrap=True)  # to be copied as it is
    for issue in explanation.known_issues:
        say("Known issue", words.text(known_issue_text(issue)))
        say(" ", _advice(words.text(issue["advice"]), explanation))
        say(" ", issue["url"])
    if explanation.cause is not None:
        console.print(Text(words.text("Follows from"), "bold"))
        _print_other(console, explanation.cause, words)
    if explanation.effects:
        number = len(explanation.effects)
        console.print(Text(words.text(f"Effects: {of_total(min(number, MOST_EFFECTS), number, 'finding')}"), "bold"))
    for effect in explanation.effects[:MOST_EFFECTS]:
        _print_other(console, effect, words)
    if explanation.decisions:
        console.print(Text(words.text("Decisions by RocketMQ's rules"), "bold"))
    for text in explanation.decisions[:MOST_DECISIONS]:
        print_text(console, Text(printable(words.text(text))), 2)
    left = len(explanation.decisions) - MOST_DECISIONS
    if left > 0:
        others = words.text(f"and {left:,} {'other' if left == 1 else 'others'} (--json has all)")
        console.print(Text(f"  {others}", "dim"))
    if explanation.timeline:
        console.print(Text(words.text("Timeline of the failover"), "bold"))
        width = max(len(when) for when, _ in explanation.timeline)
        for when, what in explanation.timeline:
            print_text(console, Text(printable(what)), 2, Text(f"{padded(when, width)}  ", "dim"))
    _print_evidence(console, explanation, limit, words)


def _advice(advice: str, explanation: Explanation) -> str:
    return "`".join(advice_parts(advice, explanation.names))


def _holders(explanation: Explanation, words: Language) -> str:
    """Return which client held which queues of the finding at its begin; empty if no owners are known."""
    if explanation.holders is None:
        return ""
    if not explanation.holders:
        return words.text("no client, as far as recorded")
    each = [f"{client} ({', '.join(queues)})" for client, queues in explanation.holders.items()]
    return words.text(", ").join(each)


def _print_other(console: Console, finding: dict[str, Any], words: Language) -> None:
    _print_head(console, finding, words, 2)
    print_text(console, Text(printable(summary_of(finding, words))), 11)


def _watch_text(watch: dict[str, Any], explanation: Explanation) -> str:
    """Return since when the finding is open, or why it was closed."""
    if watch["closed_ts"] is not None:
        return f"Closed at {_second(watch['closed_ts'])}: {watch['closed_reason']}."
    seen = f"First found at {_second(watch['first_seen_ts'])}, last evidence at {_second(watch['last_seen_ts'])}."
    return f"{'Open' if explanation.is_open else 'Not open any more'}. {seen} {explanation.watch_note}".rstrip()


def _second(ts: dt.datetime) -> str:
    return f"{ts:%Y-%m-%d %H:%M:%S} UTC"


def _print_head(
    console: Console, finding: dict[str, Any], words: Language, indent: int = 0, *, is_open: bool = False
) -> None:
    severity, kind = str(finding["severity"]), printable(finding["kind"])
    when = words.text(time_span(finding["from_ts"], None if is_open else finding["to_ts"]))
    ident = printable(str(finding["finding_id"])[:8])
    state = f"{words.text('open')} " if is_open else ""
    head = Text.assemble((padded(words.text(severity), 9), COLOURS[severity]), (f"{kind:22}", "bold"))
    print_row(console, Text.assemble((state, "bold"), (f"{when}  {ident}", "dim")), indent, head)


def _say(console: Console, words: Language, label: str, text: object) -> None:
    if text:
        # In a column of its own: no line of the text begins where a label does.
        print_text(console, Text(printable(text)), head=Text(padded(words.text(label), LABEL), "bold"))


def _print_evidence(console: Console, explanation: Explanation, limit: int, words: Language) -> None:
    """Print the evidence. ``limit``: rows at most; the text promises no row that a larger limit does not show."""
    evidence = explanation.evidence
    listed = evidence.total - evidence.unnamed
    more = f"(--limit {listed} shows {'more' if evidence.unnamed else 'all'})" if limit < listed else ""
    title = words.text(f"Evidence: {of_total(len(evidence.rows), evidence.total, 'row')}")
    head = Text.assemble((title, "bold"), (f" {words.text(more)}" if more else "", "dim"))
    console.print(head)
    notes = [_unnamed(explanation), _kept(explanation), _early(explanation)]
    for note in filter(None, notes):
        print_line(console, f"  {words.text(note)}", "dim")
    _print_groups(console, evidence, words)
    parts = explanation.evidence_parts()
    for title, rows in parts:
        if len(parts) > 1:
            console.print(Text(f"  {words.text(title)}", "bold"))
        for row in rows:
            _print_row(console, row, words)


def _print_row(console: Console, row: EvidenceRow, words: Language) -> None:
    table = (f"{printable(row.table_name):22}", "cyan")
    both = words.filled("{text}: {more}", text=row.who, more=row.what)
    text = both if row.who and row.what else row.who or row.what
    print_row(console, Text(printable(text)), 2, Text.assemble((f"{_clock(row.ts):12}", "dim"), "  ", table, "  "))


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
    for group in groups[:SHOWN_GROUPS]:
        table = (f"{printable(group.table_name):22}", "cyan")
        text = f"{_span(group, words)}  {printable(group.text)}".rstrip()
        print_row(console, Text(text), 2, Text.assemble(f"{group.count:>{width},} x ", table, "  "))
    left = groups[SHOWN_GROUPS:]
    if left:
        rows = sum(group.count for group in left)
        others = words.text(f"and {of_total(rows, rows, 'row')} of {len(left)} other outcomes")
        console.print(Text(f"  {others}", "dim"))


def _span(group: EvidenceGroup, words: Language) -> str:
    first, last = _clock(group.first_ts), _clock(group.last_ts)
    return first if first == last else words.filled("{begin} to {end}", begin=first, end=last)


def _clock(ts: dt.datetime | None) -> str:
    return ts.strftime("%H:%M:%S.%f")[:-3] if ts else ""
