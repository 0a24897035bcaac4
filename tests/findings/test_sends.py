"""Failed sends, messages that are not safe, and avoided brokers, as findings."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl
import pytest

from evidence_keys import keys_of
from findings.test_every import LIMITS, evidence_of
from mqreplay.evidence.brokers.slave_reports import slave_reports
from mqreplay.evidence.messages.failed_sends import AVOIDED, ISOLATED, NOT_IN_ROUTE, SENDS
from mqreplay.findings.sends import find, send_runs
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
STORE = "its store took no messages"
TRY = {"topic": "t", "broker_name": "a", "broker_id": 0, "client_id": "c", "response_code": 14, "failure": STORE}
TRY |= {"is_last": True}
SILENT = {
    "topic": "t",
    "broker_name": None,
    "broker_id": None,
    "response_code": None,
    "is_last": True,
    "client_id": None,
}
SILENT |= {"failure": "no answer within the time of the send"}
OUTAGE = {"broker_name": "b", "broker_id": 0, "from_ts": at(0), "to_ts": at(90), "errors": 1, "polled": True}
OUTAGE |= {"keys": []}
SPAN = {"client_id": "c", "topic": "t", "broker_name": "a", "from_ts": at(0), "to_ts": at(40), "cause": ISOLATED}
SPAN |= {"passed": 8, "record_id": "r9"}


def runs(base: Row, differs: tuple[Row, ...]) -> pl.DataFrame:
    listed = [{"request_ts": at(n), "record_id": f"r{n}"} | base | row for n, row in enumerate(differs)]
    return send_runs(pl.DataFrame(listed, SENDS), LIMITS.same_cause_gap_s)


def found(
    *tries: Row,
    messages: tuple[Row, ...] = (),
    outages: tuple[Row, ...] = (),
    spans: tuple[Row, ...] = (),
    **tables: Any,
) -> list[Row]:
    evidence = dataclasses.replace(
        evidence_of(outages=list(outages)),
        failed_tries=runs(TRY, tries),
        failed_messages=runs(SILENT, messages),
        avoided_brokers=pl.DataFrame(list(spans), AVOIDED),
        **tables,
    )
    made = find(evidence, LIMITS)
    assert dict(made.schema) == SCHEMA
    return made.sort("kind", "from_ts").rows(named=True)


def test_a_broker_that_refuses_sends() -> None:
    (row,) = found(*[{}] * 4, {"is_last": False}, {"is_last": True, "request_ts": at(60)})
    assert row["summary"] == (
        "6 sends to t failed on the master of a within 60 s (code 14): its store took no messages;"
        " no later try sent 5 messages."
    )
    assert (row["kind"], row["severity"], row["topic"], row["broker_name"]) == ("send_failed", "warning", "t", "a")
    assert "commitLogDiskRatio" in row["advice"]
    assert len(keys_of(row["evidence"])) == 6


def test_few_messages_and_tries_that_succeeded_elsewhere_are_info() -> None:
    (row,) = found({}, {})
    assert row["severity"] == "info"
    (row,) = found(*[{"is_last": False}] * 9, {"is_last": False, "topic": "u"})
    assert (row["severity"], row["topic"]) == ("info", None)
    assert row["summary"].startswith("10 sends to several topics failed")
    (row,) = found(*[{"is_last": None}] * 9)
    assert row["severity"] == "warning", "a log that lacks tries that succeed proves nothing"
    assert row["summary"].endswith("; whether later tries succeeded is not recorded.")


def test_codes_and_brokers_are_apart_and_so_are_two_times() -> None:
    assert (
        len(
            found({}, {"response_code": 16, "failure": "another reason"}, {"broker_name": "b"}, {"request_ts": at(900)})
        )
        == 4
    )


def test_a_producers_log_without_a_broker_gets_the_only_master_that_was_down() -> None:
    (row,) = found(messages=({}, {"topic": "u"}), outages=(OUTAGE,))
    assert (row["broker_name"], row["broker_id"]) == ("b", 0)
    assert row["summary"] == (
        "2 sends to several topics failed on the master of b within 1 s: no answer within the time of the send;"
        " no later try sent 2 messages."
    )
    two = (OUTAGE, OUTAGE | {"broker_name": "a"})
    for outages in (two, (), (OUTAGE | {"to_ts": at(-1)},), (OUTAGE | {"broker_id": 1},)):
        (row,) = found(messages=({},), outages=outages)
        assert row["broker_name"] is None
        assert row["summary"].startswith("1 send to t failed: no answer within")


def masters_of(topic: str, *names: str, **values: Any) -> pl.DataFrame:
    base = {"broker_id": 0, "ts": at(-600), "change": "first", "perm": 6, "topic": topic} | values
    return rows("silver.topic_config", base, [{"source_name": f"{name}-0", "broker_name": name} for name in names])


def test_a_send_without_a_route_follows_from_the_outage_of_all_masters_of_its_topic() -> None:
    lost = {"failure": "no broker of the topic was known", "request_ts": at(92)}  # 2 s after the outage
    both = (OUTAGE, OUTAGE | {"broker_name": "a", "from_ts": at(5)})
    (row,) = found(messages=(lost,), outages=both, topic_config=masters_of("t", "b"))
    assert (row["broker_name"], row["broker_id"], row["topic"]) == ("b", 0, "t")
    assert row["summary"] == (
        "1 send to t failed: no broker of the topic was known, as its masters were down; no later try sent 1 message."
    )
    assert "Check that the topic exists" not in row["advice"]
    (row,) = found(messages=(lost,), outages=both, topic_config=masters_of("t", "a", "b"))
    assert row["broker_name"] == "a", "the last one that went"
    others = [
        ((OUTAGE,), masters_of("t", "a", "b")),  # the other one could be written
        ((OUTAGE,), masters_of("u", "b")),  # the topic is not known
        ((OUTAGE,), masters_of("t", "b", perm=4)),
        ((OUTAGE | {"to_ts": at(50)},), masters_of("t", "b")),
        ((OUTAGE | {"broker_id": 1},), masters_of("t", "b")),
    ]
    for outages, configs in others:
        (row,) = found(messages=(lost,), outages=outages, topic_config=configs)
        assert row["broker_name"] is None
        assert "Check that the topic exists" in row["advice"]


def test_sends_without_a_route_are_one_finding_where_they_have_one_cause() -> None:
    lost = {"failure": "no broker of the topic was known"}
    sends = (lost, lost | {"topic": "u"}, lost | {"topic": "wrong"}, lost | {"topic": "wrong2"})
    configs = pl.concat([masters_of("t", "b"), masters_of("u", "b")])
    unknown, down = sorted(
        found(messages=sends, outages=(OUTAGE,), topic_config=configs), key=lambda row: str(row["broker_name"])
    )
    assert (unknown["broker_name"], unknown["evidence_count"]) == (None, 2)
    assert (down["broker_name"], down["topic"], down["evidence_count"]) == ("b", None, 2)
    assert down["summary"].startswith(
        "2 sends to several topics failed within 1 s: no broker of the topic was known, as"
    )


def test_what_packets_show_is_not_reported_by_the_log_again() -> None:
    (row,) = found({}, messages=({"response_code": 14, "failure": STORE},))
    assert row["broker_name"] == "a"
    assert len(found({}, messages=({"response_code": 14, "failure": STORE, "request_ts": at(500)},))) == 2


@pytest.mark.parametrize(
    ("status", "why", "mend"),
    [
        ("SLAVE_NOT_AVAILABLE", "no slave was close enough to the master", "start the slave"),
        ("FLUSH_SLAVE_TIMEOUT", "no slave had them in time", "network"),
        ("FLUSH_DISK_TIMEOUT", "the disk did not have them in time", "iostat"),
    ],
)
def test_messages_that_are_stored_but_not_safe(status: str, why: str, mend: str) -> None:
    unsafe = {"failure": None, "send_status": status, "response_code": 11}
    (row,) = found(*[unsafe] * 5)
    assert row["summary"] == f"The master of a acknowledged 5 messages of t as {status} within 4 s: {why}."
    assert (row["kind"], row["severity"]) == ("not_stored", "warning")
    assert mend in row["advice"]
    (row,) = found(unsafe)
    assert row["severity"] == "info"


def test_the_slaves_that_the_master_reported_meanwhile() -> None:
    unsafe = {"failure": None, "send_status": "FLUSH_SLAVE_TIMEOUT", "response_code": 12}
    # Of a real master of 5.3.3 whose slave was paused: bytes and whether it is in sync.
    lacked = ((-60, 0, True), (1, 29_000, False), (9, 98_224, False), (90, 0, True))
    polls = [
        {
            "ts": at(s),
            "slaves": [{"addr": "h:1", "confirmed_offset": 0, "behind_bytes": behind, "in_sync": in_sync}],
        }
        for s, behind, in_sync in lacked
    ]
    master = {"broker_name": "a", "broker_id": 0, "is_master": True}
    reports = slave_reports(rows("silver.ha_status", master, polls))
    replicated = evidence_of().replication._replace(reports=reports)
    (row,) = found(*[unsafe] * 5, replication=replicated)
    assert row["summary"] == (
        "The master of a acknowledged 5 messages of t as FLUSH_SLAVE_TIMEOUT within 4 s: no slave had them in time."
        " Meanwhile the master reported as few as 1 connected slave, 0 in sync. A slave lacked up to 98224 bytes."
    )
    (row,) = found(*[unsafe | {"send_status": "FLUSH_DISK_TIMEOUT"}] * 5, replication=replicated)
    assert "Meanwhile" not in row["summary"], "it waited for the disk"


def test_an_avoided_broker() -> None:
    (row,) = found(spans=(SPAN, SPAN | {"client_id": "d", "record_id": "r8"}))
    assert row["summary"] == (
        "2 producers sent nothing to a for 40 s, and 16 messages to other brokers: a send to it had failed"
        " (MQFaultStrategy)."
    )
    assert (row["kind"], row["severity"], row["client_id"]) == ("sends_avoid_broker", "info", None)
    assert keys_of(row["evidence"]) == ["record_id=r8", "record_id=r9"]
    (row,) = found(spans=(SPAN | {"cause": NOT_IN_ROUTE},))
    assert (
        row["summary"] == "1 producer sent nothing to a for 40 s, and 8 messages to other brokers: its route lacked it."
    )


def test_a_topic_that_may_not_be_written_is_not_reported_twice() -> None:
    config = {"source_name": "a-0", "broker_name": "a", "broker_id": 0, "topic": "t", "ts": at(-200), "perm": 6}
    configs = [{"change": "first"}, {"ts": at(-20), "perm": 4}, {"ts": at(50)}]
    queue = {"topic": "t", "broker_name": "a", "queue_id": 0, "min_offset": 0}
    polls = [{"ts": at(s), "offsets": [queue | {"max_offset": end}]} for s, end in ((-90, 5), (-60, 9), (-30, 12))]
    tables = {
        "topic_config": rows("silver.topic_config", config | {"change": "changed"}, configs),
        "topic_stats": rows("silver.topic_stats", {"broker_name": "a", "broker_id": 0, "topic": "t"}, polls),
    }
    gone = SPAN | {"cause": NOT_IN_ROUTE}
    (row,) = found(spans=(gone,), **tables)
    assert (row["kind"], row["severity"], row["topic"], row["broker_name"]) == (
        "sends_avoid_broker",
        "warning",
        "t",
        "a",
    )
    assert row["summary"].startswith("t could not be written on the master of a for 70 s (perm 4)")
    assert "updateTopicPerm" in row["advice"]
    later = gone | {"from_ts": at(300), "to_ts": at(340)}
    assert len(found(spans=(later, SPAN | {"topic": "other", "record_id": "r7"}), **tables)) == 3


def test_sends_that_an_application_saw_fail() -> None:
    error = {"request": "send", "topic": "t", "broker_name": "a", "broker_addr": "10.0.0.1:10911", "ts": at(0)}
    full = {"response_code": 14, "remark": "service not available now. [CL:  0.92 CQ:  0.92 INDEX:  0.92]"}
    apart = {"error": "RemotingConnectException: connect to 10.0.0.1:10911 failed"}
    errors = rows("silver.client_error", error, [full, full | {"topic": None}, apart, {"request": "pull"}])
    stored, unreached = sorted(found(client_error=errors), key=lambda row: row["summary"], reverse=True)
    assert stored["summary"].startswith(
        "2 sends to t failed on a (code 14): its store took no messages (its disk was 92 % full)"
    )
    assert "Check the broker's disk" in stored["advice"]
    assert "could not connect to the broker's address (10.0.0.1:10911)" in unreached["summary"]
    assert "brokerIP1" in unreached["advice"]
    # Its own log has each try.
    tries = {"request_ts": at(0), "broker_id": None, "broker_name": "a"}
    assert len(found(tries, client_error=errors.filter(pl.col("response_code") == 14))) == 1
