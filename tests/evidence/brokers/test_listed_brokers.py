"""Brokers as name servers list them: unlisted ones that answer, outages until they are listed again, other masters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from mqreplay.decode.broker_runtime import EXPIRED, NAME_SERVER_LOST
from mqreplay.evidence.brokers.broker_outages import broker_outages, restarts
from mqreplay.evidence.brokers.listed_brokers import (
    listed_brokers,
    lost_brokers,
    master_changes,
    masterless_names,
    name_server_outages,
    unlisted_brokers,
    until_listed,
)
from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.broker_lists import (
    long_unlisted,
    lost_findings,
    master_findings,
    masterless_findings,
    name_server_findings,
    unlisted_findings,
)
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
END = 300
A, B = "h:1", "h:2"


def answer(seconds: float, addresses: Mapping[int, str], before: float | None = None, server: str = "n:1") -> Row:
    brokers = [{"broker_name": "b", "cluster": "c", "broker_addrs": [*addresses.items()]}] if addresses else []
    previous = None if before is None else at(before)
    return {"ts": at(seconds), "namesrv_addr": server, "brokers": brokers, "previous_ts": previous} | {
        "record_id": f"{server}{seconds}"
    }


def failure(seconds: float, before: float | None = None, server: str = "n:1") -> Row:
    return answer(seconds, {}, before, server) | {"brokers": None, "error": "connection refused"}


def poll(seconds: float, address: str = A, broker_id: int = 0, end: int | None = None, **differs: object) -> Row:
    return {
        "ts": at(seconds),
        "broker_name": "b",
        "broker_id": broker_id,
        "broker_addr": address,
        "commit_log_max_offset": end,
    } | differs


def lists_of(answers: list[Row]) -> pl.DataFrame:
    return listed_brokers(rows("silver.cluster_info", {}, answers), at(END))


def runtime(polls: list[Row]) -> pl.DataFrame:
    return rows("silver.broker_runtime", {}, polls)


def unlisted(answers: list[Row], polls: list[Row]) -> pl.DataFrame:
    return unlisted_brokers(runtime(polls), lists_of(answers))


POLLS = [poll(s) for s in range(0, END, 5)]


def test_a_broker_that_answers_and_is_no_longer_listed() -> None:
    found = unlisted([answer(0, {0: A}), answer(60, {})], POLLS)
    assert found.rows() == [("b", 0, A, at(60), at(60), at(295), False)]
    (row,) = unlisted_findings(long_unlisted(found, 45), "c").to_dicts()
    assert (row["kind"], row["severity"]) == ("broker_unlisted", "critical")
    assert row["summary"] == "The master of b answered at h:1, and no name server listed it for 235 s."


def test_it_ends_when_the_broker_is_listed_again_under_any_id() -> None:
    found = unlisted([answer(0, {0: A}), answer(60, {0: B}), answer(180, {0: B, 1: A})], POLLS)
    assert found.rows() == [("b", 0, A, at(60), at(60), at(180), True)]


@pytest.mark.parametrize(
    "answers",
    [
        [answer(0, {0: A})],
        [answer(0, {0: A}), answer(0, {0: A}, server="n:2"), answer(60, {}, server="n:2")],  # one server lists it
        [answer(0, {0: B})],  # never listed: another cluster's, or new
        [],
    ],
)
def test_a_broker_that_some_name_server_lists_or_that_none_ever_did(answers: list[Row]) -> None:
    assert unlisted(answers, POLLS).is_empty()


@pytest.mark.parametrize(("until", "long"), [(105, False), (106, True)])
def test_only_a_longer_time_than_lists_need_is_reported(until: int, long: bool) -> None:
    found = unlisted([answer(0, {0: A}), answer(60, {}), answer(until, {0: A})], POLLS)
    assert bool(len(long_unlisted(found, 45))) is long


def test_an_outage_ends_when_the_broker_is_listed_again() -> None:
    span = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}
    outages = pl.DataFrame([("b", 0, at(50), at(80)), ("b", 0, at(200), at(210))], span, orient="row")
    found = unlisted([answer(0, {0: A}), answer(60, {}), answer(150, {0: A})], [*POLLS[:10], *POLLS[16:]])
    assert until_listed(outages, found)["to_ts"].to_list() == [at(150), at(210)]


def test_a_replica_that_became_the_master() -> None:
    answers = [answer(0, {0: A, 2: B}), answer(60, {0: B}, before=50)]
    polls = [poll(45, A, 0, 900), poll(48, B, 2, 870), poll(55, B, 2, 890), poll(61, B, 0, 950), poll(62, B, 2, 950)]
    (change,) = master_changes(lists_of(answers), runtime(polls)).to_dicts()
    assert (change["old_addr"], change["new_addr"]) == (A, B)
    assert (change["from_ts"], change["to_ts"], change["lacked"]) == (at(50), at(60), 10)
    (row,) = master_findings(master_changes(lists_of(answers), runtime(polls)), "c").to_dicts()
    assert row["summary"] == (
        "The master of b changed from h:1 to h:2 within 10 s; by the last polls the new one lacked 10 bytes of its log."
    )
    assert row["evidence_count"] == 1


def test_how_far_behind_the_new_master_was_may_not_be_known() -> None:
    (change,) = master_changes(lists_of([answer(0, {0: A}), answer(60, {0: B})]), runtime([])).to_dicts()
    assert change["lacked"] is None


def test_a_master_that_comes_back_at_its_address_did_not_change() -> None:
    answers = [answer(0, {0: A, 1: B}), answer(60, {1: B}), answer(120, {0: A, 1: B})]
    assert master_changes(lists_of(answers), runtime(POLLS)).is_empty()


def test_a_broker_started_again_where_its_boot_time_is_later() -> None:
    polls = [poll(0, boot_ts=at(-100)), poll(5, boot_ts=at(-100)), poll(20, boot_ts=at(10)), poll(25, boot_ts=at(10))]
    assert restarts(runtime(polls)).rows() == [("b", 0, at(5))]


@pytest.mark.parametrize(
    ("polls", "moved"),
    [
        ([poll(45, A, end=900), poll(62, B, end=920)], True),
        ([], True),  # of one host
        ([poll(45, A, end=900), poll(62, B, end=10)], False),  # another store
        ([poll(45, A, end=900), poll(50, B, 1, end=900), poll(62, B, end=920)], False),  # a replica
        ([poll(45, A, end=900), poll(62, B, end=920), poll(70, A, end=930)], False),  # both go on
    ],
)
def test_a_broker_that_comes_back_at_another_address_moved(polls: list[Row], moved: bool) -> None:
    changes = master_changes(lists_of([answer(0, {0: A}), answer(60, {0: B}, before=55)]), runtime(polls))
    (row,) = master_findings(changes, "c").to_dicts()
    assert (row["kind"] == "broker_moved") is moved
    assert not moved or row["summary"] == "The master of b moved from h:1 to h:2 within 5 s."


def test_a_master_of_another_host_whose_log_is_not_known_did_not_move() -> None:
    changes = master_changes(lists_of([answer(0, {0: A}), answer(60, {0: "i:1"})]), runtime([]))
    assert master_findings(changes, "c")["kind"].to_list() == ["master_changed"]


def silent(answers: list[Row], hole: tuple[int, int] | None = None) -> list[Row]:
    spans = [] if hole is None else [(at(hole[0]), at(hole[1]))]
    holes = pl.DataFrame(spans, {"from_ts": INSTANT, "to_ts": INSTANT}, orient="row")
    outages = name_server_outages(rows("silver.cluster_info", {}, answers), holes)
    return name_server_findings(outages, "c", 10).to_dicts()


def test_a_name_server_that_dies_while_another_answers() -> None:
    other = [answer(0, {0: A}, server="n:2"), answer(200, {0: A}, 190, server="n:2")]
    (row,) = silent([answer(0, {0: A}), failure(60, 50), failure(120, 110), *other])
    assert (row["kind"], row["severity"], row["from_ts"], row["to_ts"]) == (
        *("name_server_down", "warning"),
        *(at(60), at(120)),
    )
    assert row["summary"] == (
        "Name server n:1 did not answer for 60 s; 1 other name server answered. It did not answer the last poll."
    )
    assert row["evidence_count"] == 2


def test_a_name_server_that_is_alone_and_comes_back() -> None:
    (row,) = silent([answer(0, {0: A}), failure(60, 50), answer(100, {0: A}, 90)])
    assert (row["severity"], row["to_ts"]) == ("critical", at(100))
    assert row["summary"] == "Name server n:1 did not answer for 40 s; no other name server answered."


def test_one_poll_that_fails_and_polls_in_a_hole_of_the_recorder_are_no_outage() -> None:
    assert silent([answer(0, {0: A}), failure(60, 50), answer(70, {0: A}, 60)]) == []
    assert silent([answer(0, {0: A}), failure(60, 50), failure(120, 110)], (55, 130)) == []


def test_an_answer_counts_until_the_next_poll_fails() -> None:
    answers = [answer(0, {0: A}), failure(60, 50), answer(120, {0: A}, 110)]
    assert lists_of(answers).select("from_ts", "to_ts", "before_ts").rows() == [
        (at(0), at(60), None),
        (at(120), at(END), at(50)),
    ]
    assert unlisted(answers, POLLS).is_empty()


def test_a_name_server_that_comes_back_without_a_broker_lists_it_no_more_from_then_on() -> None:
    found = unlisted([answer(0, {0: A}), failure(60, 50), answer(120, {}, 110), answer(180, {0: A}, 170)], POLLS)
    assert found.rows() == [("b", 0, A, at(120), at(120), at(180), True)]


def test_a_slave_whose_name_no_master_ever_had_copies_from_nobody():
    alone = answer(0, {1: B})
    (row,) = masterless_findings(masterless_names(lists_of([alone, answer(60, {1: B})])), "c").to_dicts()
    assert (row["kind"], row["severity"], row["broker_id"]) == ("broker_unlisted", "warning", 1)
    assert row["summary"].startswith("Slave 1 of b is listed at h:2, and no name server lists a master of b")
    assert row["advice"].startswith("A slave finds its master by brokerName")
    # A master that went, or comes later, is another matter.
    assert masterless_names(lists_of([alone, answer(60, {0: A, 1: B})])).is_empty()
    assert masterless_names(lists_of([answer(0, {0: A, 1: B}), answer(60, {1: B})])).is_empty()


def test_a_broker_that_a_name_server_lost_may_live():
    """The log of a name server alone shows no outage, and no finding without a length says how long it was."""
    log = {"source": "namesrv_log"}
    polls = [
        poll(0, **log),
        poll(5, **log, error=f"{NAME_SERVER_LOST}its connection closed"),
        poll(65, **log),
        poll(250, **log, error=NAME_SERVER_LOST + EXPIRED),
    ]
    none = [rows(name, {}, []) for name in ("silver.heartbeat", "silver.pull", "silver.pull")]
    errors = none[1].with_columns(pl.lit(None, INSTANT).alias("ts"))
    outages = broker_outages(runtime(polls), none[0], errors, errors, errors, 3, 60)
    assert outages.is_empty()
    lost = lost_brokers(runtime(polls))
    assert lost.select("from_ts", "to_ts", "is_listed_again", "is_expired").rows() == [
        (at(5), at(65), True, False),
        (at(250), at(250), False, True),
    ]
    first, last = lost_findings(lost, "c").sort("from_ts")["summary"]
    assert "its connection closed without an unregistration; it registered again 60 s later" in first
    assert "no registration came for 2 minutes; the log shows no later registration" in last
