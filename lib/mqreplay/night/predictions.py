"""The table gold.prediction: what whatif predicted, and whether a later day came as it was predicted.

Ids of clients are others on a later day, so the owner of a queue is the place of its owner in the sorted list of
members: the strategies that depend on the list alone give queues by place.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.supposed_shares import lists_seen
from mqreplay.decisions.suppositions import text_of
from mqreplay.errors import InputError
from mqreplay.lake.journal import Journal
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.night.what_if import Answer, WhatIf, day_asked

TABLE: Final = "gold.prediction"
MILLION: Final = 1_000_000
PLACE: Final = ("consumer_group", "topic", "broker_name", "queue_id")
AS_PREDICTED, OTHER, UNDETERMINED = "as predicted", "other", "undetermined"
Values = dict[str, Any]


def save(warehouse: Warehouse, asked: WhatIf, answer: Answer) -> str:
    """Write an answer under the warehouse's lock, in place of an equal one; return its id."""
    night = recorded(warehouse, answer.cluster)
    day = answer.prediction.day if answer.prediction is not None else night.last.date()
    texts = [text_of(each) for each in asked.suppositions]
    texts += [f"loss of the master of {asked.lose_master}"] if asked.lose_master else []
    texts += [f"reset of {asked.group} to {asked.reset_to}"] if asked.reset_to else []
    texts += [f"at {asked.at}"] if asked.at else []
    supposed = ", ".join(texts)
    prediction_id = sha256(f"{answer.cluster}|{day}|{supposed}".encode()).hexdigest()[:16]
    head = {"cluster": answer.cluster, "prediction_id": prediction_id, "of_day": day, "supposed": supposed}
    names = [column.name for column in warehouse.contracts[TABLE].columns]
    values = [{**head, "row": number, **row} for number, row in enumerate(_values(answer))]
    with warehouse_lock(warehouse.root):
        Journal(warehouse).recover(lambda _: None)
        kept: list[Values] = []
        if warehouse.exists(TABLE):
            kept = warehouse.read(TABLE, RowFilter(answer.cluster)).collect().to_dicts()
        others = [row for row in kept if row["prediction_id"] != prediction_id]
        rows = [tuple(row.get(name) for name in names) for row in (*others, *values)]
        warehouse.replace_rows(TABLE, rows, RowFilter(answer.cluster) if kept else None)
    return prediction_id


