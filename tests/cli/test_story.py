"""The story of a finding: which rows are its evidence, in which order, and what it is linked to."""

from __future__ import annotations

import datetime as dt
import doctest
import json
from pathlib import Path
from typing import Any

import pytest

from evidence_keys import evidence_of
from made_warehouse import made_warehouse
from mqreplay.cli import story as story_module
from mqreplay.cli.explain import print_story
from mqreplay.cli.story import MOST, Story, explain, shown, tell
from mqreplay.errors import InputError
from mqreplay.lake.warehouse import Warehouse

MIDNIGHT = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
QUEUE = {"source_name": "broker-a-0", "broker_name": "b", "topic": "t", "consumer_group": "g", "queue_id": 7}
QUEUE_KEY = {"broker_name": "b", "topic": "t", "consumer_group": "g", "queue_id": 7}


def finding(**differs: Any) -> dict[str, Any]:
    row = {"finding_id": "f1", "kind": "broker_down", "day": MIDNIGHT.date(), "from_ts": MIDNIGHT, "to_ts": MIDNIGHT}
    return row | {"severity": "info"} | differs


def record(table: str, *record_ids: str) -> list[dict[str, Any]]:
    return [evidence_of(table, record_id=each) for each in record_ids]


def told(tmp_path: Path, tables: dict[str, list[dict[str, Any]]], *findings: dict[str, Any]) -> Story:
    return tell(made_warehouse(tmp_path, {**tables, "gold.finding": list(findings)}), "f1", None)


def values(story: Story, column: str) -> list[Any]:
    return [step["row"][column] for step in story.steps]


def test_examples() -> None:
    assert doctest.testmod(story_module)[:2] == (0, 1)


@pytest.mark.parametrize("days", [0, 1, -1, 30, -30])
def test_rows_named_by_their_id_are_evidence_whatever_their_day(tmp_path: Path, days: int) -> None:
    at = MIDNIGHT + dt.timedelta(days=days)
    rows = [{"record_id": id_, "day": ts.date(), "ts": ts} for id_, ts in (("a", at), ("b", MIDNIGHT), ("c", at))]
    rows.append({"record_id": "a", "day": at.date(), "ts": at, "cluster": "other"})
    story = told(
        tmp_path,
        {"silver.consume": rows},
        finding(evidence=record("silver.consume", "a", "b", "gone")),
    )
    assert sorted(values(story, "record_id")) == ["a", "b"]
    assert [step["ts"] for step in story.steps] == sorted(step["ts"] for step in story.steps)
    assert all(step["ts"].tzinfo is None for step in story.steps)


def test_rows_of_a_place_are_those_near_the_finding_on_both_sides_of_midnight(tmp_path: Path) -> None:
    offsets = {n: MIDNIGHT + n * SECOND for n in (-61, -60, -1, 0, 70, 71)}
    rows = [QUEUE | {"new_offset": 100 + n, "to_ts": ts, "day": ts.date()} for n, ts in offsets.items()]
    rows.append(QUEUE | {"queue_id": 8, "new_offset": 1, "to_ts": MIDNIGHT, "day": MIDNIGHT.date()})
    story = told(
        tmp_path,
        {"silver.offset_change": rows},
        finding(to_ts=MIDNIGHT + 10 * SECOND, evidence=[evidence_of("silver.offset_change", **QUEUE_KEY)]),
    )
    assert values(story, "new_offset") == [40, 99, 100, 170]


@pytest.mark.parametrize(
    ("differs", "expected"),
    [({"from_ts": None}, [0, 1]), ({"to_ts": None}, [1, 2]), ({"from_ts": None, "to_ts": None}, [0, 1, 2])],
)
def test_a_finding_without_a_bound_has_evidence_without_that_bound(
    tmp_path: Path, differs: dict[str, None], expected: list[int]
) -> None:
    times = [MIDNIGHT + dt.timedelta(days=days) for days in (-5, 0, 5)]
    rows = [QUEUE | {"new_offset": n, "to_ts": ts, "day": ts.date()} for n, ts in enumerate(times)]
    row = finding(evidence=[evidence_of("silver.offset_change", **QUEUE_KEY)], **differs)
    assert values(told(tmp_path, {"silver.offset_change": rows}, row), "new_offset") == expected


def test_the_day_of_a_gold_row_need_not_be_that_of_its_instant(tmp_path: Path) -> None:
    row = {name: value for name, value in QUEUE.items() if name != "source_name"}
    row |= {"client_id": "x", "from_ts": MIDNIGHT, "to_ts": MIDNIGHT, "day": dt.date(2026, 11, 25)}
    story = told(
        tmp_path,
        {"gold.queue_owner": [row]},
        finding(evidence=[evidence_of("gold.queue_owner", **QUEUE_KEY, client_id="x")]),
    )
    assert len(story.steps) == 1


