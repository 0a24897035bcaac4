"""Whether a later night came as a stored prediction says.

A prediction is of one case: these members and these queues. If others came, its owners are undetermined, not wrong.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.supposed_shares import lists_seen
from mqreplay.decisions.verdict import UNDETERMINED
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.settings import Settings
from mqreplay.suppose.predictions import MILLION, Values, stored
from mqreplay.suppose.what_if import day_asked
from mqreplay.words.errors import InputError
from mqreplay.words.keys import GROUP_QUEUE
from mqreplay.words.quantity import counted

WITHIN, OUTSIDE = "within", "outside"
HELD, FAILED = "held", "failed"
NOT_COMPARED: Final = {
    "redelivered": "what the loss of a master cost is not compared; gold.finding has duplicate_delivery",
    "again": "what a reset delivered again is not compared; gold.finding has offset_reset",
}
NOTHING_CAME: Final = {
    "members": "no rebalance of the group could be judged",
    "owner": "nobody took the queue with the usual lists of the day",
    "to_slave": "no answer to a pull of the group is recorded",
}
Topic = tuple[str | None, str | None]  # consumer_group, topic
Queues = set[tuple[str, int]]  # broker_name, queue_id


@dataclass(frozen=True)
class Checked:
    """A prediction beside a later day.

    ``rows``: those of gold.prediction, with ``came``, ``judgement`` (WITHIN, OUTSIDE or UNDETERMINED) and ``reason``
    (of an undetermined one).
    """

    prediction_id: str
    supposed: str
    of_day: dt.date
    day: dt.date
    rows: list[Values]

    @property
    def cluster(self) -> str:
        """Return the cluster that it is of."""
        return str(self.rows[0]["cluster"])

    @property
    def group(self) -> str | None:
        """Return the consumer group that it is of; None if it is of several, or of none."""
        (group, *others) = {row["consumer_group"] for row in self.rows}
        return None if others or group is None else str(group)

    @property
    def answer(self) -> str:
        """Return FAILED if a value came outside of its bounds, else HELD if one came within, else UNDETERMINED."""
        found = {row["judgement"] for row in self.rows}
        return FAILED if OUTSIDE in found else HELD if WITHIN in found else UNDETERMINED


@dataclass(frozen=True)
class _Came:
    """What came: values by `_key`, and the queues of each group and topic that its members saw longest."""

    values: dict[tuple[Any, ...], int]
    queues: dict[Topic, Queues]


def check(root: str, prediction_id: str, later: str, day: str | None) -> Checked:
    """Compare a stored prediction with a day of the warehouse ``later``. Raises InputError."""
    return _compared(stored(Warehouse(root), prediction_id), later, day)


def check_recording(
    root: str,
    prediction_id: str,
    recording: str,
    settings: Settings,
    day: str | None,
    run: Callable[..., Sequence[Any]],
    progress: Callable[[str], None] = lambda line: None,
) -> Checked:
    """Compare a stored prediction with a recording, which is replayed into a temporary warehouse. Raises InputError.

    ``run``: night/nightly.py, whose steps ingest and replay run.
    """
    rows = stored(Warehouse(root), prediction_id)
    cluster = rows[0]["cluster"]
    with TemporaryDirectory(prefix="later-", dir=scratch().folder, ignore_cleanup_errors=True) as later:
        read = run("ingest", later, settings, progress, recordings=[recording], engine="local")
        if cluster not in (names := [each.cluster for each in read]):
            of = f"is of cluster {', '.join(names)}" if names else "has no rows"
            raise InputError(f"the recording {recording} {of}; the prediction is of {cluster}")
        run("replay", later, settings, progress, cluster=cluster, engine="local")
        return _compared(rows, later, day)


def _compared(rows: Sequence[Values], later: str, day: str | None) -> Checked:
    first = rows[0]
    night = recorded(Warehouse(later), first["cluster"])
    came_on = day_asked(night, day, None)
    of_day = RowFilter(night.cluster, days=frozenset({came_on}))
    of_groups = pl.col("consumer_group").is_in({row["consumer_group"] for row in rows if row["measure"] == "members"})
    came = _came_shares(night.warehouse.read("gold.allocation", of_day).filter(of_groups).collect())
    came.values.update(_came_suggestions(night.warehouse.read("gold.slave_suggestion", of_day)))
    others = _other_cases(rows, came)
    judged = []
    for row in rows:
        value = came.values.get(_key(row))
        other = others.get(_topic(row)) if row["measure"] in ("members", "owner") else None
        judgement, reason = _judged(row, value, other)
        judged.append(row | {"came": value, "judgement": judgement, "reason": reason})
    return Checked(first["prediction_id"], first["supposed"], first["of_day"], came_on, judged)


def _other_cases(rows: Sequence[Values], came: _Came) -> dict[Topic, str]:
    """Return why the owners of a group and topic cannot be compared: other members or other queues came."""
    members = {_topic(row): row["after_min"] for row in rows if row["measure"] == "members"}
    owners: dict[Topic, list[Values]] = {topic: [] for topic in members}
    for row in rows:
        if row["measure"] == "owner":
            owners[_topic(row)].append(row)
    found: dict[Topic, str] = {}
    for topic, queues in came.queues.items():
        number = came.values["members", *topic, None, None]
        predicted = {_queue(row) for row in owners.get(topic, ()) if row["after_min"] is not None}
        # Nothing is known of these queues; of one that is gone, the owner before is.
        unsure = {_queue(row) for row in owners.get(topic, ()) if row["after_min"] is None and row["before"] is None}
        if number != members.get(topic, number):
            found[topic] = f"another case: the group had {counted(number, 'member')}, not {members[topic]}"
        elif predicted and predicted - unsure != queues - unsure:
            found[topic] = f"another case: the topic had {counted(len(queues), 'queue')}, not {len(predicted)}"
    return found


def _topic(row: Values) -> Topic:
    return row["consumer_group"], row["topic"]


def _key(row: Values) -> tuple[Any, ...]:
    return (row["measure"], *(row[name] for name in GROUP_QUEUE))


def _queue(row: Values) -> tuple[str, int]:
    return row["broker_name"], row["queue_id"]


def _judged(row: Values, came: int | None, other_case: str | None) -> tuple[str, str | None]:
    """Return the judgement, and the reason of an undetermined one."""
    if row["measure"] in NOT_COMPARED:
        return UNDETERMINED, NOT_COMPARED[row["measure"]]
    if row["after_min"] is None or row["after_max"] is None:
        return UNDETERMINED, "the prediction leaves it open"
    if other_case is not None:
        return UNDETERMINED, other_case
    if came is None:
        return UNDETERMINED, NOTHING_CAME[row["measure"]]
    return (WITHIN if row["after_min"] <= came <= row["after_max"] else OUTSIDE), None


def _came_shares(allocations: pl.DataFrame) -> _Came:
    """Return the members of each group and topic, and the places of the owners that took each queue."""
    # Of an undetermined rebalance, the lists may be those of another instant.
    known = allocations.filter(pl.col("judgement") != UNDETERMINED, pl.col("actual").is_not_null())
    rebalances = known.select(
        *("consumer_group", "topic", "client_id", "strategy", "cid_all", "mq_all", "actual"),
        pl.col("rebalance_ts").alias("ts"),
        pl.lit(None, pl.String).alias("source"),
    )
    usual = lists_seen(rebalances).sort("rebalances", "to_ts")
    values: dict[tuple[Any, ...], int] = {}
    queues: dict[Topic, Queues] = {}
    for row in usual.unique(["consumer_group", "topic"], keep="last", maintain_order=True).to_dicts():
        group, topic, clients = row["consumer_group"], row["topic"], sorted(set(row["cid_all"]))
        values["members", group, topic, None, None] = len(clients)
        queues[group, topic] = {_queue(each) for each in row["mq_all"]}
        of_topic = (pl.col("consumer_group") == group) & (pl.col("topic") == topic)
        same = (pl.col("cid_all").list.sort() == row["cid_all"]) & (pl.col("mq_all").list.sort() == row["mq_all"])
        for one in rebalances.filter(of_topic, same).sort("ts").unique("client_id", keep="last").iter_rows(named=True):
            for queue in one["actual"] if one["client_id"] in clients else ():
                place = ("owner", group, topic, queue["broker_name"], queue["queue_id"])
                values[place] = clients.index(one["client_id"]) + 1
    return _Came(values, queues)


def _came_suggestions(suggestions: pl.LazyFrame) -> dict[tuple[Any, ...], int]:
    to_slave = (pl.col("recorded_suggest") != MASTER_ID).sum().cast(pl.Int64)
    found = suggestions.group_by("consumer_group", "topic", "broker_name").agg(MILLION * to_slave // pl.len())
    return {("to_slave", *row[:3], None): row[3] for row in found.collect().rows()}
