"""What would have been, as text in the terminal or as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
from rich.console import Console
from rich.text import Text

from mqreplay.cli.terminal import text_console
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decisions.supposed_shares import (
    CHANGED,
    GONE,
    MAY_MOVE,
    MOVED,
    NEW,
    UNCHANGED,
    UNDETERMINED,
    UNKNOWN,
    moved_bounds,
)
from mqreplay.decisions.suppositions import text_of
from mqreplay.lake.plain_rows import plain_rows
from mqreplay.moment.drain import ASSUMPTION
from mqreplay.moment.what_if_moment import LostMaster
from mqreplay.night.what_if import Answer, Prediction
from mqreplay.printable import json_text, printable

OUTCOMES = (UNCHANGED, CHANGED, UNDETERMINED)
MOST_QUEUES = 40


def print_whatif(answer: Answer, saved: str | None = None, *, as_json: bool) -> None:
    """Print the answer on stdout. ``saved``: the id of the stored prediction."""
    if as_json:
        stored = {} if saved is None else {"prediction_id": saved}
        print(json_text(as_plain(answer) | stored, indent=1, default=str))
        return
    console = text_console()
    console.print(Text(printable(answer.cluster), "bold"))
    if answer.prediction is not None:
        _print_prediction(console, answer.prediction)
    if answer.lost is not None:
        _print_lost(console, answer.lost)
    if answer.reset is not None:
        _print_reset(console, answer.reset)
    if answer.drain is not None:
        _print_drain(console, answer.drain)
    if saved is not None:
        console.print(Text(f"  stored as prediction {saved}"))


def as_plain(answer: Answer) -> dict[str, Any]:
    """Return the answer as plain values."""
    found: dict[str, Any] = {"cluster": answer.cluster}
    if (prediction := answer.prediction) is not None:
        found |= {"day": prediction.day, "supposed": [text_of(each) for each in prediction.suppositions]}
        found |= {name: plain_rows(getattr(prediction, name)) for name in ("decided", "owners", "pulls", "members")}
    if answer.lost is not None:
        found["lost_master"] = vars(answer.lost) | {"at": answer.lost.at.replace(tzinfo=None)}
    if answer.reset is not None:
        found["reset"] = plain_rows(answer.reset)
    if answer.drain is not None:
        found |= {"drain": plain_rows(answer.drain), "assumption": ASSUMPTION}
    return found


def _print_prediction(console: Console, found: Prediction) -> None:
    for (group,), rows in found.decided.group_by("consumer_group", maintain_order=True):
        counts: Counter[str] = Counter()
        for outcome, number in rows.select("outcome", "rebalances").rows():
            counts[outcome] += number
        total = sum(counts.values())
        text = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES if counts[outcome])
        console.print(Text(printable(f"  {group}: {total:,} rebalances decided again: {text}")), soft_wrap=True)
        reasons = rows.filter(pl.col("outcome") == UNDETERMINED)["reason"].drop_nulls().unique().sort().to_list()
        for reason in reasons:
            console.print(Text(printable(f"    undetermined: {reason}"), "yellow"), soft_wrap=True)
        of_group = pl.col("consumer_group") == group
        _print_owners(console, found.owners.filter(of_group))
        _print_members(console, found.members.filter(of_group))
    if len(found.pulls):
        _print_pulls(console, found.pulls)


def _print_owners(console: Console, owners: pl.DataFrame) -> None:
    if owners.is_empty():
        console.print(Text("    its members and queues are not known", "yellow"))
        return
    counts = Counter(owners["change"].to_list())
    at_least, at_most = moved_bounds(owners)
    bounds = f"{at_least}" if at_least == at_most else f"{at_least} to {at_most} (by the ids of the members)"
    parts = [f"{bounds} of {len(owners) - counts[NEW]} queues would move"]
    parts += [f"{counts[NEW]} new"] if counts[NEW] else []
    parts += [f"{counts[GONE]} gone: nobody consumes what they hold"] if counts[GONE] else []
    parts += [f"of {counts[UNKNOWN]} it is not known"] if counts[UNKNOWN] else []
    console.print(Text(f"    {', '.join(parts)}"), soft_wrap=True)
    before, last = owners["before"].to_list(), owners["after_last"].to_list()
    console.print(Text(printable(f"    queues of each member before: {_shares(before)}")), soft_wrap=True)
    if counts[UNKNOWN] < len(owners):
        console.print(Text(printable(f"    queues of each member after:  {_shares(last)}")), soft_wrap=True)
    other = pl.col("before") != pl.col("after_last")
    shown = owners.filter((pl.col("change") == GONE) | (pl.col("change").is_in([MOVED, MAY_MOVE]) & other))
    rows = shown.rows(named=True)
    for row in rows[:MOST_QUEUES]:
        queue = f"{row['topic']} {row['broker_name']} {row['queue_id']}"
        after = "no such queue" if row["change"] == GONE else _named(row["after_last"])
        text = f"    {queue}: {_named(row['before'])} to {after}"
        console.print(Text(printable(text), "dim"), soft_wrap=True)
    if len(rows) > MOST_QUEUES:
        console.print(Text(f"    ... and {len(rows) - MOST_QUEUES} more queues; --json has all", "dim"))


def _print_members(console: Console, members: pl.DataFrame) -> None:
    idle = (pl.col("idle_before") > 0) | (pl.col("idle_after") > 0)
    for row in members.filter(idle & ~pl.col("topic").str.starts_with(RETRY)).iter_rows(named=True):
        before, after = (f"{row[f'idle_{name}']} of {row[f'members_{name}']}" for name in ("before", "after"))
        text = f"    {row['topic']}: {before} members held no queue, {after} would hold none"
        console.print(Text(printable(text)), soft_wrap=True)


def _shares(owners: list[list[str] | None]) -> str:
    counted = Counter(client for held in owners for client in held or ())
    return ", ".join(f"{client} {number}" for client, number in sorted(counted.items())) or "none"


def _named(owners: list[str] | None) -> str:
    return "unknown" if owners is None else ", ".join(owners) or "nobody"


def _print_pulls(console: Console, pulls: pl.DataFrame) -> None:
    total = pulls.select(pl.sum("pulls", "unchanged", "changed", "undetermined")).row(0, named=True)
    text = f"{total['unchanged']:,} unchanged, {total['changed']:,} changed, {total['undetermined']:,} undetermined"
    console.print(Text(f"  {total['pulls']:,} answers to pulls decided again: {text}"), soft_wrap=True)
    shown = pulls.filter((pl.col("to_slave") > 0) | (pl.col("to_slave_max") > 0))
    for row in shown.iter_rows(named=True):
        low, high = row["to_slave_min"], row["to_slave_max"]
        after = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        what = f"sent to a slave {row['to_slave']:,} times, would be {after} times"
        where = f"{row['consumer_group']} {row['topic']} on {row['broker_name']}"
        console.print(Text(printable(f"    {where}: {what}, of {row['pulls']:,} answers")), soft_wrap=True)


def _print_lost(console: Console, lost: LostMaster) -> None:
    console.print(Text(printable(f"  the master of {lost.broker_name} fails at {lost.at:%Y-%m-%d %H:%M:%S} UTC")))
    slaves = f"slave {', '.join(map(str, lost.slaves))} would serve its readers" if lost.slaves else "no slave answers"
    text = f"    {slaves}; nobody could commit offsets or send there until a master is back"
    console.print(Text(text), soft_wrap=True)
    readers = ", ".join(f"{group} {number}" for group, number in lost.readers.items()) or "none"
    console.print(Text(printable(f"    queues read there: {readers}")), soft_wrap=True)
    for each in lost.unknown_readers:
        console.print(Text(printable(f"    not known: {each}"), "yellow"), soft_wrap=True)
    if lost.redelivered is None:
        console.print(Text("    messages delivered again: unknown; copies of both offset files show it", "yellow"))
    else:
        again = {group: number for group, number in lost.redelivered.items() if number}
        # A client that keeps its queues goes on from its memory (RebalanceImpl#updateProcessQueueTableInRebalance).
        named = f"none, or if members join meanwhile up to {_numbers(again)}" if again else "none"
        open_part = f" ({lost.unknown_queues} queues unknown)" if lost.unknown_queues else ""
        console.print(Text(printable(f"    messages delivered again: {named}{open_part}")), soft_wrap=True)
    if lost.redelivered_max is not None:
        text = f"    at most, with what clients have not committed yet: {_numbers(lost.redelivered_max)}"
        console.print(Text(printable(text)), soft_wrap=True)
    bytes_lost = "unknown; mqreplay record polls it" if lost.lost_bytes is None else f"{lost.lost_bytes:,}"
    console.print(Text(f"    bytes that no slave had: {bytes_lost}"))


def _numbers(by_group: dict[str, int]) -> str:
    return ", ".join(f"{group} {number:,}" for group, number in by_group.items()) or "none"


def _print_reset(console: Console, reset: pl.DataFrame) -> None:
    if reset.is_empty():
        console.print(Text("  the group has no committed offset", "yellow"))
        return
    low, high = reset["again_min"].sum(), reset["again_max"].sum()
    unknown = int(reset["again_max"].is_null().sum())
    bounds = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    more = f"; of {unknown} queues it is not known" if unknown else ""
    console.print(Text(f"  {bounds} messages would be delivered again{more}"))
    for row in reset.iter_rows(named=True):
        again = "unknown" if row["again_max"] is None else f"{row['again_min'] or 0:,} to {row['again_max']:,}"
        queue = f"{row['topic']} {row['broker_name']} {row['queue_id']}"
        at = f"committed {row['committed']}, reset to {row['offset_min']} to {row['offset_max']}"
        console.print(Text(printable(f"    {queue}: {again} ({at})"), "dim"), soft_wrap=True)


def _print_drain(console: Console, drain: pl.DataFrame) -> None:
    if drain.is_empty():
        console.print(Text("  nothing is known of the group's queues then", "yellow"))
        return
    for row in drain.iter_rows(named=True):
        console.print(Text(printable(f"  {row['topic']}: {_drained(row)}")), soft_wrap=True)
    console.print(Text(f"  {ASSUMPTION}", "dim"), soft_wrap=True)


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
