"""Rows of evidence: which rows the keys of findings name, in which order, how many, and what they say."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from evidence_keys import evidence_of as item
from made_warehouse import CLUSTER, made_warehouse
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.evidence_rows import EvidenceRows, evidence_of
from mqreplay.report.evidence_values import MOST_ITEMS
from mqreplay.report.evidence_words import WORDINGS, what, who, wording_of

MIDNIGHT = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
QUEUE = {"broker_name": "b", "topic": "t", "consumer_group": "g", "queue_id": 7}
CHANGE = QUEUE | {"source_name": "broker-a-0", "from_ts": None}
Rows = dict[str, list[dict[str, Any]]]


def finding(**differs: Any) -> dict[str, Any]:
    return {
        "finding_id": "f1",
        "from_ts": MIDNIGHT,
        "to_ts": MIDNIGHT,
        "evidence": [],
        "evidence_count": None,
    } | differs


def found(tmp_path: Path, tables: Rows, limit: int = 50, **differs: Any) -> EvidenceRows:
    warehouse = made_warehouse(tmp_path, tables)
    return evidence_of(warehouse, CLUSTER, [finding(**differs)], limit, whole=True)["f1"]


def values(of: EvidenceRows, column: str) -> list[Any]:
    return [row.row[column] for row in of.rows]


@pytest.mark.parametrize("days", [0, 1, -1, 30, -30])
def test_rows_are_found_by_their_id_whatever_their_day(tmp_path: Path, days: int) -> None:
    at = MIDNIGHT + dt.timedelta(days=days)
    rows = [{"record_id": id_, "day": ts.date(), "ts": ts} for id_, ts in (("a", at), ("b", MIDNIGHT), ("c", at))]
    rows.append({"record_id": "a", "day": at.date(), "ts": at, "cluster": "other"})
    keys = [item("silver.consume", record_id=each) for each in ("a", "b", "gone")]
    shown = found(tmp_path, {"silver.consume": rows}, evidence=keys)
    assert sorted(values(shown, "record_id")) == ["a", "b"]
    assert [row.ts for row in shown.rows] == sorted([at, MIDNIGHT])
    assert (shown.total, shown.more) == (2, 0)


def test_rows_of_a_queue_are_those_near_the_finding_on_both_sides_of_midnight(tmp_path: Path) -> None:
    offsets = {n: MIDNIGHT + n * SECOND for n in (-61, -60, -1, 0, 70, 71)}
    rows = [CHANGE | {"new_offset": 100 + n, "to_ts": ts, "day": ts.date()} for n, ts in offsets.items()]
    rows.append(CHANGE | {"queue_id": 8, "new_offset": 1, "to_ts": MIDNIGHT, "day": MIDNIGHT.date()})
    keys = [item("silver.offset_change", **QUEUE)]
    shown = found(tmp_path, {"silver.offset_change": rows}, to_ts=MIDNIGHT + 10 * SECOND, evidence=keys)
    assert values(shown, "new_offset") == [40, 99, 100, 170]


@pytest.mark.parametrize(
    ("differs", "expected"),
    [({"from_ts": None}, [0, 1]), ({"to_ts": None}, [1, 2]), ({"from_ts": None, "to_ts": None}, [0, 1, 2])],
)
def test_a_finding_without_a_bound_has_evidence_without_that_bound(
    tmp_path: Path, differs: dict[str, None], expected: list[int]
) -> None:
    times = [MIDNIGHT + dt.timedelta(days=days) for days in (-5, 0, 5)]
    rows = [CHANGE | {"new_offset": n, "to_ts": ts, "day": ts.date()} for n, ts in enumerate(times)]
    keys = [item("silver.offset_change", **QUEUE)]
    shown = found(tmp_path, {"silver.offset_change": rows}, evidence=keys, **differs)
    assert values(shown, "new_offset") == expected


def test_an_interval_is_evidence_of_all_that_it_covers(tmp_path: Path) -> None:
    """The day of a gold row need not be that of its instant."""
    hour = dt.timedelta(hours=1)
    spans = {"before": (-3, -2), "covers": (-2, 2), "at once": (0, 0), "after": (1, 2)}
    rows = [
        QUEUE
        | {"client_id": name, "day": dt.date(2026, 11, 25)}
        | {"from_ts": MIDNIGHT + begin * hour, "to_ts": MIDNIGHT + end * hour}
        for name, (begin, end) in spans.items()
    ]
    shown = found(tmp_path, {"gold.queue_owner": rows}, evidence=[item("gold.queue_owner", **QUEUE)])
    assert values(shown, "client_id") == ["covers", "at once"]
    assert shown.rows[0].what.startswith("held queue b/7 of t until 02:00:00.000")


def test_a_key_names_an_exact_instant(tmp_path: Path) -> None:
    times = [MIDNIGHT + dt.timedelta(days=9, microseconds=n) for n in (0, 120_000, 120_001)]
    rows = [{"source_name": "s", "topic": "t", "ts": ts, "day": ts.date()} for ts in times]
    keys = [item("silver.topic_config", source_name="s", topic="t", ts=ts) for ts in times[:2]]
    keys[0]["ts"] = keys[0]["ts"].replace(tzinfo=None)  # as plain_rows gives instants
    shown = found(tmp_path, {"silver.topic_config": rows}, evidence=keys)
    assert values(shown, "ts") == times[:2]


def test_the_rows_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    rows = [{"path": "p", "line_number": n} for n in reversed(range(9))]
    keys = [item("bronze.quarantine", path="p"), item("gold.finding", finding_id="effect")]
    shown = found(tmp_path, {"bronze.quarantine": rows}, limit=4, evidence=keys, evidence_count=3)
    assert values(shown, "line_number") == [0, 1, 2, 3]
    assert shown.rows[0].ts is None
    # Two keys were left out when the finding was written, each names a row at least.
    assert (shown.total, shown.more, shown.unnamed) == (9 + 2, 7, 2)


def group_of(shown: EvidenceRows) -> list[tuple[str, int, int]]:
    return [(group.text, group.count, group.early) for group in shown.groups]


def test_rows_are_counted_by_what_came_of_them_whatever_the_limit(tmp_path: Path) -> None:
    errors = {"a.b.TimeoutException: wait on <10.0.0.1:9> 30": 3, "a.b.TimeoutException: wait on <10.0.0.2:9> 31": 2}
    errors |= {"refused": 1}
    rows = [
        QUEUE | {"record_id": f"{error}{n}", "error": error, "response_name": None, "day": MIDNIGHT.date()}
        for error, count in errors.items()
        for n in range(count)
    ]
    rows = [row | {"request_ts": MIDNIGHT + (n - 2) * SECOND} for n, row in enumerate(rows)]
    keys = [item("silver.pull", record_id=row["record_id"]) for row in rows]
    shown = found(tmp_path, {"silver.pull": rows}, limit=1, evidence=keys)
    assert group_of(shown) == [("error: TimeoutException: wait on <…> …", 5, 2), ("error: refused", 1, 0)]
    first = shown.groups[0]
    assert (first.first_ts, first.last_ts) == (MIDNIGHT - 2 * SECOND, MIDNIGHT + 2 * SECOND)
    assert not first.is_near
    assert len(shown.rows) == 1


def test_long_texts_that_begin_alike_are_one_group(tmp_path: Path) -> None:
    errors = [f"sent again and again, and still failed {'.' * 40} on topic {topic}" for topic in ("x", "y")]
    rows = [{"record_id": each, "error": each, "send_status": None, "day": MIDNIGHT.date()} for each in errors]
    keys = [item("silver.produce", record_id=each) for each in errors]
    ((text, count, _),) = group_of(found(tmp_path, {"silver.produce": rows}, evidence=keys))
    assert (text[:44], text[-4:], count) == ("error sent again and again, and still failed", "....", 2)


def test_rows_without_an_outcome_are_one_group_of_their_place(tmp_path: Path) -> None:
    rows = [CHANGE | {"new_offset": n, "to_ts": MIDNIGHT + n * SECOND, "day": MIDNIGHT.date()} for n in (-1, 0)]
    rows = [row | {"day": row["to_ts"].date()} for row in rows]
    shown = found(tmp_path, {"silver.offset_change": rows}, evidence=[item("silver.offset_change", **QUEUE)])
    assert group_of(shown) == [("", 2, 1)]
    assert shown.groups[0].is_near


def test_the_page_reads_no_groups(tmp_path: Path) -> None:
    row = {"record_id": "a", "day": MIDNIGHT.date(), "ts": MIDNIGHT}
    warehouse = made_warehouse(tmp_path, {"silver.consume": [row]})
    keys = [item("silver.consume", record_id="a")]
    assert evidence_of(warehouse, CLUSTER, [finding(evidence=keys)])["f1"].groups == []


def test_findings_share_one_reading_and_keep_their_own_rows_in_time_order(tmp_path: Path) -> None:
    rows = [{"record_id": f"r{n}", "day": MIDNIGHT.date(), "ts": MIDNIGHT - n * SECOND} for n in range(6)]
    pulls = [{"record_id": "p", "day": MIDNIGHT.date(), "request_ts": MIDNIGHT - 2.5 * SECOND}]
    warehouse = made_warehouse(tmp_path, {"silver.consume": rows, "silver.pull": pulls})
    keys = [item("silver.consume", record_id=f"r{n}") for n in range(6)]
    findings = [
        finding(evidence=[*keys[1:4], item("silver.pull", record_id="p")]),
        finding(finding_id="f2", evidence=keys[3:]),
        finding(finding_id="none"),
        finding(finding_id="null", evidence=None),
    ]
    shown = evidence_of(warehouse, CLUSTER, findings)
    order = {id_: [row.ts for row in of.rows] for id_, of in shown.items()}
    assert order == {
        "f1": [MIDNIGHT - n * SECOND for n in (3, 2.5, 2, 1)],
        "f2": [MIDNIGHT - n * SECOND for n in (5, 4, 3)],
        "none": [],
        "null": [],
    }
    assert "record_id" not in shown["f1"].rows[1].row, "only the columns that the text needs"


def test_what_no_table_has_is_left_out(tmp_path: Path) -> None:
    """A table that was never made, one of another version, and a key that an older version stored as text."""
    keys = [item("silver.pull", record_id="a"), item("silver.gone", record_id="a"), item("silver.pull")]
    shown = evidence_of(Warehouse(str(tmp_path)), CLUSTER, [finding(evidence=keys)])["f1"]
    assert (shown.rows, shown.total) == ([], 0)


def test_a_key_of_a_column_that_the_table_lacks_is_named(tmp_path: Path) -> None:
    # A user's package may name what it wants.
    keys = [item("silver.consume", record_id="a"), item("silver.consume", source_name="b", path="p")]
    rows = [{"record_id": "a", "day": MIDNIGHT.date(), "ts": MIDNIGHT}]
    shown = found(tmp_path, {"silver.consume": rows}, evidence=keys)
    assert shown.total == 2
    unreadable = shown.rows[-1]
    assert (unreadable.table_name, unreadable.what, unreadable.row) == (
        "silver.consume", "evidence that cannot be read: the table has no column path, source_name", {},
    )  # fmt: skip


def test_maps_and_structs_are_dicts(tmp_path: Path) -> None:
    queue = dict.fromkeys(("locked", "memory_offset", "cached_msgs", "cached_first", "cached_last", "last_pull_ts"))
    queue |= {"topic": "t", "broker_name": "b", "queue_id": 1, "dropped": False, "pull_from_broker_id": 0}
    tables: Rows = {
        "silver.broker_runtime": [{"record_id": "a", "ts": MIDNIGHT, "runtime": {"putTps": "1.0"}}],
        "silver.assignment": [{"record_id": "b", "ts": MIDNIGHT + SECOND, "queues": [queue]}],
    }
    keys = [item("silver.broker_runtime", record_id="a"), item("silver.assignment", record_id="b")]
    runtime, assignment = found(tmp_path, tables, evidence=keys).rows
    assert runtime.row["runtime"] == {"putTps": "1.0"}
    assert assignment.row["queues"][0]["pull_from_broker_id"] == 0
    assert assignment.what.startswith("holds t b/1")


def test_wordings_name_columns_of_their_tables() -> None:
    contracts = load_contracts()
    shared = {"client_id", "consumer_group", "broker_name", "broker_id", "source_name", "path"}  # of whom
    for table, wording in WORDINGS.items():
        columns = {column.name for column in contracts[table].columns}
        assert wording.columns - shared <= columns, table
        assert not wording.instant or wording.instant in columns


def test_a_row_says_what_is_known_of_it() -> None:
    continuity = WORDINGS["gold.offset_continuity"]
    row = QUEUE | {"previous_offset": 120, "new_offset": 35, "kind": "rewind", "size": 85, "broker_id": 0}
    assert what(continuity, row) == "offset 120 -> 35, queue b/7 of t, on b-0, rewind of 85"
    assert what(continuity, row | {"cause": "reset", "redelivered_max": 0}).endswith("of 85, cause reset")
    assert what(continuity, row | {"redelivered_max": 85}).endswith("at most 85 delivered again")
    assert (
        what(WORDINGS["silver.rebalance"], {"strategy": "AVG", "mq_divided": [], "topic": "t"}) == "AVG gives none of t"
    )
    queues = [{"broker_name": "b", "queue_id": n} for n in range(MOST_ITEMS + 3)]
    gives = what(WORDINGS["silver.rebalance"], {"strategy": "AVG", "mq_divided": queues, "topic": "t"})
    assert gives.startswith("AVG gives b/0, b/1, ")
    assert f"b/{MOST_ITEMS - 1} ... ({MOST_ITEMS + 3} in all) of t" in gives
    assert who({"consumer_group": "{client_id}"}) == "group {client_id}", "a name is no template"


def test_a_table_without_a_wording_shows_the_columns_that_have_a_value() -> None:
    columns = [column.name for column in load_contracts()["silver.route"].columns]
    wording = wording_of("silver.route", columns)
    assert wording.instant == "ts"
    assert (
        what(wording, {"topic": "t", "ts": MIDNIGHT, "error": None, "response_code": 0}) == "topic t, response_code 0"
    )
