"""gold.replay_gap: decisions that could not be judged, missing files, and reasons."""

from __future__ import annotations

import datetime as dt
import hashlib

import polars as pl
import pytest

from mqreplay.decisions.allocation import ALLOCATION
from mqreplay.decisions.judgement import undetermined_of_shard
from mqreplay.decisions.pull_route import PULL_ROUTE
from mqreplay.decisions.registry import DECISIONS
from mqreplay.decisions.replay_gap import lacking, missing_kinds, replay_gap
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.recording.advice import EVIDENCE, Need
from mqreplay.evidence.gap_rows import GAP
from mqreplay.findings.every import KINDS as FINDINGS
from mqreplay.lake.contract import arrow_schema, load_contracts
from silver_moments import BEGAN, at

DAY = BEGAN.date()
DECISION_NEEDS = {name: decision.needs for name, decision in DECISIONS.items()}
NEEDED = DECISION_NEEDS | {
    "finding consumer_lost": (Need("heartbeats", or_polled=("consumer_lists",)),),
    "finding clock_skew": (),
}
PULLS = {
    "day": pl.Date,
    "consumer_group": pl.String,
    "topic": pl.String,
    "broker_name": pl.String,
    "request_ts": pl.Datetime("us", "UTC"),
    "judgement": pl.String,
    "reason": pl.String,
}
ASKED = [
    (DAY, "g", "T", "b", at(7), "undetermined", "the route of 12 ms before names no broker id 1"),
    (DAY, "g", "T", "b", at(3), "undetermined", "the route of 9 ms before names no broker id 0"),
    (DAY, "g", "T", "b", at(9), "agree", "the master"),
    (DAY, "g", "T", "c", at(4), "undetermined", "the route of 9 ms before names no broker id 0"),
    (DAY, "g", None, "b", at(5), "undetermined", "no -1"),
]


