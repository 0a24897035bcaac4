"""A finding's story: the rule, the evidence rows in time order, what follows from it and what it follows from."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from mqreplay.errors import InputError
from mqreplay.findings.every import KINDS
from mqreplay.lake.existing import require_warehouse
from mqreplay.lake.last_day import of_last_day
from mqreplay.lake.plain_rows import plain_rows
from mqreplay.lake.rows import Rows
from mqreplay.lake.sql import check_text
from mqreplay.lake.warehouse import Warehouse

MOST = 60  # evidence rows told; the tables have all
AROUND = dt.timedelta(minutes=1)  # rows named by their place alone are those near the finding
ONE_DAY = dt.timedelta(days=1)
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


def explain(root: str, finding_id: str, cluster: str | None) -> Story:
    """Return the story of a finding: its rule, its evidence in time order, its cause and what follows from it."""
    check_text(finding_id, cluster)
    require_warehouse(root)
    return tell(Warehouse(root), finding_id, cluster)


def tell(warehouse: Warehouse, finding_id: str, cluster: str | None) -> Story:
    """Return the story of the finding whose id begins with ``finding_id``. Raises InputError for none or several."""
    of_cluster = warehouse.read("gold.finding", None if cluster is None else Rows(cluster))
    named = of_last_day(of_cluster.filter(pl.col("finding_id").str.starts_with(finding_id)), "cluster", "finding_id")
    rows = plain_rows(named.collect())
    if not rows:
        raise InputError(f"no finding has an id that begins with {finding_id}; SELECT finding_id FROM gold.finding")
    if len(rows) > 1:
        raise InputError(f"{len(rows)} findings have ids that begin with {finding_id}; give more of it")
    finding = rows[0]
    kind = KINDS[finding["kind"]]
    story = Story(finding, kind.rule, kind.follows)
    for other in _linked(warehouse, finding):
        if other["finding_id"] == finding["follows_from"]:
            story.cause = other
        else:
            story.effects.append(other)
    story.steps = _steps(warehouse, finding)
    told = Counter(text for step in story.steps if (text := decision(step["table_name"], step["row"])))
    story.decisions = [text if n == 1 else f"{n} times: {text}" for text, n in told.items()]
    return story


def _linked(warehouse: Warehouse, finding: dict[str, Any]) -> list[dict[str, Any]]:
    """The finding's cause and its effects."""
    same = of_last_day(warehouse.read("gold.finding", Rows(finding["cluster"])), "finding_id")
    is_cause = pl.col("finding_id") == pl.lit(finding["follows_from"], pl.String)
    is_effect = pl.col("follows_from") == finding["finding_id"]
    return plain_rows(same.filter(is_cause | is_effect).sort("from_ts", "kind", "finding_id").collect())


def _steps(warehouse: Warehouse, finding: dict[str, Any]) -> list[dict[str, Any]]:
    by_table: dict[str, list[dict[str, Any]]] = {}
    for each in finding["evidence"] or []:
        key = {name: value for name, value in each.items() if name != "table_name" and value is not None}
        if key and each["table_name"] != "gold.finding":
            by_table.setdefault(each["table_name"], []).append(key)
    steps: list[dict[str, Any]] = []
    for name, wanted in sorted(by_table.items()):
        if not warehouse.exists(name):
            continue
        for row in plain_rows(_evidence(warehouse, name, wanted, finding)):
            ts = next((row[c] for c in INSTANTS if row.get(c)), None)
            steps.append({"table_name": name, "ts": ts, "row": row})
    return sorted(steps, key=lambda s: (s["ts"] is None, s["ts"] or dt.datetime.min, s["table_name"]))[:MOST]


def _evidence(warehouse: Warehouse, name: str, wanted: list[dict[str, Any]], finding: dict[str, Any]) -> pl.DataFrame:
    """Return the rows with these keys. Where keys do not name the instant, the rows near the finding's time."""
    order = warehouse.contracts[name].key
    if all(set(key) == {"record_id"} for key in wanted):
        return _by_record_id(warehouse, name, {key["record_id"] for key in wanted}, finding)
    kinds = warehouse.read(name).collect_schema()
    instant = next((c for c in INSTANTS if c in kinds), None)
    is_wanted = pl.any_horizontal(
        pl.all_horizontal(pl.col(name) == _typed(value) for name, value in key.items()) for key in wanted
    )
    if instant is None or any(instant in key for key in wanted):
        rows = warehouse.read(name, Rows(finding["cluster"])).filter(is_wanted)
        return rows.sort(order).head(MOST).collect()
    begin, end = _shifted(finding["from_ts"], -AROUND), _shifted(finding["to_ts"], AROUND)
    # The day of a silver row is that of its instant; of a gold row it is the day that was replayed.
    days = _days(begin, end) if name.startswith("silver.") else None
    rows = warehouse.read(name, Rows(finding["cluster"], between=days)).filter(is_wanted)
    if begin is not None:
        rows = rows.filter(pl.col(instant) >= begin)
    if end is not None:
        rows = rows.filter(pl.col(instant) <= end)
    return rows.sort(instant, *order).head(MOST).collect()


def _by_record_id(warehouse: Warehouse, name: str, ids: set[str], finding: dict[str, Any]) -> pl.DataFrame:
    """Return the rows with these ids. Ids are unique: other days are read only if days near the finding lack one."""
    is_wanted = pl.col("record_id").is_in(sorted(ids))

    def read(days: tuple[dt.date, dt.date] | None) -> pl.DataFrame:
        return warehouse.read(name, Rows(finding["cluster"], between=days)).filter(is_wanted).head(MOST).collect()

    days = _days(_shifted(finding["from_ts"], -ONE_DAY), _shifted(finding["to_ts"], ONE_DAY))
    if days is not None and warehouse.contracts[name].by_day:
        rows = read(days)
        if rows.height >= min(len(ids), MOST):
            return rows
    return read(None)


def _shifted(ts: dt.datetime | None, by: dt.timedelta) -> dt.datetime | None:
    """Return the instant in UTC, shifted by a duration."""
    try:
        return None if ts is None else ts.replace(tzinfo=dt.UTC) + by
    except OverflowError:  # at the first or the last day that Python has
        return None


def _days(begin: dt.datetime | None, end: dt.datetime | None) -> tuple[dt.date, dt.date] | None:
    return None if begin is None or end is None else (begin.date(), end.date())


def _typed(value: Any) -> Any:
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value


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
