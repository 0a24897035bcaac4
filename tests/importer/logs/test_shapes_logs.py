"""Logs of brokers and name servers in the shapes that operators reported."""

from __future__ import annotations

import re

import pytest

from import_shapes import Imported, import_shape, ms, numbers, shape

LOWER = {224: (1458, 1459), 590: (1451, 1452), 942: (1453, 1454), 1787: (1456, 1457)}
PREFIXES = ["docker-json", "compose", "kubectl-timestamps", "journald", "compose-ansi", "kubectl-prefix"]


def lower_commits(imported: Imported, group: str, topic: str) -> dict[int, set[int]]:
    """All numbers of the records of commits of a group and topic, by queue."""
    of_group = [one for one in imported.everything() if (one.get("consumer_group"), one.get("topic")) == (group, topic)]
    found = {one["queue_id"]: numbers(one) for one in of_group}
    assert len(found) == len(of_group), "a commit below the stored offset is one record"
    return found


def counted(imported: Imported) -> int:
    """How many lines were left out and counted; all others were used."""
    lines = imported.lines
    left_out = sum(lines["left_out"].values())
    assert lines["read"] == lines["used"] + left_out
    assert all(number > 0 for number in lines["left_out"].values())
    return left_out


@shape("02-358-broker-log-torn-head", "--broker", "broker-a-0")
def test_a_line_without_its_head_is_counted(imported):
    """alibaba/rocketmq#366: a log that was cut in the middle of its first line."""
    assert imported.status == 0
    found = lower_commits(imported, "bench_79", "Bench")
    assert set(found) == set(LOWER), "queue 416 is of the torn line, whose year is unknown"
    assert all(set(pair) <= found[queue] for queue, pair in LOWER.items())
    seconds = {one["ts"] // 1000 * 1000 for one in imported.everything() if one.get("queue_id") in LOWER}
    assert seconds == {ms("2016-09-28T14:02:52+08:00")}
    assert (imported.lines["read"], imported.lines["used"], counted(imported)) == (5, 4, 1)


@pytest.mark.parametrize("part", PREFIXES)
def test_prefixes_of_containers(part, tmp_path):
    """apache/rocketmq-docker#52, apache/rocketmq-operator#109: what docker, compose, kubectl and journald put first."""
    imported = import_shape("23-container-prefixes", tmp_path, part=part)
    assert imported.status == 0
    assert imported.brokers()["cluster"] == "C"
    assert {(one["broker_name"], one["broker_id"]) for one in imported.records("broker_runtime")} == {("broker-a", 0)}
    found = lower_commits(imported, "x", "test")
    assert set(found) == {2}
    assert {5, 9} <= found[2]
    counted(imported)


@shape("23-container-prefixes")
def test_no_prefix_is_refused_beside_others(imported):
    assert imported.status == 0
    assert imported.refused == []
    assert imported.lines["read"] == 5 * len(PREFIXES)


@shape("24-namesrv-drill")
def test_a_drill_in_namesrv_log(imported):
    """Reports of failover drills: the lines on removal name the broker of an address."""
    assert imported.status == 0
    states = [
        (one["broker_name"], one["broker_id"], one["broker_addr"], one["ts"] // 1000 * 1000, one.get("error") is None)
        for one in imported.records("broker_runtime")
    ]
    broker = ("broker-a", 0, "10.1.0.10:10911")
    assert sorted(states, key=lambda state: state[3]) == [
        (*broker, ms("2026-06-27T16:21:50+08:00"), True),
        (*broker, ms("2026-06-27T16:21:55+08:00"), False),
        (*broker, ms("2026-06-27T16:22:55+08:00"), True),
        (*broker, ms("2026-06-27T16:25:55+08:00"), False),
    ]
    [why] = [why for path, why in imported.refused if path == "quoted/namesrv.log"]
    assert "level" in why
    assert "thread" in why
    assert "none of its lines is in a layout" not in imported.words
    assert [path for path, _ in imported.refused] == ["quoted/namesrv.log"]


@shape("b02-broker-log-3x-netty40")
def test_channels_of_netty_4_0(imported):
    """A broker.log of 3.x, whose channels have no L: and R:."""
    client = "10.0.0.14@cd21e6f5-648f-4f5a-9af2-cab2c5c194db"
    known = [one for one in imported.everything() if client in str(one)]
    left_out = counted(imported)
    assert imported.lines["read"] == 3
    if not known:
        forms = imported.lines["left_out"].items()
        named = sum(number for form, number in forms if re.search("channel|consumer connected|form|damaged", form))
        assert named >= 2, "neither read nor counted as what they are"
    else:
        assert {"g_ios"} <= {group for one in known for group in re.findall("g_ios", str(one))}
        assert left_out <= 1


@shape("b09-broker-log-wrapped-cut")
def test_lines_that_a_terminal_wrapped(imported):
    """A broker.log of 4.x that was copied from a terminal: a channel in three lines, a line without its year."""
    assert imported.status == 0
    assert imported.lines["read"] == 9
    assert counted(imported) >= 3, "the wrapped line, the line without a year, and the commit without details"
    client = "${clientIP}@26917#5261547777682927"
    assert [one for one in imported.everything() if client in str(one)], "its join is kept"
    assert "-7955368551255983524" not in str(imported.everything())
    times = {one["ts"] for one in imported.everything() if "ts" in one}
    assert max(times) <= ms("2021-03-12T13:54:02+08:00"), "a line without a year gives no time"
    assert len(imported.lines["left_out"]) >= 2, "a cut line and a commit without its offsets are of two forms"


@shape("b13-kubectl-timestamps")
def test_prefixes_on_all_and_on_half_of_the_lines(imported):
    """kubectl logs --timestamps; a second file in which only the last line has the prefix."""
    assert imported.status == 0
    assert imported.refused == []
    assert set(imported.recognised) == {"pod/broker-a-0/broker.log", "pod/broker-b-0/broker.log"}
    up = {(one["broker_name"], one["ts"]) for one in imported.records("broker_runtime")}
    for broker in ("broker-a", "broker-b"):
        for minute in (54, 59):
            assert (broker, ms(f"2022-11-08T13:{minute}:01+08:00")) in up
    assert imported.lines["read"] == 4
    counted(imported)
