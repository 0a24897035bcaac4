"""A finding's story: the rule, the evidence rows in time order, what follows from it and what it follows from."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.errors import InputError
from mqreplay.findings.every import KINDS
from mqreplay.lake.sql import of_last_day
from mqreplay.lake.warehouse import Warehouse

MOST = 60  # evidence rows told; the tables have all
AROUND = dt.timedelta(minutes=1)  # rows named by their place alone are those near the finding
INSTANTS = ("request_ts", "rebalance_ts", "ts", "to_ts", "from_ts")
HIDDEN = {"cluster", "day", "source_digest", "record_id"}


@dataclass
class Story:
    """``finding`` and ``steps`` are rows as plain values; a step has table_name, ts and row."""

    finding: dict[str, Any]
    rule: str
    follows: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    cause: dict[str, Any] | None = None
    effects: list[dict[str, Any]] = field(default_factory=list)


def tell(warehouse: Warehouse, finding_id: str, cluster: str | None) -> Story:
    """The story of the finding whose id begins with ``finding_id``. Raises InputError where none or several do."""
    found = of_last_day(warehouse.read("gold.finding"), "cluster", "finding_id")
    if cluster is not None:
        found = found.where(F.col("cluster") == cluster)
    rows = [row.asDict(recursive=True) for row in found.where(F.col("finding_id").startswith(finding_id)).collect()]
    if not rows:
        raise InputError(f"no finding has an id that begins with {finding_id}; SELECT finding_id FROM gold.finding")
    if len(rows) > 1:
        raise InputError(f"{len(rows)} findings have ids that begin with {finding_id}; give more of it")
    finding = rows[0]
    kind = KINDS[finding["kind"]]
    story = Story(finding, kind.rule, kind.follows)
    same = found.where(F.col("cluster") == finding["cluster"])
    of_it = (F.col("finding_id") == F.lit(finding["follows_from"])) | (F.col("follows_from") == finding["finding_id"])
    for row in same.where(of_it).orderBy("from_ts", "kind", "finding_id").collect():
        other = row.asDict(recursive=True)
        if other["finding_id"] == finding["follows_from"]:
            story.cause = other
        else:
            story.effects.append(other)
    story.steps = _steps(warehouse, finding)
    told = Counter(text for step in story.steps if (text := decision(step["table_name"], step["row"])))
    story.decisions = [text if n == 1 else f"{n} times: {text}" for text, n in told.items()]
    return story


def _steps(warehouse: Warehouse, finding: dict[str, Any]) -> list[dict[str, Any]]:
    by_table: dict[str, list[dict[str, str]]] = {}
    for each in finding["evidence"] or []:
        if each["table_name"] != "gold.finding":
            by_table.setdefault(each["table_name"], []).append(keys(each["key"]))
    steps: list[dict[str, Any]] = []
    for name, wanted in sorted(by_table.items()):
        if not warehouse.exists(name):
            continue
        rows = warehouse.read(name).where(F.col("cluster") == finding["cluster"])
        for row in _matching(rows, wanted, finding).limit(MOST).collect():
            plain = row.asDict(recursive=True)
            ts = next((plain[c] for c in INSTANTS if plain.get(c)), None)
            steps.append({"table_name": name, "ts": ts, "row": plain})
    return sorted(steps, key=lambda s: (s["ts"] is None, s["ts"] or dt.datetime.min, s["table_name"]))[:MOST]


def _matching(rows: DataFrame, wanted: list[dict[str, str]], finding: dict[str, Any]) -> DataFrame:
    """The rows with these keys; those that a key does not name alone, near the finding's time."""
    if all(set(key) == {"record_id"} for key in wanted):
        return rows.where(F.col("record_id").isin([key["record_id"] for key in wanted]))
    hit = reduce(lambda a, b: a | b, [_is(key) for key in wanted])
    instant = next((c for c in INSTANTS if c in rows.columns), None)
    found = rows.where(hit)
    if instant is None or any(instant in key for key in wanted):
        return found
    return (
        found.where(F.col(instant) >= finding["from_ts"] - AROUND)
        .where(F.col(instant) <= finding["to_ts"] + AROUND)
        .orderBy(instant)
    )


def _is(key: dict[str, str]) -> Column:
    return reduce(lambda a, b: a & b, [F.col(name).cast("string") == value for name, value in key.items()])


def keys(text: str) -> dict[str, str]:
    """An evidence key as written by the findings.

    >>> keys("broker_name=b queue_id=0 ts=2026-11-21 02:00:00")
    {'broker_name': 'b', 'queue_id': '0', 'ts': '2026-11-21 02:00:00'}
    """
    parts = re.split(r"(?:^| )([a-z_]+)=", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def shown(row: dict[str, Any]) -> str:
    """What a row says, on one line: its columns that say something.

    >>> shown({"cluster": "c", "topic": "T", "error": None, "queue_offset": 3})
    'topic=T queue_offset=3'
    """
    said = []
    for name, value in row.items():
        if name in HIDDEN or value is None or name in INSTANTS:
            continue
        text = _short(value)
        said.append(f"{name}={text}")
    return " ".join(said)


def _short(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.strftime("%H:%M:%S.%f")[:-3]
    if isinstance(value, dict):
        return "/".join(_short(v) for v in value.values() if v is not None)[:120]
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_short(v) for v in value)
        return f"[{inner}]" if len(inner) <= 160 else f"[{inner[:150]}... {len(value)} in all]"
    return str(value)


def decision(table: str, row: dict[str, Any]) -> str | None:
    """The decision that a judged row holds, as a call: what went in and what came out."""
    if table == "gold.allocation":
        call = f"allocate({row['strategy']!r}, {row['consumer_group']!r}, {row['client_id']!r}, mq_all, cid_all)"
        lists = f"mq_all={_short(row['mq_all'] or [])} cid_all={_short(row['cid_all'] or [])}"
        return f"{call} = {_short(row['expected'] or [])}; it took {_short(row['actual'] or [])}; {lists}"
    if table == "gold.pull_route":
        call = f"find_broker_address_in_subscribe(route, {row['broker_name']!r}, {row['pull_from_which_node']})"
        return f"{call} = broker id {row['expected_broker_id']}; it asked {row['actual_broker_id']}: {row['reason']}"
    if table == "gold.slave_suggestion":
        call = f"slave_suggestion(diff {row['diff_min']} to {row['diff_max']} bytes, memory {row['memory']})"
        return f"{call} -> broker id {row['expected_suggest']}; the broker said {row['recorded_suggest']}"
    if table == "gold.offset_continuity" and row["kind"] == "stale":
        return (
            f"sync_consumer_offset({row['new_offset']}, {row['previous_offset']}) = {row['previous_offset']}: not done,"
            f" {row['broker_name']}-{row['broker_id']} queue {row['queue_id']} kept {row['new_offset']}"
        )
    if table == "gold.offset_continuity":
        return (
            f"update_offset({row['previous_offset']}, {row['new_offset']}, increase_only=False)"
            f" = {row['new_offset']}: {row['kind']} of {row['size']} on {row['broker_name']}-{row['broker_id']}"
            f" queue {row['queue_id']}, cause {row['cause']}"
        )
    return None
