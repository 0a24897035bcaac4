"""What would have been, and a prediction beside what came, as text in the terminal or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import polars as pl
from rich.console import Console
from rich.text import Text

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decisions.supposed_shares import (
    CHANGED,
    GONE,
    MAY_MOVE,
    MOVED,
    NEW,
    UNCHANGED,
    UNKNOWN,
    moved_bounds,
)
from mqreplay.decisions.verdict import UNDETERMINED
from mqreplay.language.language import Language, in_english
from mqreplay.suppose.instants import ASSUMPTION, LostMaster
from mqreplay.suppose.prediction_check import FAILED, HELD, OUTSIDE, WITHIN, Checked
from mqreplay.suppose.predictions import MILLION
from mqreplay.suppose.what_if import Answer, Prediction
from mqreplay.terminal.console import padded, print_line, print_row, text_console
from mqreplay.words.printable import json_text, printable
from mqreplay.words.quantity import counted

OUTCOMES = (UNCHANGED, CHANGED, UNDETERMINED)
MOST_QUEUES = 40
JUDGEMENTS = {WITHIN: "green", HELD: "bold green", OUTSIDE: "red", FAILED: "bold red", UNDETERMINED: "yellow"}
MOST_ROWS = 40  # values within or undetermined; all that came outside are shown
WHAT = {
    "members": "members of",
    "owner": "owner of",
    "to_slave": "answers that send to a slave,",
    "redelivered": "messages delivered again to",
    "again": "messages delivered again to",
}
VERDICTS = {
    HELD: "the prediction held",
    FAILED: "the prediction failed",
    UNDETERMINED: "the prediction is undetermined",
}


def print_whatif(answer: Answer, saved: str | None = None, *, as_json: bool, words: Language | None = None) -> None:
    """Print the answer on stdout. ``saved``: the id of the stored prediction."""
    if as_json:
        stored = {} if saved is None else {"prediction_id": saved}
        print(json_text(answer.as_plain() | stored, indent=1, default=str))
        return
    page = _Page(text_console(), words or in_english())
    page.line(answer.cluster, "bold")
    if answer.prediction is not None:
        _print_prediction(page, answer.prediction)
    if answer.lost is not None:
        _print_lost(page, answer.lost)
    if answer.reset is not None:
        _print_reset(page, answer.reset)
    if answer.drain is not None:
        _print_drain(page, answer.drain)
    if saved is not None:
        page.say(f"  stored as prediction {saved}")


class _Page:
    """Lines in a language."""

    def __init__(self, console: Console, words: Language) -> None:
        self.console, self.words = console, words

    def line(self, text: str, style: str = "") -> None:
        """Print a text of the language."""
        print_line(self.console, text, style)

    def say(self, english: str, style: str = "") -> None:
        """Print the translation of a text; spaces before it stay."""
        body = english.lstrip(" ")
        self.line(" " * (len(english) - len(body)) + self.words.text(body), style)

    def about(self, indent: int, name: str, english: str, style: str = "") -> None:
        """Print the translation of a text after the name that it is about."""
        text = self.words.filled("{text}: {more}", text=name, more=self.words.text(english))
        self.line(" " * indent + text, style)

    def listed(self, texts: Iterable[str]) -> str:
        """Return the translations of texts, with commas between them."""
        return self.words.text(", ").join(map(self.words.text, texts))


def _print_prediction(page: _Page, found: Prediction) -> None:
    for (group,), rows in found.decided.group_by("consumer_group", maintain_order=True):
        counts: Counter[str] = Counter()
        for outcome, number in rows.select("outcome", "rebalances").rows():
            counts[outcome] += number
        text = page.listed(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES if counts[outcome])
        head = page.words.text(f"{sum(counts.values()):,} rebalances decided again")
        page.line(f"  {page.words.filled('{group}: {more}: {text}', group=group, more=head, text=text)}")
        reasons = rows.filter(pl.col("outcome") == UNDETERMINED)["reason"].drop_nulls().unique().sort().to_list()
        for reason in reasons:
            page.about(4, page.words.text("undetermined"), reason, "yellow")
        of_group = pl.col("consumer_group") == group
        _print_owners(page, found.owners.filter(of_group))
        _print_members(page, found.members.filter(of_group))
    if len(found.pulls):
        _print_pulls(page, found.pulls)


def _print_owners(page: _Page, owners: pl.DataFrame) -> None:
    if owners.is_empty():
        page.say("    its members and queues are not known", "yellow")
        return
    counts = Counter(owners["change"].to_list())
    at_least, at_most = moved_bounds(owners)
    bounds = f"{at_least}" if at_least == at_most else f"{at_least} to {at_most} (by the ids of the members)"
    parts = [f"{bounds} of {len(owners) - counts[NEW]} queues would move"]
    parts += [f"{counts[NEW]} new"] if counts[NEW] else []
    parts += [f"{counts[GONE]} gone: nobody consumes what they hold"] if counts[GONE] else []
    parts += [f"of {counts[UNKNOWN]} it is not known"] if counts[UNKNOWN] else []
    page.line(f"    {page.listed(parts)}")
    before, last = owners["before"].to_list(), owners["after_last"].to_list()
    page.say(f"    queues of each member before: {_shares(before)}")
    if counts[UNKNOWN] < len(owners):
        page.say(f"    queues of each member after:  {_shares(last)}")
    other = pl.col("before") != pl.col("after_last")
    shown = owners.filter((pl.col("change") == GONE) | (pl.col("change").is_in([MOVED, MAY_MOVE]) & other))
    rows = shown.rows(named=True)
    for row in rows[:MOST_QUEUES]:
        queue = f"{row['topic']} {row['broker_name']} {row['queue_id']}"
        after = page.words.text("no such queue") if row["change"] == GONE else _named(row["after_last"], page.words)
        names = {"before": _named(row["before"], page.words), "after": after}
        page.line(f"    {page.words.filled('{queue}: {before} to {after}', queue=queue, **names)}", "dim")
    if len(rows) > MOST_QUEUES:
        page.say(f"    ... and {len(rows) - MOST_QUEUES} more queues; --json has all", "dim")


def _print_members(page: _Page, members: pl.DataFrame) -> None:
    idle = (pl.col("idle_before") > 0) | (pl.col("idle_after") > 0)
    for row in members.filter(idle & ~pl.col("topic").str.starts_with(RETRY)).iter_rows(named=True):
        before, after = (f"{row[f'idle_{name}']} of {row[f'members_{name}']}" for name in ("before", "after"))
        page.about(4, row["topic"], f"{before} members held no queue, {after} would hold none")


def _shares(owners: list[list[str] | None]) -> str:
    counted = Counter(client for held in owners for client in held or ())
    return ", ".join(f"{client} {number}" for client, number in sorted(counted.items())) or "none"


def _named(owners: list[str] | None, words: Language) -> str:
    return words.text("unknown") if owners is None else ", ".join(owners) or words.text("nobody")


def _print_pulls(page: _Page, pulls: pl.DataFrame) -> None:
    total = pulls.select(pl.sum("pulls", "unchanged", "changed", "undetermined")).row(0, named=True)
    text = page.listed(f"{total[outcome]:,} {outcome}" for outcome in OUTCOMES)
    head = page.words.text(f"{total['pulls']:,} answers to pulls decided again")
    page.line(f"  {page.words.filled('{text}: {more}', text=head, more=text)}")
    shown = pulls.filter((pl.col("to_slave") > 0) | (pl.col("to_slave_max") > 0))
    for row in shown.iter_rows(named=True):
        low, high = row["to_slave_min"], row["to_slave_max"]
        after = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        what = f"sent to a slave {row['to_slave']:,} times, would be {after} times, of {row['pulls']:,} answers"
        names = {"group": row["consumer_group"], "topic": row["topic"], "broker": row["broker_name"]}
        page.about(4, page.words.filled("{group} {topic} on {broker}", **names), what)


def _print_lost(page: _Page, lost: LostMaster) -> None:
    page.say(f"  the master of {lost.broker_name} fails at {lost.at:%Y-%m-%d %H:%M:%S} UTC")
    slaves = f"slave {', '.join(map(str, lost.slaves))} would serve its readers" if lost.slaves else "no slave answers"
    page.say(f"    {slaves}; nobody could commit offsets or send there until a master is back")
    readers = ", ".join(f"{group} {number}" for group, number in lost.readers.items()) or "none"
    page.say(f"    queues read there: {readers}")
    for each in lost.unknown_readers:
        page.about(4, page.words.text("not known"), each, "yellow")
    if lost.redelivered is None:
        page.say("    messages delivered again: unknown; copies of both offset files show it", "yellow")
    else:
        again = {group: number for group, number in lost.redelivered.items() if number}
        # A client that keeps its queues goes on from its memory (RebalanceImpl#updateProcessQueueTableInRebalance).
        named = f"none, or if members join meanwhile up to {_numbers(again)}" if again else "none"
        open_part = f" ({lost.unknown_queues} queues unknown)" if lost.unknown_queues else ""
        page.say(f"    messages delivered again: {named}{open_part}")
    if lost.redelivered_max is not None:
        page.say(f"    at most, with what clients have not committed yet: {_numbers(lost.redelivered_max)}")
    bytes_lost = "unknown; mqreplay record polls it" if lost.lost_bytes is None else f"{lost.lost_bytes:,}"
    page.say(f"    bytes that no slave had: {bytes_lost}")


def _numbers(by_group: dict[str, int]) -> str:
    return ", ".join(f"{group} {number:,}" for group, number in by_group.items()) or "none"


def _print_reset(page: _Page, reset: pl.DataFrame) -> None:
    if reset.is_empty():
        page.say("  the group has no committed offset", "yellow")
        return
    low, high = reset["again_min"].sum(), reset["again_max"].sum()
    unknown = int(reset["again_max"].is_null().sum())
    bounds = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    more = f"; of {unknown} queues it is not known" if unknown else ""
    page.say(f"  {bounds} messages would be delivered again{more}")
    for row in reset.iter_rows(named=True):
        again = _bounds(row["again_min"] or 0, row["again_max"], page.words)
        bounds = _bounds(row["offset_min"], row["offset_max"], page.words)
        values = {"again": again, "offset": f"{row['committed']:,}", "bounds": bounds}
        queue = f"{row['topic']} {row['broker_name']} {row['queue_id']}"
        page.about(4, queue, page.words.filled("{again} (committed {offset}, reset to {bounds})", **values), "dim")


def _bounds(low: int | None, high: int | None, words: Language) -> str:
    if low is None or high is None:
        return words.text("unknown")
    return f"{low:,}" if low == high else words.filled("{low} to {high}", low=f"{low:,}", high=f"{high:,}")


def _print_drain(page: _Page, drain: pl.DataFrame) -> None:
    if drain.is_empty():
        page.say("  nothing is known of the group's queues then", "yellow")
        return
    for row in drain.iter_rows(named=True):
        page.about(2, row["topic"], _drained(row))
    page.say(f"  {ASSUMPTION}", "dim")


def _drained(row: dict[str, Any]) -> str:
    if row["lag"] is None:
        return "its backlog is not known"
    if row["lag"] == 0:
        return "no message waits"
    waiting = f"{row['lag']:,} messages wait"
    if row["pulled_max"] is None or row["produced"] is None:
        return f"{waiting}; the group's rates are not known"
    rates = f"consumed {row['pulled_min']:.1f} to {row['pulled_max']:.1f}/s, stored {row['produced']:.1f}/s"
    if row["seconds_min"] is None:
        return f"{waiting} and do not become fewer ({rates})"
    most = "or never" if row["seconds_max"] is None else f"to {row['seconds_max']:,.0f} s"
    return f"{waiting}, gone in {row['seconds_min']:,.0f} s {most} ({rates})"


def print_checked(found: Checked, *, as_json: bool, words: Language | None = None) -> None:
    """Print what came of a prediction on stdout."""
    if as_json:
        head = {"prediction_id": found.prediction_id, "supposed": found.supposed, "of_day": found.of_day}
        print(json_text({**head, "day": found.day, "answer": found.answer, "rows": found.rows}, indent=1, default=str))
        return
    page = _Page(text_console(), words or in_english())
    page.about(0, page.words.text(f"prediction {found.prediction_id}"), found.supposed, "bold")
    page.say(f"  made of {found.of_day}, compared with {found.day}")
    left = 0
    for judgement in (OUTSIDE, WITHIN, UNDETERMINED):
        rows = [row for row in found.rows if row["judgement"] == judgement]
        shown = rows if judgement == OUTSIDE else rows[:MOST_ROWS]
        left += len(rows) - len(shown)
        for row in shown:
            mark = Text(padded(page.words.text(judgement), 13), JUDGEMENTS[judgement])
            print_row(page.console, Text(_prediction(row, page.words)), 2, mark)
    if left:
        page.say(f"  ... and {counted(left, 'more value')}; --json has all", "dim")
    counts = Counter(row["judgement"] for row in found.rows)
    numbers = page.listed(f"{counts[name]:,} {name}" for name in (WITHIN, OUTSIDE, UNDETERMINED))
    verdict = (page.words.text(VERDICTS[found.answer]), JUDGEMENTS[found.answer])
    print_row(page.console, Text.assemble(page.words.filled("{text}: {more}", text=numbers, more=""), verdict), 2)


def _prediction(row: dict[str, Any], words: Language) -> str:
    names = (row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"])
    place = " ".join(str(name) for name in names if name is not None)
    low, high, measure = row["after_min"], row["after_max"], row["measure"]
    bounds = _measured(measure, low) if low == high else f"{_measured(measure, low)} to {_measured(measure, high)}"
    values = {"text": words.text(WHAT[measure]), "place": place, "bounds": words.text(bounds)}
    text = words.filled("{text} {place}: predicted {bounds}", **values)
    if row["came"] is not None:
        came = words.filled("came {value}", value=words.text(_measured(measure, row["came"])))
        text = words.filled("{text}, {more}", text=text, more=came)
    if row["reason"]:
        text = words.filled("{step}; {reason}", step=text, reason=words.text(row["reason"]))
    return printable(text)


def _measured(measure: str, value: int | None) -> str:
    """Return a value in words. The owner of a queue is a place in the sorted list of members, from 1.

    >>> _measured("owner", 2), _measured("owner", 0), _measured("to_slave", 682_836), _measured("members", 3)
    ('member 2', 'nobody', '68.2836 %', '3')
    """
    if value is None:
        return "unknown"
    if measure == "owner":
        return f"member {value}" if value else "nobody"
    return f"{round(100 * value / MILLION, 4):g} %" if measure == "to_slave" else f"{value:,}"
