"""What the shapes that operators reported show in the morning: each finding, or a clear word.

A night of these is judged in a second, and its expectations take four: those of all run with the long tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from import_shapes import SHAPES, Imported, import_shape, shape
from mqreplay.answers.outcome import Outcome
from mqreplay.settings import load_settings
from tests_shared import rows_at, run, tables

MIN_LONG, MAX_LONG = -7955368551255983524, 2**63 - 1
NO_PROBLEM = "No problem was found"

Row = dict[str, Any]


@dataclass(frozen=True)
class Night:
    """An imported folder through a night: the outcome, and the warehouse."""

    imported: Imported
    outcome: Outcome
    root: str

    def findings(self, kind: str) -> list[Row]:
        return [found for found in self.outcome.findings if found["kind"] == kind]

    def rows(self, table: str) -> list[Row]:
        return rows_at(self.root, table) if table in tables(self.root) else []

    @property
    def told(self) -> str:
        """All that the night says of what it read: the verdict, findings, gaps and quarantine."""
        said = [self.outcome.verdict, *(f"{found['summary']} {found['advice']}" for found in self.outcome.findings)]
        said += [str(row["reason"]) for row in (*self.rows("gold.replay_gap"), *self.rows("bronze.quarantine"))]
        return "\n".join(said)


@pytest.fixture
def imported(request: pytest.FixtureRequest, tmp_path: Path) -> Imported:
    name, options = request.param
    return import_shape(name, tmp_path, *options)


@pytest.fixture
def judge(imported: Imported, tmp_path: Path) -> Callable[..., Night]:
    """Return what judges the recording, and checks its expectations if it is to be ``validated``."""

    def judged(cluster: str | None = None, *, validated: bool = False) -> Night:
        assert imported.status == 0, imported.error
        root, settings = str(tmp_path / "warehouse"), load_settings()
        recordings = [str(imported.recording)]
        if validated:
            [outcome] = run("nightly", root, settings, lambda what: None, recordings=recordings, cluster=cluster)
            assert outcome.failed_expectations == []
            assert outcome.expectations > 0
        else:
            run("ingest", root, settings, lambda what: None, recordings=recordings, cluster=cluster)
            [outcome] = run("replay", root, settings, lambda what: None)
        return Night(imported, outcome, root)

    return judged


def offsets(done: Night) -> dict[tuple[str, str, int], list[int]]:
    """The offsets of each topic, group and queue in the order of the copies."""
    found: dict[tuple[str, str, int], list[int]] = {}
    for row in sorted(done.rows("silver.offset_change"), key=lambda row: row["to_ts"]):
        found.setdefault((row["topic"], row["consumer_group"], row["queue_id"]), []).append(row["new_offset"])
    return found


@shape("11-55-pop-retry-container-id")
def test_retry_topics_of_pop_belong_to_their_group(judge):
    done = judge("DefaultCluster")
    stats = done.rows("silver.consume_stats")
    assert {row["consumer_group"] for row in stats} == {"BadCG"}
    assert not [found for found in done.outcome.findings if found["consumer_group"] not in (None, "BadCG")]
    assert done.outcome.quarantined == 0


@pytest.mark.long
@shape("16-3x-config-dir")
def test_the_bak_alone_is_read(judge):
    done = judge("Cluster-1")
    found = offsets(done)
    assert len(found) == 10
    assert found["%RETRY%MATCH_CG", "MATCH_CG", 0] == [480]
    assert found["OFFSET_MOVED_EVENT", "__MONITOR_CONSUMER", 0] == [8]
    assert len([1 for topic, group, _ in found if (topic, group) == ("MATCH_MSG", "MATCH_CG")]) == 8
    assert {row["broker_name"] for row in done.rows("silver.offset_change")} == {"broker-g1"}
    assert len(done.rows("silver.topic_config")) == 6
    assert len(done.rows("silver.subscription_group")) == 1
    counters = {row["file_name"]: row["data_version_counter"] for row in done.rows("silver.snapshot")}
    assert (counters["topics.json"], counters["subscriptionGroup.json"]) == (117, 0)
    assert done.outcome.findings == []
    assert done.outcome.quarantined == 0


@pytest.mark.long
@shape("17-odd-offset-keys")
def test_odd_keys_are_kept_or_counted(judge):
    done = judge("C")
    found = offsets(done)
    group = "MQ_INST_1111_DOxxxx%GID_test"
    assert found["MQ_INST_1111_DOxxxx%test", group, 0] == [5, 6]
    assert found[f"%RETRY%{group}", group, 0] == [0]
    assert found["%LMQ%123", "%LMQ%123", 0] == [9]
    assert (found["neg", "g", 0], found["neg", "g", 1], found["max", "g", 0]) == ([MIN_LONG], [-1], [MAX_LONG])
    assert (found["wide", "g", 2147483647], found["quoted", "g", 1]) == ([1], [4])
    assert found["中文", "消费组", 0] == [2]
    strange = {row["detail_key"] for row in done.rows("bronze.quarantine")} | {topic for topic, _, _ in found}
    assert {"noat"} <= strange
    assert {"a@b@c", "a"} & strange
    pointed_out = done.told + done.imported.words
    assert any(word in pointed_out for word in (str(MIN_LONG), str(MAX_LONG), "negative", "below zero"))


@pytest.mark.long
@shape("b10-offset-odd-keys")
def test_all_eight_queues_are_in_silver(judge):
    found = offsets(judge("C"))
    assert len(found) == 8
    assert (found["t_max", "g_max", 0], found["t+plus", "g+plus", 0]) == ([MAX_LONG], [-3])
    assert found["MQ_INST_1234_BX%orders", "MQ_INST_1234_BX%GID_orders", 2] == [119]


@shape("21-5x-client-masked-addresses")
def test_a_commit_shows_who_holds_the_queue(judge):
    done = judge("C")
    [commit] = done.rows("silver.offset_commit")
    assert (commit["consumer_group"], commit["topic"], commit["commit_offset"]) == ("CID_J", "TJ", 77)
    assert commit["client_id"] == "x.x.x.x@46212#1"


@pytest.mark.long
@shape("24-namesrv-drill")
def test_a_drill_is_judged(judge):
    done = judge("C")
    states = [(str(row["ts"])[:19], row["error"] is None) for row in done.rows("silver.broker_runtime")]
    times = ("2026-06-27 08:21:50", "2026-06-27 08:21:55", "2026-06-27 08:22:55", "2026-06-27 08:25:55")
    assert sorted(states) == list(zip(times, (True, False, True, False), strict=True))
    assert {(row["broker_name"], row["broker_id"]) for row in done.rows("silver.broker_runtime")} == {("broker-a", 0)}


@shape("25-docker-compose-volumes")
@pytest.mark.long
def test_a_day_without_copies_is_not_stale(judge):
    """The logs are of June, the copies of November: no expectation of freshness fails."""
    done = judge(validated=True)
    assert done.outcome.cluster == "DefaultCluster"
    by_broker = {(row["broker_name"], row["queue_id"]): row["new_offset"] for row in done.rows("silver.offset_change")}
    values = dict(enumerate((250, 250, 251, 250)))
    assert by_broker == {(broker, queue): values[queue] for broker in ("broker-a", "broker-b") for queue in values}


@pytest.mark.long
@shape("33-broadcast-offsets")
def test_a_broadcasting_client_past_the_end(judge):
    done = judge("C")
    found = done.findings("offset_beyond_max")
    assert {(one["consumer_group"], one["topic"]) for one in found} == {("bc-cg", "bc")}
    assert "999999999" in found[0]["summary"]
    assert "500" in found[0]["summary"]
    assert str(found[0]["from_ts"]).startswith("2026-01-01T00:00:00")
    [torn] = done.findings("torn_snapshot")
    assert "10.1.0.6@DEFAULT" in torn["summary"]
    of_torn = [row for row in done.rows("silver.offset_change") if row["client_id"] == "10.1.0.6@DEFAULT"]
    assert {row["queue_id"]: row["new_offset"] for row in of_torn} == {6: 999999999, 7: 999999999}, "from the .bak"
    assert NO_PROBLEM not in done.outcome.verdict


@shape("b14-broadcast-garbled-windows")
def test_a_file_of_zero_bytes_is_told(judge):
    done = judge("C")
    assert [one["client_id"] or one["summary"] for one in done.findings("torn_snapshot")] != []
    assert "10.0.3.203@gogo" in str(done.findings("torn_snapshot"))
    assert offsets(done) == {("t_kw", "g_kw", 0): [9], ("t_kw", "g_kw", 1): [3]}


@pytest.mark.long
@shape("41-lost-member-broker-log")
def test_a_member_whose_connection_closed(judge):
    """A member is lost beside one that lives, by broker.log alone."""
    done = judge(validated=True)
    [lost] = done.findings("consumer_lost")
    assert lost["severity"] == "warning"
    assert lost["consumer_group"] == "cg-two"
    assert lost["client_id"] == "10.9.0.50@1234" or "10.9.0.50@1234" in lost["summary"]
    assert "10.9.0.51@77" not in str(lost["client_id"])
    assert "10.9.0.51@77" not in lost["summary"]
    assert "07:08:00" in f"{lost['from_ts']} {lost['to_ts']} {lost['summary']}", "15:08:00 +08:00"
    assert NO_PROBLEM not in done.outcome.verdict
    assert "Nothing could be judged" not in done.outcome.verdict


@shape("42-reset-broker-log-only")
def test_a_reset_that_only_the_broker_tells_of(judge):
    done = judge()
    check_reset(done)
    assert "Nothing could be judged" not in done.outcome.verdict


@pytest.mark.long
@shape("50-reset-started-only")
def test_a_reset_that_began(judge):
    """No client was connected: the broker writes no line of success."""
    done = judge()
    if done.findings("offset_reset"):
        check_reset(done)
    else:
        forms = done.imported.report["left_out"] | done.imported.lines["left_out"]
        assert [number for form, number in forms.items() if "reset" in form] == [1]
    assert NO_PROBLEM not in done.outcome.verdict or done.findings("offset_reset")


def check_reset(done: Night) -> None:
    [reset] = done.findings("offset_reset")
    assert (reset["consumer_group"], reset["topic"]) == ("pay-cg", "orders")
    assert str(reset["from_ts"]).startswith("2026-12-03T10:30:17")
    evidence = json.dumps(done.rows("silver.server_request"), default=str)
    assert "10.4.0.77:57522" in reset["summary"] + reset["advice"] + str(reset["evidence"]) + evidence


@shape("43-rewind-in-client-log", "--time-zone", "+08:00")
@pytest.mark.long
def test_commits_that_went_back(judge):
    """apache/rocketmq#3066: no copy of the offsets, only the commits of a client."""
    done = judge("C", validated=True)
    assert NO_PROBLEM not in done.outcome.verdict
    found = done.findings("offset_rewind")
    if not found:
        assert "back" in done.outcome.verdict
        assert "commit" in done.outcome.verdict
        return
    [rewind] = found
    assert (rewind["consumer_group"], rewind["topic"]) == ("pay-cg", "pay")
    assert (rewind["broker_name"], rewind["queue_id"]) == ("broker-a", 5)
    # The fall is between the commits at 06:00:55 and 06:01:10.
    assert "2026-06-08T06:00:55" <= str(rewind["from_ts"])[:19] <= "2026-06-08T06:01:10"
    assert str(rewind["to_ts"])[:19] >= "2026-06-08T06:01:10"
    text = (rewind["summary"] + json.dumps(done.rows("gold.offset_continuity"), default=str)).replace(",", "")
    assert all(number in text for number in ("2678655", "2611510", "67145"))
    assert "67145" in rewind["summary"].replace(",", "")


