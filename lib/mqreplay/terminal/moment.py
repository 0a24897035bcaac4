"""The state at an instant, changes between two, two days side by side, and a broker's readiness, in the terminal."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl
from rich.console import Console
from rich.text import Text

from mqreplay.answers.compare import Comparison
from mqreplay.answers.ready import Readiness
from mqreplay.answers.state import State
from mqreplay.language.language import Language, in_english
from mqreplay.terminal.console import COLOURS, padded, print_line, print_row, print_table, print_text, text_console
from mqreplay.words.printable import printable
from mqreplay.words.time_span import time_span

UNKNOWN = "?"
CHANGES = {"new": "bold red", "gone": "green", "recurs": "yellow"}
COUNTED = {"new": "{n} new", "gone": "{n} gone", "recurs": "{n} recur"}  # of a comparison
ANSWERS = {"yes": "green", "no": "bold red", "undetermined": "yellow"}
UP = {True: ("up", "green"), False: ("DOWN", "bold red"), None: (UNKNOWN, "dim")}
Cell = Text | str


def print_state(state: State, group: str | None, words: Language | None = None) -> None:
    """Print the state: brokers, groups, or the members and queues of one group, findings, and what is not known."""
    words = words or in_english()
    console = text_console()
    at = words.filled("{cluster} at {time} UTC", cluster=printable(state.cluster), time=f"{state.at:%Y-%m-%d %H:%M:%S}")
    print_text(console, Text(at, "bold"))
    _print_brokers(console, state, words)
    if group is None:
        _print_groups(console, state, words)
    else:
        title = words.filled("Members of {group}", group=printable(group))
        columns = ("client_id", "member_since", "strategy", "message_model", "consume_from_where", "queues")
        names = ("client", "since", "strategy", "model", "from where", "queues computed")
        rows = [[_text(value) for value in row] for row in state.members.select(columns).rows()]
        _print_section(console, title, names, rows, [5], words)
        _print_queues(console, words.filled("Queues of {group}", group=printable(group)), state.queues, words)
    _print_findings(console, state.findings, words)
    if state.unknown:
        console.print(Text(words.text("Unknown"), "bold"))
    for text in state.unknown:
        print_text(console, Text(printable(words.text(text))), 2)


def print_changes(
    cluster: str, since: dt.datetime, until: dt.datetime, changes: pl.DataFrame, words: Language | None = None
) -> None:
    """Print the changes, one on a line, each with its cause below."""
    words = words or in_english()
    console = text_console()
    print_row(console, Text.assemble((printable(cluster), "bold"), f" {words.text(time_span(since, until))}"))
    for row in changes.iter_rows(named=True):
        who = " ".join(filter(None, (row["consumer_group"], row["client_id"])))
        change = padded(words.filled(row["change"]), 7)
        head = Text.assemble((f"{row['ts']:%H:%M:%S.%f}"[:-3], "dim"), "  ", (change, "cyan"), "  ")
        text = words.text(row["what"])
        what = words.filled("{text}: {more}", text=who, more=text) if who else text
        print_row(console, Text(printable(what)), head=head)
        if row["cause"]:
            cause = Text(printable(words.text(row["cause"])), "dim")
            print_text(console, cause, min(head.cell_len, console.width // 4))
    if changes.is_empty():
        console.print(words.text("Nothing changed that the recording shows."))


def _print_section(
    console: Console,
    title: str,
    names: tuple[str, ...],
    rows: Sequence[Sequence[Cell]],
    right: Collection[int],
    words: Language,
) -> None:
    console.print(Text(title, "bold"))
    if rows:
        print_table(console, [words.filled(name) for name in names], rows, right, indent=2)
    else:
        console.print(Text(f"  {words.text('none')}", "dim"))


def _text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, dt.datetime):
        return f"{value:%H:%M:%S}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _print_brokers(console: Console, state: State, words: Language) -> None:
    rows: list[list[Cell]] = []
    for row in state.brokers.iter_rows(named=True):
        known = {"n": row["listed_by"], "m": row["name_servers"]}
        listed = UNKNOWN if row["listed_by"] is None else words.filled("{n} of {m}", **known)
        behind = _text(row["behind_bytes"]) if row["broker_id"] else ""
        up, colour = UP[row["up"]]
        name = printable(f"{row['broker_name']} {row['broker_id']}")
        values = [_text(row[column]) for column in ("answered_ts", "broker_role", "rocketmq_version")]
        rows.append([name, Text(words.text(up), colour), *values, listed, behind])
    names = ("broker", "state", "answered", "role", "version", "listed by", "bytes behind")
    _print_section(console, words.filled("Brokers"), names, rows, [6], words)


def _print_groups(console: Console, state: State, words: Language) -> None:
    names = ("group", "members", "queues", "no owner", "several", "lag")
    columns = ("consumer_group", "members", "queues", "without_owner", "shared", "lag")
    rows: list[list[Cell]] = [
        # Nobody owns queues where each member consumes all of them.
        [*map(_text, row[:3]), *("-" if each is None else _text(each) for each in row[3:5]), _text(row[5])]
        for row in state.groups.select(columns).rows()
    ]
    _print_section(console, words.filled("Groups"), names, rows, range(1, 6), words)


def _print_queues(console: Console, title: str, queues: pl.DataFrame, words: Language) -> None:
    rows: list[list[Cell]] = []
    for row in queues.iter_rows(named=True):
        if row["owners"] is None:
            values = {"time": _text(row["unknown_since"]), "clients": printable(", ".join(row["last_owners"]))}
            owners = Text(words.filled("unknown since {time}, last {clients}", **values), "yellow")
        elif row["owners"]:
            owners = Text(printable(", ".join(row["owners"])))
        else:
            owners = Text(words.text("nobody"), "yellow")
        queue = printable(f"{row['topic']} {row['broker_name']} {row['queue_id']}")
        source = f"{_text(row['committed_ts'])} {row['committed_by']}" if row["committed_by"] else UNKNOWN
        pull = UNKNOWN if row["suggested_broker_id"] is None else str(row["suggested_broker_id"])
        numbers = [_text(row[name]) for name in ("committed", "end_offset", "lag")]
        rows.append([queue, owners, printable(row["locked_by"] or ""), source, pull, *numbers])
    names = ("queue", "owner", "lock", "committed by", "pull from", "committed", "end", "lag")
    _print_section(console, title, names, rows, range(5, 8), words)


def _print_findings(console: Console, findings: pl.DataFrame, words: Language) -> None:
    number = findings.height or words.text("none")
    console.print(Text(words.filled("Findings open: {n}", n=number), "bold"))
    for row in findings.iter_rows(named=True):
        severity = padded(words.text(row["severity"]), 9)
        head = Text.assemble((severity, COLOURS[row["severity"]]), (f"{printable(row['kind']):22}", "bold"))
        when = f"{words.text(time_span(row['from_ts'], row['to_ts']))}  {row['finding_id'][:8]}"
        print_text(console, Text(when, "dim"), 2, head)
        print_text(console, Text(printable(row["summary"])), 11)


def print_comparison(comparison: Comparison, words: Language | None = None) -> None:
    """Print how many findings are new, gone and recur, then what differs, one on a line: the most severe first."""
    words = words or in_english()
    console = text_console()
    counts = [words.filled(COUNTED[name], n=n or words.text("none")) for name, n in comparison.counts.items()]
    both = {"before": comparison.before, "after": comparison.after}
    head = words.filled("{cluster} {before} and {after}", cluster=printable(comparison.cluster), **both)
    text = words.filled("{text}: {more}", text=head, more=words.text(", ").join(counts))
    print_row(console, Text(text, "bold"))
    for row in comparison.findings.iter_rows(named=True):
        broker = row["broker_name"] if row["broker_id"] is None else f"{row['broker_name']}/{row['broker_id']}"
        names = (row["consumer_group"], row["topic"], broker)
        where = printable(" ".join(each for each in names if each))
        number = words.filled("{before} and {after}", before=row["before"], after=row["after"])
        line = Text.assemble(
            (padded(words.text(row["severity"]), 9), COLOURS.get(row["severity"], "")),
            (padded(words.text(row["change"]), 8), CHANGES[row["change"]]),
            (f"{printable(row['kind']):24}", "bold"),
        )
        print_row(console, Text.assemble(f"{where}  ", (f"{number}  {row['finding_id'][:8]}", "dim")), 2, line)
    for row in comparison.groups.iter_rows(named=True):
        text = words.filled("group {group}: {more}", group=row["consumer_group"], more=_differences(row, words))
        print_line(console, f"  {text}")
    for row in comparison.settings.iter_rows(named=True):
        values = [row[name] or words.text("not set") for name in ("before", "after")]
        change = words.filled("{name} {before} to {after}", name=row["name"], before=values[0], after=values[1])
        broker = f"{row['broker_name']} {row['broker_id']}"
        print_line(console, f"  {words.filled('{text}: {more}', text=broker, more=change)}")
    if comparison.findings.is_empty() and comparison.groups.is_empty() and comparison.settings.is_empty():
        console.print(f"  {words.text('nothing differs')}")


def _differences(row: Mapping[str, Any], words: Language) -> str:
    """Return the numbers of a group that differ."""
    texts = []
    for name in ("members", "queues", "most_lag", "rounds"):
        before, after = row[f"{name}_before"], row[f"{name}_after"]
        if before != after:
            values = [words.text("unknown") if each is None else f"{each:,}" for each in (before, after)]
            name = words.text(name.replace("_", " "))
            texts.append(words.filled("{name} {before} to {after}", name=name, before=values[0], after=values[1]))
    return words.text(", ").join(texts)


def print_readiness(ready: Readiness, words: Language | None = None) -> None:
    """Print the answer, and each check with its reason."""
    words = words or in_english()
    console = text_console()
    broker, at = f"{printable(ready.broker_name)} {ready.broker_id}", f"{ready.at:%Y-%m-%d %H:%M:%S}"
    what = words.filled("restart {broker} at {time} UTC: ", broker=broker, time=at)
    print_row(console, Text.assemble((what, "bold"), (words.text(ready.answer), ANSWERS[ready.answer])))
    for check in ready.checks:
        answer = (padded(words.text(check.answer), 13), ANSWERS[check.answer])
        head = Text.assemble(answer, padded(words.text(check.name), 12))
        print_row(console, Text(printable(words.text(check.text))), 2, head)
