"""A night of a real cluster of 5.3.3 that `mqreplay record` recorded over the network, without hooks."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Night
from mqreplay.answers.outcome import Outcome, outcome_of
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night import nightly as nights
from mqreplay.settings import load_settings
from tests_shared import assert_same_tables, files_of, run, unpack

ARCHIVE = Path(__file__).parents[1] / "data" / "polled-5.3.3.tar.xz"
CLUSTER = "mint-cluster"
HALF_MS = 1_795_476_270_000  # 23:24:30: after the reset, before the kills
POLL_S = 5
REBALANCE_S = 21  # a client rebalances every 20 s
MEMBERS = {
    "counters": {"23:22:13.136", "23:22:16.066", "23:23:01.950", "23:23:46.952", "23:24:58.009", "23:26:52.276"},
    "refiners": {"23:22:13.729", "23:22:16.875", "23:24:58.009", "23:26:52.276"},
}
KILLED = {("counters", "10.7.0.2@2548#41534911983795"), ("refiners", "10.7.1.2@2548#41536414636279")}
STOPPED = ("counters", "10.7.0.3@2527#41582200941481")
C1, C2, C3, F1, F2 = "10.7.0.1", "10.7.0.2", "10.7.0.3", "10.7.1.1", "10.7.1.2"
# Owners of queues 0, 1 ... of die-1, then of die-2, when the members are settled.
SETTLED = [
    ("coin-struck", "23:22:50", [C1] * 4 + [C2] * 4),
    ("coin-struck", "23:23:35", [C1] * 3 + [C2] * 3 + [C3] * 2),
    ("coin-struck", "23:24:30", [C1] * 4 + [C2] * 4),
    ("coin-struck", "23:25:30", [C1] * 8),
    ("coin-struck", "23:26:00", [C1] * 8),
    ("coin-melted", "23:23:35", [F1, F2] * 2),
    ("coin-melted", "23:25:30", [F1] * 4),
]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("polled") / "recording"
    with tarfile.open(ARCHIVE) as archive:
        unpack(archive, folder)
    return folder


@pytest.fixture(scope="module")
def polled(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The nightly run of the whole recording. Tests must not write to it."""
    return nightly(str(tmp_path_factory.mktemp("warehouse") / "w"), recording)


def nightly(root: str, recording: Path) -> Night:
    outcomes = run("nightly", root, load_settings(), lambda what: None, recordings=[str(recording)])
    return Night(root, {outcome.cluster: outcome for outcome in outcomes})


def at(clock: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"2026-11-23T{clock}")


def seconds_off(instant: Any, clock: str) -> float:
    """Seconds from the clock time to the instant, which is a datetime or ISO 8601 text."""
    if isinstance(instant, str):
        instant = dt.datetime.fromisoformat(instant)
    return float((instant.replace(tzinfo=None) - at(clock)).total_seconds())


def findings_of(night: Night, kind: str) -> list[dict[str, Any]]:
    return [finding for finding in night.outcomes[CLUSTER].findings if finding["kind"] == kind]


def test_findings_are_the_faults_and_nothing_else_alarms(polled: Night) -> None:
    alarms = [f for f in polled.outcomes[CLUSTER].findings if f["severity"] != "info"]
    assert len(alarms) == 2
    assert alarms[0]["kind"] == "broker_down"
    assert alarms[1]["kind"] in ("offset_reset", "offset_rewind")


def test_the_outage_of_the_master_is_known_to_a_poll(polled: Night) -> None:
    (down,) = findings_of(polled, "broker_down")
    assert (down["severity"], down["broker_name"], down["broker_id"]) == ("critical", "die-2", 0)
    assert 0 <= seconds_off(down["from_ts"], "23:25:38.026") <= POLL_S
    assert 0 <= seconds_off(down["to_ts"], "23:26:22.267") <= POLL_S


def test_the_reset_is_a_rewind_of_the_group(polled: Night) -> None:
    (alarm,) = [
        f for f in polled.outcomes[CLUSTER].findings if f["kind"].startswith("offset_") and f["severity"] == "warning"
    ]
    assert (alarm["consumer_group"], alarm["topic"]) == ("counters", "coin-struck")
    assert -POLL_S <= seconds_off(alarm["from_ts"], "23:24:18.007") <= POLL_S
    assert 0 <= seconds_off(alarm["to_ts"], "23:24:18.007") <= POLL_S
    assert "back by up to 29 messages" in alarm["summary"]


