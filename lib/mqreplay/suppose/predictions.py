"""The table gold.prediction: what whatif predicted.

Ids of clients are others on a later day, so the owner of a queue is the place of its owner in the sorted list of
members: the strategies that depend on the list alone give queues by place.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import polars as pl

from mqreplay.decisions.suppositions import text_of
from mqreplay.lake.journal import Journal
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.suppose.what_if import Answer, WhatIf
from mqreplay.words.errors import InputError
from mqreplay.words.keys import GROUP_QUEUE

PREDICTION_TABLE: Final = "gold.prediction"
MILLION: Final = 1_000_000
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
    names = [column.name for column in warehouse.contracts[PREDICTION_TABLE].columns]
    values = [{**head, "row": number, **row} for number, row in enumerate(_values(answer, asked.group))]
    with warehouse_lock(warehouse.root):
        Journal(warehouse).recover(lambda _: None)
        kept: list[Values] = []
        if warehouse.exists(PREDICTION_TABLE):
            kept = warehouse.read(PREDICTION_TABLE, RowFilter(answer.cluster)).collect().to_dicts()
        others = [row for row in kept if row["prediction_id"] != prediction_id]
        rows = [tuple(row.get(name) for name in names) for row in (*others, *values)]
        warehouse.replace_rows(PREDICTION_TABLE, rows, RowFilter(answer.cluster) if kept else None)
    return prediction_id


def _values(answer: Answer, reset_group: str | None) -> Iterator[Values]:
    """Yield the predicted values: GROUP_QUEUE, measure, before, after_min and after_max."""
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
            yield _place(row) | {
                "consumer_group": reset_group,
                "measure": "again",
                "after_min": row["again_min"],
                "after_max": row["again_max"],
            }


def _place(row: Values) -> Values:
    return {name: row.get(name) for name in GROUP_QUEUE}


def _position(owners: list[str] | None, clients: list[str]) -> int | None:
    """Return the place of the only owner in the sorted list, from 1; 0: nobody."""
    if owners is None or len(owners) > 1:
        return None
    return sorted(set(clients)).index(owners[0]) + 1 if owners else 0


def stored(warehouse: Warehouse, prediction_id: str) -> list[Values]:
    """Return the rows of the prediction whose id begins so, in order. Raises InputError unless there is one."""
    found = warehouse.read(PREDICTION_TABLE).filter(pl.col("prediction_id").str.starts_with(prediction_id)).collect()
    number = found["prediction_id"].n_unique()
    if number == 0:
        raise InputError(f"the warehouse has no prediction {prediction_id}; whatif --save stores one")
    if number > 1:
        raise InputError(f"{number} predictions begin with {prediction_id}; write more of the id")
    return found.sort("row").to_dicts()
