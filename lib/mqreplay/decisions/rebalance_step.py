"""gold.rebalance_step: the process queue table that a client shows against the one that its rebalances must leave.

Between two tables of a client it computed shares. RebalanceImpl#updateProcessQueueTableInRebalance drops what is not in
a share and takes what is new there, so the second table follows from the first one and the shares (core/rebalance.py).
A step ends within a rebalance's interval: a table may be that of any share since then. A queue that was not pulled for
two minutes is dropped and taken again, so no table has one whose last pull is older than that and an interval.

Tables that agree and did not change are only counted. Clients whose shares no log has are judged by gold.allocation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.process_queue import PULL_MAX_IDLE_TIME, is_pull_expired
from mqreplay.core.rebalance import (
    HeldQueue,
    truncate_message_queue_not_my_topic,
    update_process_queue_table_in_rebalance,
)
from mqreplay.decisions.decision import VERDICT_WORDS, Decision
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.frames import QUEUES, columns, filled, first_of, ms
from mqreplay.evidence.members.observed_clients import CLIENT_LOG
from mqreplay.evidence.members.process_queue_tables import SLACK, computed_shares, shown_tables, with_shares
from mqreplay.words.keys import MEMBER, MEMBER_TOPIC

SCHEMA: Final[dict[str, pl.DataType]] = {
    **columns("day", "consumer_group", "topic", "client_id", "ts", "before_ts", "rebalance_ts"),
    **dict.fromkeys(("added", "removed", "kept_dropped", "lacking", "extra", "expired"), QUEUES),
    **columns("judgement", "reason", "record_id", "source_digest"),
}
STEP_VERDICT: Final = ("added", "removed", "kept_dropped", "lacking", "extra", "expired", "judgement", "reason")
SAME_QUEUES: Final = "the client held the queues that its rebalances left it"
EXTRA: Final = "the client still held a queue, and had not dropped it, a rebalance after its share lost the queue"
EXPIRED_QUEUE: Final = "the client held a queue whose last pull was so old that a rebalance had dropped the queue"
DROPPING: Final = "the client had dropped a queue of its share, as it does during a reset of its offset"
LACKING: Final = "the client lacked a queue of its share: the lock was refused, no offset was known, or it was busy"
FOREIGN: Final = "the client held a queue of a topic that it did not subscribe to, at two answers"
NO_SHARE: Final = "no log has the shares that the client computed"
OLD_SHARE: Final = "no share was recorded for an interval: the client could not rebalance, or the log has a gap"


class Table(NamedTuple):
    """A client's queues of one topic at an instant: when each was pulled last, and which are dropped; epoch ms.

    ``clock``: the instant by the clock of the pulls, or an earlier one.
    """

    at: int
    clock: int
    pulled: Mapping[MessageQueue, int | None]
    dropped: frozenset[MessageQueue]
    foreign: bool = False  # of a topic that the client had not subscribed to at the answer before, either

    def held(self, *, consuming: bool) -> dict[MessageQueue, HeldQueue]:
        """Return the table as RebalanceImpl has it; a queue whose last pull is not known was just pulled."""
        return {
            queue: HeldQueue(_or(pulled, self.at), self.at, consuming, queue in self.dropped)
            for queue, pulled in self.pulled.items()
        }


class Shares(NamedTuple):
    """The shares of a client in a topic, and the instants at which it computed them, in order."""

    at: Sequence[int]
    queues: Sequence[frozenset[MessageQueue]]


def rebalance_step(assignment: pl.DataFrame, rebalance: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return one row for each table that a client showed of a topic, with gold.rebalance_step's columns.

    Both arguments are silver tables. A rebalance is each ``interval_s`` seconds. Of a client without any share there is
    one row a topic and day. See `stored_rows` for the rows that are kept.
    """
    # In a log a client without any queue has stopped: RebalanceImpl#destroy.
    is_stop = pl.col("source").eq_missing(CLIENT_LOG) & (pl.col("queues").list.len() == 0)
    answered = assignment.filter(pl.col("queues").is_not_null() & ~is_stop)
    shares = computed_shares(rebalance.join(answered.select(MEMBER).unique(), MEMBER, how="semi"))
    shown = shown_tables(answered, shares)
    lag_ms = interval_s * 1000 + SLACK
    placed = with_shares(shown, shares, lag_ms)
    never = pl.col("last_share").is_null()
    # A hook records each share: if the last one is older, the next one was lost or failed.
    is_old = ~pl.col("lasts") & (ms("ts") - ms("rebalance_ts") > lag_ms + SLACK)
    is_late = (ms("clock_ts") - ms("pulled_ts") > PULL_MAX_IDLE_TIME).fill_null(value=False)
    same = (pl.col("key") == pl.col("share_key")) & (pl.col("key") == pl.col("key_before").fill_null(pl.col("key")))
    settled = (pl.col("run") == pl.col("run_settled")) & ~pl.col("dropping")
    case = first_of(
        (is_late | pl.col("foreign"), ""),
        (never, NO_SHARE),
        (is_old, OLD_SHARE),
        (same & settled, SAME_QUEUES),
        otherwise="",
    )
    day = pl.col("ts").dt.date().alias("day")
    cases = placed.with_columns(case.alias("reason"), is_old.fill_null(value=True).alias("is_old"), day)
    none = cases.filter(pl.col("reason") == NO_SHARE).sort("ts")
    first = none.unique([*MEMBER_TOPIC, "day"], keep="first", maintain_order=True)
    known = pl.concat([cases.filter(pl.col("reason").is_in([SAME_QUEUES, OLD_SHARE])), first])
    agrees = first_of((pl.col("reason") == SAME_QUEUES, "agree"), otherwise="undetermined")
    open_rows = cases.filter(pl.col("reason") == "").drop("reason")
    steps = pl.DataFrame(
        list(_steps(open_rows, cases, shares, lag_ms)),
        {"number": pl.UInt32(), **{name: SCHEMA[name] for name in STEP_VERDICT}},
        orient="row",
    )
    found = pl.concat(
        [known.with_columns(agrees.alias("judgement")), open_rows.join(steps, "number")], how="diagonal_relaxed"
    )
    return filled(found, SCHEMA).sort("ts", *MEMBER_TOPIC, "record_id")