def test_clients_that_vanish_are_lost_without_alarm(polled: Night) -> None:
    lost = {(f["consumer_group"], f["client_id"]): f for f in findings_of(polled, "consumer_lost")}
    assert lost.keys() <= KILLED | {STOPPED}, "polls do not show an ordered stop"
    assert lost.keys() >= KILLED
    assert {f["severity"] for f in lost.values()} == {"info"}
    for client in KILLED:
        assert abs(seconds_off(lost[client]["from_ts"], "23:24:58.009")) <= POLL_S


def test_owners_come_from_running_info_and_change_with_the_members(polled: Night) -> None:
    owners = polled.table("gold.queue_owner", CLUSTER).to_dicts()
    assert {owner["source"] for owner in owners} == {"running_info"}
    for owner in owners:
        for boundary in (owner["from_ts"], owner["to_ts"]):
            nearest = min(abs(seconds_off(boundary, clock)) for clock in MEMBERS[owner["consumer_group"]])
            assert nearest <= REBALANCE_S, owner


@pytest.mark.parametrize(("topic", "clock", "expected"), SETTLED)
def test_settled_members_own_what_the_strategy_gives(
    polled: Night, topic: str, clock: str, expected: list[str]
) -> None:
    owners = polled.table("gold.queue_owner", CLUSTER).filter(topic=topic).to_dicts()
    held = sorted(
        (owner["broker_name"], owner["queue_id"], owner["client_id"].split("@")[0])
        for owner in owners
        if seconds_off(owner["from_ts"], clock) <= 0 < seconds_off(owner["to_ts"], clock)
    )
    assert [client for _, _, client in held] == expected
    assert len({(broker, queue) for broker, queue, _ in held}) == len(held)


def test_allocations_of_both_strategies_agree_and_none_differs(polled: Night) -> None:
    judged = polled.table("gold.allocation", CLUSTER).select("strategy", "judgement").unique().rows()
    assert {("AVG", "agree"), ("AVG_BY_CIRCLE", "agree")} <= set(judged)
    assert {judgement for _, judgement in judged} <= {"agree", "undetermined"}


def failed(outcome: Outcome) -> list[tuple[str, str]]:
    """The table and the type of each expectation that failed."""
    return [(row["table_name"], row["expectation"]) for row in outcome.failed_expectations]


def test_every_expectation_holds_since_each_rewind_has_a_cause(polled: Night) -> None:
    outcome = polled.outcomes[CLUSTER]
    assert outcome.expectations > 400
    assert failed(outcome) == []
    rewinds = polled.table("gold.offset_continuity", CLUSTER).filter(kind="rewind")
    assert set(rewinds["cause"]) == {"reset", "restart"}
    assert outcome.quarantined == 0


def test_a_second_run_changes_no_file(polled: Night, recording: Path) -> None:
    before = files_of(polled.root)
    again = nightly(polled.root, recording)
    assert files_of(polled.root) == before
    assert again.outcomes[CLUSTER].findings == polled.outcomes[CLUSTER].findings


@pytest.mark.long
def test_a_recording_that_grows_gives_the_tables_of_one_run(polled: Night, recording: Path, tmp_path: Path) -> None:
    whole, root = tmp_path / "whole", str(tmp_path / "w")
    recording.rename(whole)  # tables name the recording's path: the growing one has the same
    try:
        copy_first_half(whole, recording)
        assert findings_of(nightly(root, recording), "broker_down") == []
    finally:
        shutil.copytree(whole, recording, dirs_exist_ok=True)
    nightly(root, recording)
    assert_same_tables(root, polled.root)


def copy_first_half(recording: Path, to: Path) -> None:
    """Copy what the recorder had written at HALF_MS: files of JSONL grow by whole gzip members."""
    for path in recording.rglob("*"):
        if path.is_dir() or (path.parent.name.isdigit() and int(path.parent.name) >= HALF_MS):
            continue
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = data[: sum(size for size, began in gzip_members(data) if began < HALF_MS)]
        if data:
            copy = to / path.relative_to(recording)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)


def gzip_members(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield of each gzip member its size in bytes, and the ts of its last line."""
    while data:
        member = zlib.decompressobj(wbits=31)
        lines = member.decompress(data)
        yield len(data) - len(member.unused_data), json.loads(lines.splitlines()[-1])["ts"]
        data = member.unused_data


@pytest.mark.long  # tests/engines/test_spark_engine.py does it for the sample
@pytest.mark.usefixtures("spark")
def test_spark_gives_the_tables_of_the_local_engine(polled: Night, recording: Path, tmp_path: Path) -> None:
    root = str(tmp_path / "w")
    nights.run("nightly", root, load_settings(), lambda what: None, recordings=[str(recording)], engine="spark")
    assert failed(outcome_of(Warehouse(root), CLUSTER)) == failed(polled.outcomes[CLUSTER])
    assert_same_tables(root, polled.root)