def pulls(listed: list[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(listed, PULLS, orient="row")


def gap_id(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def test_each_decision_that_needs_a_missing_file_has_a_gap() -> None:
    found = replay_gap(missing_kinds(DAY, {"heartbeats", "lock_requests", "recorder_events"}, NEEDED), "c")
    owners = lost = "no record of heartbeats and unregistrations. Next time: write heartbeats.jsonl in the hooks"
    expected = {
        (gap_id("c", name, "heartbeats", str(DAY), "", "", "", reason), name, reason)
        for name, reason in (("gold.queue_owner", owners), ("finding consumer_lost", lost))
    }
    assert set(found.select("gap_id", "decision", "reason").rows()) == expected
    assert set(found["evidence"]) == {"heartbeats"}
    assert found["decisions"].to_list() == [0, 0]
    assert found["from_ts"].null_count() == 2


@pytest.mark.parametrize(
    ("more", "polled", "advice"),
    [
        ({"recorder_events"}, False, "write heartbeats.jsonl in the hooks"),
        ({"consume_log", "produce_log", "consumer_lists"}, True, "import broker.log of each broker"),
        ({"consume_log", "produce_log", "recorder_events"}, False, "run `mqreplay record`, or import broker.log"),
    ],
)
def test_advice_fits_how_the_recording_was_made(more: set[str], polled: bool, advice: str) -> None:
    found = missing_kinds(DAY, {"heartbeats", *more}, NEEDED, polled).filter(pl.col("evidence") == "heartbeats")
    assert all(f"Next time: {advice}" in reason for reason in found["reason"])
    assert len(found)


def test_polled_lists_of_members_replace_heartbeats() -> None:
    assert missing_kinds(DAY, {"heartbeats"}, NEEDED, polled=True).is_empty()


def test_a_kind_without_advice_has_a_gap_all_the_same() -> None:
    found = missing_kinds(DAY, {"consumer_lists"}, {"finding of_a_package": (Need("consumer_lists"),)})
    assert found["reason"].to_list() == ["no record of lists of the groups' members"]


def test_a_whole_recording_has_no_gap() -> None:
    assert missing_kinds(DAY, set(), NEEDED).is_empty()


def test_each_kind_of_file_that_is_needed_exists() -> None:
    copied = {"brokers", "consumer_offset", "subscription_groups", "topics"}
    assert {need.kind for needs in DECISION_NEEDS.values() for need in needs} <= KINDS.keys() | copied
    needed = {
        need.kind for needs in (*DECISION_NEEDS.values(), *(each.needs for each in FINDINGS.values())) for need in needs
    }
    assert needed <= EVIDENCE.keys()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_undetermined_rows_of_one_place_and_reason_are_one_gap(size: int) -> None:
    parts = [undetermined_of_shard(PULL_ROUTE, part) for part in pulls(ASKED).iter_slices(size)]
    found = replay_gap(pl.concat(parts), "c").sort("from_ts")
    reason = "the route of N ms before names no broker id N"
    place = ["consumer_group", "topic", "broker_name", "from_ts", "to_ts", "decisions", "reason"]
    assert found.select(place).rows() == [
        ("g", "T", "b", at(3), at(7), 2, reason),
        ("g", "T", "c", at(4), at(4), 1, reason),
        ("g", None, "b", at(5), at(5), 1, "no -N"),
    ]
    ids = [gap_id("c", "gold.pull_route", "undetermined", str(DAY), "g", "T", "b", reason)]
    assert found["gap_id"].to_list()[:1] == ids
    assert found["gap_id"].n_unique() == 3


def test_a_table_without_a_broker_name_has_gaps_without_one() -> None:
    found = undetermined_of_shard(ALLOCATION, pulls(ASKED).drop("broker_name").rename({"request_ts": "rebalance_ts"}))
    assert found.sort("from_ts").select("broker_name", "decisions").rows() == [(None, 3), (None, 1)]


def test_no_rows_make_no_gaps_but_the_columns_of_the_table() -> None:
    parts = [missing_kinds(DAY, set(), DECISION_NEEDS), undetermined_of_shard(PULL_ROUTE, pulls([]))]
    assert all(part.schema == pl.Schema(GAP) for part in parts)
    columns = load_contracts()["gold.replay_gap"].columns
    expected = pl.from_arrow(arrow_schema((c.name, c.type) for c in columns if c.name != "cluster").empty_table())
    assert replay_gap(pl.concat(parts), "c").schema == expected.schema


def test_days_are_separate() -> None:
    listed = [ASKED[0], (DAY + dt.timedelta(1), *ASKED[0][1:])]
    assert undetermined_of_shard(PULL_ROUTE, pulls(listed))["decisions"].to_list() == [1, 1]


def test_polls_of_the_recorder_stand_in_for_what_clients_would_have_recorded() -> None:
    missing = {"rebalance_log", "heartbeats", "pull_log"}
    found = missing_kinds(
        DAY, missing, DECISION_NEEDS | {"finding stuck_queue": FINDINGS["stuck_queue"].needs}, polled=True
    )
    assert sorted(found["decision"]) == [
        f"gold.{name}" for name in ("pull_answer", "pull_batch", "pull_route", "queue_start", "slave_suggestion")
    ]
    assert "gold.allocation" in missing_kinds(DAY, missing, DECISION_NEEDS)["decision"].to_list()


def test_a_kind_that_stands_in_must_be_recorded_itself() -> None:
    needs = {f"finding {name}": FINDINGS[name].needs for name in ("stuck_queue", "orphan_queue")}

    def lacked(*missing: str, polled: bool) -> set[str]:
        return {d for d in missing_kinds(DAY, missing, needs, polled)["decision"] if d.startswith("finding")}

    assert lacked("pull_log", "topic_stats", polled=True) == set()
    assert lacked("pull_log", "topic_stats", "consume_stats", polled=True) == {"finding stuck_queue"}
    assert lacked("pull_log", polled=False) == {"finding stuck_queue"}
    assert lacked("assignments", "rebalance_log", polled=False) == set()
    assert lacked("assignments", "rebalance_log", "pull_log", polled=True) == {"finding orphan_queue"}


@pytest.mark.parametrize(("answers", "requests", "lacks"), [(0, 0, False), (5, 0, True), (5, 1, False)])
def test_answers_of_clients_logs_are_no_record_of_pulls(answers: int, requests: int, lacks: bool) -> None:
    shards = pl.DataFrame({"answers": [0, answers], "requests": [0, requests]})
    assert lacking(["routes"], shards) == {"routes", *(["pull_log"] if lacks else [])}
