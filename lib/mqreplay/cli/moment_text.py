"""The state at an instant, and the changes between two, as text in the terminal."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mqreplay.cli.terminal import COLOURS, text_console
from mqreplay.cli.time_span import time_span
from mqreplay.moment.state import State
from mqreplay.printable import printable

UNKNOWN = "?"
UP = {True: ("up", "green"), False: ("DOWN", "bold red"), None: (UNKNOWN, "dim")}


def print_state(state: State, group: str | None) -> None:
    """Print the state: brokers, groups, or the members and queues of one group, findings, and what is not known."""
    console = text_console()
    console.print(Text.assemble((printable(state.cluster), "bold"), f" at {state.at:%Y-%m-%d %H:%M:%S} UTC"))
    _section(console, "Brokers", _brokers(state))
    if group is None:
        names = ("group", "members", "queues", "no owner", "several", "lag")
        columns = ("consumer_group", "members", "queues", "without_owner", "shared", "lag")
        rows = state.groups.select(columns).rows()
        # Nobody owns queues where each member consumes all of them.
        shown = [(*row[:3], *("-" if each is None else each for each in row[3:5]), row[5]) for row in rows]
        _section(console, "Groups", _table(names, shown, numbers=columns[1:]))
    else:
        _section(console, f"Members of {group}", _members(state.members))
        _section(console, f"Queues of {group}", _queues(state.queues))
    _findings(console, state.findings)
    if state.unknown:
        console.print(Text("Unknown", "bold"))
    for text in state.unknown:
        console.print(Padding(Text(printable(text)), (0, 0, 0, 2)))


def print_changes(cluster: str, since: dt.datetime, until: dt.datetime, changes: pl.DataFrame) -> None:
    """Print the changes, one on a line, each with its cause below."""
    console = text_console()
    console.print(Text.assemble((printable(cluster), "bold"), f" from {time_span(since, until)}"))
    for row in changes.iter_rows(named=True):
        who = " ".join(filter(None, (row["consumer_group"], row["client_id"])))
        head = (f"{row['ts']:%H:%M:%S.%f}"[:-3], "dim"), "  ", (f"{row['change']:8}", "cyan")
        what = f"{who}: {row['what']}" if who else row["what"]
        console.print(Text.assemble(*head, printable(what)), soft_wrap=True)
        if row["cause"]:
            console.print(Padding(Text(printable(row["cause"]), "dim"), (0, 0, 0, 22)))
    if changes.is_empty():
        console.print("Nothing changed that the recording shows.")


def _section(console: Console, title: str, table: Table) -> None:
    console.print(Text(printable(title), "bold"))
    console.print(Padding(table if table.row_count else Text("none", "dim"), (0, 0, 0, 2)))


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[str] = ()) -> Table:
    """Return a table; the last columns, as many as ``numbers``, are to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(names):
        right = place >= len(names) - len(numbers)
        table.add_column(name, justify="right" if right else "left", header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*(each if isinstance(each, Text) else Text(_text(each)) for each in row))
    return table


def _text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, dt.datetime):
        return f"{value:%H:%M:%S}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _brokers(state: State) -> Table:
    rows = []
    for row in state.brokers.iter_rows(named=True):
        listed = UNKNOWN if row["listed_by"] is None else f"{row['listed_by']} of {row['name_servers']}"
        behind = row["behind_bytes"] if row["broker_id"] else ""
        name = f"{row['broker_name']} {row['broker_id']}"
        role = row["broker_role"] or UNKNOWN
        rows.append((name, Text(*UP[row["up"]]), row["answered_ts"], role, row["rocketmq_version"], listed, behind))
    return _table(("broker", "", "answered", "role", "version", "listed by", "bytes behind"), rows, ("behind",))


def _members(members: pl.DataFrame) -> Table:
    columns = ("client_id", "member_since", "strategy", "message_model", "consume_from_where", "queues")
    names = ("client", "since", "strategy", "model", "from where", "queues computed")
    return _table(names, members.select(columns).rows(), ("queues",))


def _queues(queues: pl.DataFrame) -> Table:
    rows = []
    for row in queues.iter_rows(named=True):
        if row["owners"] is None:
            last = printable(", ".join(row["last_owners"]))
            owners = Text(f"unknown since {_text(row['unknown_since'])}, last {last}", "yellow")
        else:
            owners = Text(printable(", ".join(row["owners"]))) if row["owners"] else Text("nobody", "yellow")
        queue = f"{row['topic']} {row['broker_name']} {row['queue_id']}"
        source = f"{_text(row['committed_ts'])} {row['committed_by']}" if row["committed_by"] else UNKNOWN
        pull = UNKNOWN if row["suggested_broker_id"] is None else str(row["suggested_broker_id"])
        lock = row["locked_by"] or ""
        rows.append((queue, owners, lock, source, pull, row["committed"], row["end_offset"], row["lag"]))
    names = ("queue", "owner", "lock", "committed by", "pull from", "committed", "end", "lag")
    return _table(names, rows, ("committed", "end", "lag"))


def _findings(console: Console, findings: pl.DataFrame) -> None:
    console.print(Text(f"Findings open: {findings.height or 'none'}", "bold"))
    for row in findings.iter_rows(named=True):
        head = (f"{row['severity']:9}", COLOURS[row["severity"]]), (f"{printable(row['kind']):22}", "bold")
        when = time_span(row["from_ts"], row["to_ts"])
        text = Text.assemble(*head, (f"{when}  {row['finding_id'][:8]}", "dim"))
        console.print(Padding(text, (0, 0, 0, 2)))
        console.print(Padding(Text(printable(row["summary"])), (0, 0, 0, 11)))