def _values(answer: Answer) -> Iterator[Values]:
    """Yield the predicted values: PLACE, measure, before, after_min and after_max."""
    found = answer.prediction
    if found is not None:
        for row in found.members.iter_rows(named=True):
            after = row["members_after"]
            value = {"measure": "members", "before": row["members_before"], "after_min": after, "after_max": after}
            yield _place(row) | value
        lists = {(row["consumer_group"], row["topic"]): row for row in found.lists.to_dicts()}
        for row in found.owners.iter_rows(named=True):
            each = lists[row["consumer_group"], row["topic"]]
            first, last = (_position(row[f"after_{end}"], each[f"cid_all_{end}"]) for end in ("first", "last"))
            bounds = sorted([first, last]) if first is not None and last is not None else [None, None]
            before = _position(row["before"], each["cid_all"])
            yield _place(row) | {
                **{"measure": "owner", "before": before},
                **{"after_min": bounds[0], "after_max": bounds[1]},
            }
        for row in found.pulls.iter_rows(named=True):
            of_million = {name: MILLION * row[name] // row["pulls"] for name in ("to_slave", "to_slave_min")}
            most = -(-MILLION * row["to_slave_max"] // row["pulls"])
            yield _place(row) | {
                **{"measure": "to_slave", "before": of_million["to_slave"]},
                **{"after_min": of_million["to_slave_min"], "after_max": most},
            }
    if answer.lost is not None:
        for group, most in (answer.lost.redelivered_max or {}).items():
            place = {"consumer_group": group, "broker_name": answer.lost.broker_name}
            yield {**place, "measure": "redelivered", "after_min": 0, "after_max": most}
    if answer.reset is not None:
        for row in answer.reset.iter_rows(named=True):
            yield _place(row) | {"measure": "again", "after_min": row["again_min"], "after_max": row["again_max"]}


def _place(row: Values) -> Values:
    return {name: row.get(name) for name in PLACE}


def _position(owners: list[str] | None, clients: list[str]) -> int | None:
    """Return the place of the only owner in the sorted list, from 1; 0: nobody."""
    if owners is None or len(owners) > 1:
        return None
    return sorted(set(clients)).index(owners[0]) + 1 if owners else 0


@dataclass(frozen=True)
class Checked:
    """A prediction beside a later day. ``rows``: its rows, with ``came`` and ``judgement``."""

    prediction_id: str
    supposed: str
    day: dt.date
    rows: list[Values]

    @property
    def judgement(self) -> str:
        """Return OTHER if a value came otherwise, else AS_PREDICTED if one came so, else UNDETERMINED."""
        found = {row["judgement"] for row in self.rows}
        return next((each for each in (OTHER, AS_PREDICTED) if each in found), UNDETERMINED)


def check(root: str, prediction_id: str, later: str, day: str | None) -> Checked:
    """Compare a stored prediction with a day of the warehouse ``later``. Raises InputError."""
    stored = Warehouse(root).read(TABLE).filter(pl.col("prediction_id").str.starts_with(prediction_id)).collect()
    if stored["prediction_id"].n_unique() != 1:
        raise InputError(f"the warehouse has no prediction {prediction_id}; whatif --save stores one")
    rows = stored.sort("row").to_dicts()
    night = recorded(Warehouse(later), rows[0]["cluster"])
    came_on = day_asked(night, day, None)
    of_day = RowFilter(night.cluster, days=frozenset({came_on}))
    came = _came_shares(night.warehouse.read("silver.rebalance", of_day).collect())
    came |= _came_suggestions(night.warehouse.read("gold.slave_suggestion", of_day))
    members = {
        (row["consumer_group"], row["topic"]): came.get(_key(row)) == row["after_min"]
        for row in rows
        if row["measure"] == "members"
    }
    judged = []
    for row in rows:
        value = came.get(_key(row))
        # With another number of members, the prediction is of another case.
        is_case = row["measure"] != "owner" or members.get((row["consumer_group"], row["topic"]), False)
        judged.append(row | {"came": value, "judgement": _judged(row, value) if is_case else UNDETERMINED})
    return Checked(rows[0]["prediction_id"], rows[0]["supposed"], came_on, judged)


def _key(row: Values) -> tuple[Any, ...]:
    return (row["measure"], *(row[name] for name in PLACE))


def _judged(row: Values, came: int | None) -> str:
    if came is None or row["after_min"] is None or row["after_max"] is None:
        return UNDETERMINED
    if row["measure"] == "members" and came != row["after_min"]:
        return UNDETERMINED
    return AS_PREDICTED if row["after_min"] <= came <= row["after_max"] else OTHER


def _came_shares(rebalances: pl.DataFrame) -> dict[tuple[Any, ...], int]:
    """Return the members of each group and topic, and the places of the owners that took each queue."""
    usual = lists_seen(rebalances).sort("rebalances", "to_ts")
    found: dict[tuple[Any, ...], int] = {}
    for row in usual.unique(["consumer_group", "topic"], keep="last", maintain_order=True).to_dicts():
        group, topic, clients = row["consumer_group"], row["topic"], sorted(set(row["cid_all"]))
        found["members", group, topic, None, None] = len(clients)
        alike = (pl.col("consumer_group") == group) & (pl.col("topic") == topic) & pl.col("mq_divided").is_not_null()
        same = (
            alike & (pl.col("cid_all").list.sort() == row["cid_all"]) & (pl.col("mq_all").list.sort() == row["mq_all"])
        )
        for one in rebalances.filter(same).sort("ts").unique("client_id", keep="last").iter_rows(named=True):
            for queue in one["mq_divided"] if one["client_id"] in clients else ():
                place = ("owner", group, topic, queue["broker_name"], queue["queue_id"])
                found[place] = clients.index(one["client_id"]) + 1
    return found


def _came_suggestions(suggestions: pl.LazyFrame) -> dict[tuple[Any, ...], int]:
    to_slave = (pl.col("recorded_suggest") != MASTER_ID).sum().cast(pl.Int64)
    counted = suggestions.group_by("consumer_group", "topic", "broker_name").agg(MILLION * to_slave // pl.len())
    return {("to_slave", *row[:3], None): row[3] for row in counted.collect().rows()}