def test_a_key_names_an_exact_instant(tmp_path: Path) -> None:
    times = [MIDNIGHT + dt.timedelta(days=9, microseconds=n) for n in (0, 120_000, 120_001)]
    rows = [{"source_name": "s", "topic": "t", "ts": ts, "day": ts.date()} for ts in times]
    keys = [evidence_of("silver.topic_config", source_name="s", topic="t", ts=ts) for ts in times[:2]]
    story = told(tmp_path, {"silver.topic_config": rows}, finding(evidence=keys))
    assert values(story, "ts") == [ts.replace(tzinfo=None) for ts in times[:2]]


def test_rows_without_an_instant_are_capped(tmp_path: Path) -> None:
    rows = [{"path": "p", "line_number": n, "content": b"\xff"} for n in reversed(range(MOST + 9))]
    story = told(tmp_path, {"bronze.quarantine": rows}, finding(evidence=[evidence_of("bronze.quarantine", path="p")]))
    assert values(story, "line_number") == list(range(MOST))
    assert story.steps[0]["ts"] is None
    assert "content=bytearray(b'\\xff')" in shown(story.steps[0]["row"])


def test_maps_and_nested_instants_are_plain_values(tmp_path: Path) -> None:
    queue = dict.fromkeys(("locked", "memory_offset", "cached_msgs", "cached_first", "cached_last"))
    queue |= {"topic": "t", "broker_name": "b", "queue_id": 1, "dropped": False, "pull_from_broker_id": 0}
    tables = {
        "silver.broker_runtime": [{"record_id": "a", "ts": MIDNIGHT, "runtime": {"putTps": "1.0"}}],
        "silver.assignment": [{"record_id": "b", "ts": MIDNIGHT, "queues": [queue | {"last_pull_ts": MIDNIGHT}]}],
    }
    keys = [*record("silver.broker_runtime", "a"), *record("silver.assignment", "b")]
    assignment, runtime = (step["row"] for step in told(tmp_path, tables, finding(evidence=keys)).steps)
    assert runtime["runtime"] == {"putTps": "1.0"}
    assert assignment["queues"][0]["last_pull_ts"] == MIDNIGHT.replace(tzinfo=None)


def test_evidence_in_a_table_that_was_never_made_is_left_out(tmp_path: Path) -> None:
    assert told(tmp_path, {}, finding(evidence=record("silver.pull", "a"))).steps == []


def test_a_story_has_its_cause_and_its_effects_each_from_their_last_day(tmp_path: Path) -> None:
    day_before = MIDNIGHT.date() - dt.timedelta(days=1)
    story = told(
        tmp_path,
        {},
        finding(follows_from="cause"),
        finding(day=day_before, follows_from=None),
        finding(finding_id="cause"),
        finding(finding_id="e2", follows_from="f1", from_ts=MIDNIGHT + SECOND),
        finding(finding_id="e1", follows_from="f1", summary="last"),
        finding(finding_id="e1", follows_from="f1", summary="first", day=day_before),
        finding(finding_id="e3", follows_from="f1", day=day_before),
        finding(finding_id="e3", follows_from=None),
        finding(finding_id="e4", follows_from="f1", cluster="other"),
    )
    assert story.cause is not None
    assert story.cause["finding_id"] == "cause"
    assert [(row["finding_id"], row["summary"]) for row in story.effects] == [("e1", "last"), ("e2", "x")]


def test_an_id_names_one_finding(tmp_path: Path) -> None:
    findings = [finding(finding_id=id_) for id_ in ("ab", "ac")] + [finding(finding_id="ab", cluster="other")]
    made_warehouse(tmp_path, {"gold.finding": findings})
    assert explain(str(tmp_path), "ac", None).finding["finding_id"] == "ac"
    assert explain(str(tmp_path), "ab", "other").finding["cluster"] == "other"
    with pytest.raises(InputError, match="2 findings have ids that begin with ab; give more of it"):
        explain(str(tmp_path), "ab", None)
    with pytest.raises(InputError, match="no finding has an id that begins with x; SELECT"):
        explain(str(tmp_path), "x", None)
    with pytest.raises(InputError, match="no finding has an id"):
        tell(Warehouse(str(tmp_path / "none")), "a", None)
    with pytest.raises(InputError, match="does not exist"):
        explain(str(tmp_path / "none"), "a", None)


def test_a_printed_story_has_instants_in_utc_without_a_time_zone(tmp_path: Path, capsys: Any) -> None:
    row = finding(from_ts=MIDNIGHT + dt.timedelta(milliseconds=5), follows_from=None)
    made_warehouse(tmp_path, {"gold.finding": [row]})
    print_story(str(tmp_path), "f1", None, as_json=True)
    assert json.loads(capsys.readouterr().out)["finding"]["from_ts"] == "2026-11-21T00:00:00.005000"
    print_story(str(tmp_path), "f1", None, as_json=False)
    assert "2026-11-21 00:00:00 to 00:00:00 UTC" in capsys.readouterr().out
