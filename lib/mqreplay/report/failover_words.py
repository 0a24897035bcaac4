"""The timeline of a failover in words, made of rows of gold.failover_step."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mqreplay.language.language import Language, in_english

# What each step says of one and of several name servers, clients or groups, in the order of a failover.
STEP_TEXTS: Mapping[str, tuple[str, str]] = {
    "stopped_answering": ("the broker stopped answering", ""),
    "removed_by_name_server": ("a name server removed it", "{n} name servers removed it"),
    "new_master_listed": ("another broker was listed as the master", ""),
    "left_route": ("a client got a route without it", "{n} clients got routes without it"),
    "first_slave_read": ("a client read from the slave", "{n} clients read from the slave"),
    "delivered_again": ("messages were delivered again to a group", "messages were delivered again to {n} groups"),
    "answers_again": ("the broker answered again", ""),
    "listed_again": ("a name server listed it again", "{n} name servers listed it again"),
    "back_in_route": ("a client had it in its route again", "{n} clients had it in their routes again"),
    "first_master_read": ("a client read from the master again", "{n} clients read from the master again"),
}
NOT_SEEN: Mapping[str, tuple[str, str]] = {
    "removed_by_name_server": ("a name server kept it", "{n} name servers kept it"),
    "left_route": ("a client kept it in its route", "{n} clients kept it in their routes"),
    "listed_again": ("a name server did not list it again", "{n} name servers did not list it again"),
    "back_in_route": ("a client did not get it back", "{n} clients did not get it back"),
}
NAMED = 2  # names in one line; more are counted
AMOUNTS = {"first_slave_read": "pull", "delivered_again": "message"}


def step_words(step: str, number: int, words: Language | None = None, *, happened: bool = True) -> str:
    """Return what a number of rows of one step say.

    >>> step_words("left_route", 1), step_words("left_route", 3, happened=False)
    ('a client got a route without it', '3 clients kept it in their routes')
    """
    filled = (words or in_english()).filled
    if (known := (STEP_TEXTS if happened else NOT_SEEN).get(step)) is None:
        return filled("{step} was not seen", step=step)
    one, many = known
    return filled(many, n=number) if number > 1 and many else filled(one)


def timeline_lines(rows: Iterable[Mapping[str, Any]], words: Language | None = None) -> list[tuple[str, str]]:
    """Return the lines of a timeline, each a time and its text: rows of a step with one reason are one line."""
    words = words or in_english()
    return [_line(each, words) for each in grouped_steps(rows)]


def grouped_steps(rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return the rows of each step that have one reason, in order of time."""
    grouped: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["ts"], list(STEP_TEXTS).index(row["step"]), _who(row) or "")):
        key = tuple(row[name] for name in ("outage_ts", "step", "happened", "judgement", "reason"))
        grouped.setdefault(key, []).append(row)
    return list(grouped.values())


def _line(rows: Sequence[Mapping[str, Any]], words: Language) -> tuple[str, str]:
    first, last = rows[0], rows[-1]
    when = _time(first["ts"])
    if first["ts"] != last["ts"]:
        when = words.filled("{begin} to {end}", begin=when, end=_time(last["ts"]))
    text = step_text(rows, words)
    why = why_text(rows, words)
    return when, words.filled("{step}; {reason}" if first["judgement"] else "{step}: {reason}", step=text, reason=why)


def step_text(rows: Sequence[Mapping[str, Any]], words: Language) -> str:
    """Return what rows of one step and reason say."""
    first = rows[0]
    text = step_words(first["step"], len(rows), words, happened=first["happened"])
    names = [name for row in rows if (name := _who(row))]
    if 0 < len(names) <= NAMED or (names and first["judgement"] == "differ"):
        named = f"{', '.join(names[:NAMED])}{', ...' if len(names) > NAMED else ''}"
        text = words.filled("{step} ({names})", step=text, names=named)
    amount = sum(row["amount"] or 0 for row in rows)
    if amount:
        text = words.filled("{text}, {more}", text=text, more=words.counted(amount, AMOUNTS[first["step"]]))
    return text


def why_text(rows: Sequence[Mapping[str, Any]], words: Language) -> str:
    """Return the reason of rows of one step, after their judgement if RocketMQ has a rule for it."""
    first = rows[0]
    due = [row["expected_to"] for row in rows if row["expected_to"] is not None]
    reason = words.text(first["reason"])
    if not first["judgement"]:
        return reason
    values = {"judgement": words.text(first["judgement"]), "reason": reason}
    if not due:
        return words.filled("{judgement}: {reason}", **values)
    return words.filled("{judgement}, allowed until {until}: {reason}", until=_time(max(due)), **values)


def _who(row: Mapping[str, Any]) -> str | None:
    name: str | None = row["namesrv_addr"] or row["client_id"] or row["consumer_group"]
    return name


def _time(ts: dt.datetime) -> str:
    return ts.strftime("%H:%M:%S.%f")[:-3]