def stored_rows(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.rebalance_step keeps: those with a change, and those that do not agree."""
    changed = pl.any_horizontal(pl.col(name).list.len() > 0 for name in STEP_VERDICT[:-2]).fill_null(value=False)
    return judged.filter(changed | (pl.col("judgement") != "agree"))


def _steps(rows: pl.DataFrame, every: pl.DataFrame, shares: pl.DataFrame, lag_ms: int) -> Iterator[tuple[Any, ...]]:
    """Yield the number and the verdict of each table; ``every`` has the tables before them."""
    needed = pl.concat([rows["number"], rows["number_before"].drop_nulls().cast(pl.UInt32)]).unique()
    tables = {
        number: _table(*row)
        for number, *row in every.filter(pl.col("number").is_in(needed.implode()))
        .select("number", "topic", ms("ts"), ms("clock_ts").alias("clock"), "queues", "foreign")
        .iter_rows()
    }
    of_client: dict[tuple[str, ...], Shares] = {}
    due = shares.join(rows.select(MEMBER_TOPIC).unique(), MEMBER_TOPIC, how="semi").sort("rebalance_ts")
    for *place, at, queues in due.select(*MEMBER_TOPIC, ms("rebalance_ts"), "last_share").iter_rows():
        found = of_client.setdefault(tuple(place), Shares([], []))
        found.at.append(at)  # type: ignore[attr-defined]
        found.queues.append(frozenset(_queues(place[-1], queues)))  # type: ignore[attr-defined]
    none = Shares((), ())
    for number, before, is_old, *place in rows.select("number", "number_before", "is_old", *MEMBER_TOPIC).iter_rows():
        known = none if is_old else of_client.get(tuple(place), none)
        yield number, *judge_step(place[-1], tables.get(before), tables[number], known, lag_ms)


def judge_step(topic: str, before: Table | None, now: Table, shares: Shares, lag_ms: int) -> tuple[Any, ...]:
    """Return STEP_VERDICT of a table; ``before`` is the table before, ``lag_ms`` the longest time of a step."""
    possible, kept = _possible(topic, before, now, shares, lag_ms)
    held = now.pulled.keys() - now.dropped
    expired = {queue for queue in held if is_pull_expired(_or(now.pulled[queue], now.clock), now.clock - lag_ms)}
    extra = held - set().union(*possible) if possible else set()
    subscribed = [] if now.foreign else [topic]
    foreign = set(truncate_message_queue_not_my_topic(now.held(consuming=False), subscribed).removed) - now.dropped
    lacking = set(possible[0]).intersection(*possible) - now.pulled.keys() if possible else set()
    was = set() if before is None else set(before.pulled)
    judgement, reason = "agree", SAME_QUEUES
    for wrong, verdict, words in (
        (not possible, "undetermined", NO_SHARE),
        (lacking, "undetermined", LACKING),
        (now.dropped - kept, "undetermined", DROPPING),
        (expired, "differ", EXPIRED_QUEUE),
        (extra, "differ", EXTRA),
        (foreign, "differ", FOREIGN),
    ):
        judgement, reason = (verdict, words) if wrong else (judgement, reason)
    changes = (now.pulled.keys() - was, was - now.pulled.keys()) if before is not None else (set(), set())
    lists = (*changes, now.dropped & kept, lacking, extra | foreign, expired)
    return *map(_rows, lists), judgement, reason


def _possible(
    topic: str, before: Table | None, now: Table, shares: Shares, lag_ms: int
) -> tuple[list[Collection[MessageQueue]], set[MessageQueue]]:
    """Return the queues of each table that the client may have had, and those that a busy listener may keep.

    Empty if the client held what no known share explains, before its first step was over.
    """
    settled, last = bisect_right(shares.at, now.at - lag_ms) - 1, bisect_right(shares.at, now.at + SLACK) - 1
    if last < 0 or (settled < 0 and before is None and now.pulled.keys() - set().union(*shares.queues[: last + 1])):
        return [], set()
    first = max(0, settled) if before is None else max(0, min(settled, bisect_right(shares.at, before.at - lag_ms)))
    idle = {} if before is None else before.held(consuming=False)
    busy = {} if before is None else before.held(consuming=True)
    possible: list[Collection[MessageQueue]] = [idle] if settled < 0 else []
    kept: set[MessageQueue] = set()
    for place in range(first, last + 1):
        at, share = shares.at[place], sorted(shares.queues[place])
        offsets = dict.fromkeys(share, 0)  # where a queue starts is not recorded: each may be taken
        idle = dict(update_process_queue_table_in_rebalance(topic, idle, share, offsets, at).process_queue_table)
        step = update_process_queue_table_in_rebalance(topic, busy, share, offsets, at, locked=share)
        busy, kept = dict(step.process_queue_table), kept.union(step.kept_dropped)
        if place >= settled:
            possible.append(idle)
    return possible, kept


def _table(topic: str, at: int, clock: int, queues: Sequence[Mapping[str, Any]], foreign: bool) -> Table:
    pulled, dropped = {}, []
    for each in queues:
        queue = MessageQueue(topic, each["broker_name"], each["queue_id"])
        ts = each["last_pull_ts"]
        pulled[queue] = None if ts is None else int(ts.timestamp() * 1000)
        if each["dropped"]:
            dropped.append(queue)
    return Table(at, clock, pulled, frozenset(dropped), foreign)


def _queues(topic: str, share: Sequence[Mapping[str, Any]]) -> Iterator[MessageQueue]:
    for each in share:
        yield MessageQueue(topic, each["broker_name"], each["queue_id"])


def _rows(queues: Collection[MessageQueue]) -> list[dict[str, Any]]:
    return [{"broker_name": name, "queue_id": queue_id} for _, name, queue_id in sorted(queues)]


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


REBALANCE_STEP: Final = Decision(
    table="gold.rebalance_step",
    instant="ts",
    one="step of a rebalance",
    many="steps of rebalances",
    importance=13,
    phrases=(
        "queues of {topic}",
        "added {added}",
        "removed {removed}",
        "lacking {lacking}",
        "extra {extra}",
        "not pulled for long {expired}",
        VERDICT_WORDS,
    ),
    needs=(Need("assignments"), Need("rebalance_log", or_polled=("assignments",))),
)