@shape("44-negative-diff")
def test_offsets_past_the_end_and_below_zero(judge):
    done = judge()
    beyond = {(one["consumer_group"], one["topic"]): one for one in done.findings("offset_beyond_max")}
    assert set(beyond) == {("canal-cg", "binlog"), ("g", "max")}
    assert "647260583" in beyond["canal-cg", "binlog"]["summary"]
    assert "100" in beyond["canal-cg", "binlog"]["summary"]
    assert str(MAX_LONG) in beyond["g", "max"]["summary"]
    assert "50" in beyond["g", "max"]["summary"]
    of_negative = [row for row in done.rows("gold.group_status") if row["topic"] == "neg"]
    words = done.told + " ".join(str(row["reason"]) for row in of_negative)
    assert str(MIN_LONG) in words or "negative" in words or "below zero" in words
    for row in done.rows("gold.group_status"):
        assert row["lag"] is None or 0 <= row["lag"] <= 100
        unknown = row["lag"] is None or "lag is not" in row["reason"]
        assert (row["queues_unknown"] > 0) == unknown, "the number agrees with the reason"
    for row in of_negative:
        assert row["lag"] is None or row["lag"] == 50, "the next pull is answered with the queue's begin, 0"
        assert row["lag"] != 0


@pytest.mark.long
@shape("b15-consumerprogress-negative")
def test_one_consumer_progress_shows_offsets_past_the_end(judge):
    done = judge("C")
    beyond = {(one["consumer_group"], one["topic"]): one for one in done.findings("offset_beyond_max")}
    found = beyond["g_canal", "t_bin"]
    assert (found["broker_name"], found["queue_id"]) == ("broker-0", 0)
    assert "1000000000" in found["summary"].replace(",", "")
    assert set(beyond) <= {("g_canal", "t_bin"), ("g_old", "t_old")}
    assert NO_PROBLEM not in done.outcome.verdict


@pytest.mark.long
@shape("b23-bom-offset-broker-accepts")
def test_a_bom_is_no_torn_file(judge):
    done = judge("C")
    refused = bool(done.imported.refused)
    assert offsets(done) == {("t1", "g1", 0): [5, 6, 8] if refused else [5, 6, 7, 8]}
    assert done.outcome.quarantined == 0
    assert done.findings("torn_snapshot") == []


@pytest.mark.long
@shape("b17-powershell-utf16")
def test_copies_in_utf_16_are_read_or_were_named(imported, judge):
    """What import could not read it named; what it copied all the same nightly tells of too."""
    words = [line for line in imported.words.splitlines() if "UTF-16" in line]
    named = [minute for minute in (0, 1) if any(f"10-0{minute}-00/consumerOffset.json" in line for line in words)]
    copies = list(imported.recording.glob("snapshots/*/*/consumerOffset.json"))
    done = judge("C")
    assert done.outcome.quarantined == len(copies) - (2 - len(named))
    assert offsets(done) == {("t1", "g1", 0): [5 + minute for minute in (0, 1) if minute not in named]}


@pytest.mark.long
@shape("b20-lmq-only")
def test_offsets_of_lmq_are_read(imported, judge):
    """Ordinary groups and LMQs of a broker with enableLmq."""
    if not imported.report["copies"]["broker-a-0"]["files"].get("lmqConsumerOffset.json"):
        assert "enableLmq" in imported.words
        return
    found = offsets(judge("C"))
    assert (found["t1", "g1", 0], found["t1", "g1", 1]) == ([900], [905])
    assert found["%LMQ%dev/1", "%LMQ%dev/1", 0] == [42]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(folder.name for folder in SHAPES.iterdir() if folder.is_dir()))
def test_every_expectation_holds(name, tmp_path):
    imported = import_shape(name, tmp_path, "--broker", "broker-z-0")
    if imported.status:
        return
    root = str(tmp_path / "warehouse")
    outcomes = run("nightly", root, load_settings(), lambda what: None, recordings=[str(imported.recording)])
    assert [outcome.failed_expectations for outcome in outcomes] == [[]]


@shape("e01-message-buffer-full")
def test_lines_of_flow_control_alone_name_the_message(judge):
    done = judge("C", validated=True)
    assert [found["summary"] for found in done.outcome.findings] == [
        "The listener of group g_pay did not finish the message at offset 10000 of pay in broker-a/1 for 150 s; the "
        "client cached up to 1024 messages; flow control (count) held its pulls back."
    ]
