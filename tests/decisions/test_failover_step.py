"""The steps of failovers: a killed master, a paused one, late name servers and clients, and what is not known."""

from __future__ import annotations

import dataclasses
from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.failover_row import SCHEMA, STEPS
from mqreplay.decisions.failover_step import Seen, failover_steps, judged_steps
from mqreplay.evidence.brokers.address_changes import routed_answers
from mqreplay.evidence.brokers.broker_outages import failovers_of_shard
from mqreplay.evidence.brokers.failovers import Failover, FailoverSettings, returns_of_shard
from mqreplay.evidence.brokers.listed_brokers import listed_brokers, master_changes
from mqreplay.evidence.messages.deliveries import repeated_deliveries
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
A, B = "h:1", "h:2"
BOTH, SLAVE = {0: A, 1: B}, {1: B}
KILLED = Failover(at(100), "b", 0, A, at(100), at(99), at(190), True, at(900), FailoverSettings())
PAUSED = dataclasses.replace(KILLED, up_ts=at(145), restarted=False)
QUEUE = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1"}
NO_ONE = pl.DataFrame(schema={"consumer_group": pl.String})


def listed(seconds: float, addrs: dict[int, str], server: str = "n:1") -> Row:
    brokers = [{"broker_name": "b", "cluster": "c", "broker_addrs": [*addrs.items()]}]
    return {"ts": at(seconds), "namesrv_addr": server, "brokers": brokers, "record_id": f"{server} {seconds}"}


def routed(seconds: float, addrs: dict[int, str], client: str = "c1") -> Row:
    brokers = [{"broker_name": "b", "broker_addrs": [*addrs.items()]}]
    answer = {"ts": at(seconds), "response_ts": at(seconds), "client_id": client, "topic": "t", "broker_datas": brokers}
    return answer | {"response_code": 0, "record_id": f"{client} {seconds}"}


def pulled(seconds: float, broker_id: int, cause: str, client: str = "c1") -> Row:
    pull = {"request_ts": at(seconds), "actual_broker_id": broker_id, "cause": cause, "client_id": client}
    return pull | {"record_id": f"p {client} {seconds}"}


def seen(
    lists: list[Row] = (),  # type: ignore[assignment]
    routes: list[Row] = (),  # type: ignore[assignment]
    pulls: list[Row] = (),  # type: ignore[assignment]
    consumed: list[Row] = (),  # type: ignore[assignment]
    exposure: list[Row] = (),  # type: ignore[assignment]
    skewed: list[str] = (),  # type: ignore[assignment]
    **settings: dict[str, int],
) -> Seen:
    servers = listed_brokers(rows("silver.cluster_info", {}, lists), at(900))
    route = rows("gold.pull_route", QUEUE, pulls)
    consume = QUEUE | {"queue_topic": "t", "status": "CONSUME_SUCCESS", "reconsume_times": 0}
    return Seen(
        servers,
        master_changes(servers, rows("silver.broker_runtime", {}, [])),
        routed_answers(rows("silver.route", {}, routes)),
        failovers_of_shard(route),
        returns_of_shard(route),
        repeated_deliveries(rows("silver.consume", consume, consumed), NO_ONE),
        rows("gold.failover_exposure", {"broker_name": "b"}, exposure),
        skewed,
        **settings,
    )


def steps(of: Failover, evidence: Seen) -> pl.DataFrame:
    found = failover_steps([of], evidence, 60, 120)
    assert dict(found.schema) == SCHEMA
    assert set(found["step"]) <= set(STEPS)
    return found


def judgements(found: pl.DataFrame, *names: str) -> list[tuple[str, str | None, bool]]:
    shown = found.filter(pl.col("step").is_in(names)) if names else found
    return shown.sort("ts", "step").select("step", "judgement", "happened").rows()


LISTS = (
    [listed(s, BOTH) for s in (90, 98)] + [listed(s, SLAVE) for s in (101, 191)] + [listed(s, BOTH) for s in (193, 400)]
)
ROUTES = (
    [routed(s, BOTH) for s in (80, 95)] + [routed(s, SLAVE) for s in (125, 185)] + [routed(s, BOTH) for s in (215, 245)]
)
PULLS = [pulled(s, 0, "master") for s in (60, 90)] + [pulled(s, 1, "master_gone") for s in (140, 155)]
PULLS += [pulled(218, 1, "suggested"), pulled(219, 0, "master")]


def test_all_steps_of_a_killed_master_in_their_order() -> None:
    found = steps(KILLED, seen(LISTS, ROUTES, PULLS))
    assert judgements(found) == [
        ("stopped_answering", None, True),
        ("removed_by_name_server", "agree", True),
        ("left_route", "agree", True),
        ("first_slave_read", "agree", True),
        ("answers_again", None, True),
        ("listed_again", "agree", True),
        ("back_in_route", "agree", True),
        ("first_master_read", "agree", True),
    ]
    by_step = {row["step"]: row for row in found.to_dicts()}
    removed = by_step["removed_by_name_server"]
    assert (removed["ts"], removed["before_ts"], removed["expected_to"]) == (at(101), at(98), at(230))
    assert removed["reason"] == "its channel to the name server closed, or it unregistered"
    assert [item["record_id"] for item in removed["evidence"]] == ["n:1 98", "n:1 101"]
    assert (by_step["left_route"]["before_ts"], by_step["left_route"]["expected_to"]) == (at(95), at(137))
    assert (by_step["first_slave_read"]["ts"], by_step["first_slave_read"]["amount"]) == (at(140), 2)
    assert by_step["first_slave_read"]["expected_to"] == at(158)
    assert by_step["first_master_read"]["ts"] == at(219)
    assert found["step_id"].n_unique() == len(found)
    assert len(judged_steps(found)) == 6


def test_the_same_steps_have_the_same_ids() -> None:
    evidence = seen(LISTS, ROUTES, PULLS)
    assert steps(KILLED, evidence)["step_id"].to_list() == steps(KILLED, evidence)["step_id"].to_list()
    assert failover_steps([], evidence, 60, 120).is_empty()


def test_a_paused_master_that_answers_before_it_expires_stays_listed() -> None:
    found = steps(PAUSED, seen([listed(s, BOTH) for s in (98, 110, 150)], [routed(s, BOTH) for s in (95, 125, 155)]))
    assert judgements(found) == [
        ("stopped_answering", None, True),
        ("answers_again", None, True),
        ("removed_by_name_server", "agree", False),
    ]


def test_a_registration_that_expires() -> None:
    found = steps(
        dataclasses.replace(KILLED, up_ts=None), seen([listed(s, BOTH) for s in (98, 190)] + [listed(192, SLAVE)])
    )
    (removed,) = found.filter(pl.col("step") == "removed_by_name_server").to_dicts()
    assert (removed["judgement"], removed["reason"]) == (
        "agree",
        "it did not register for 120 s (BROKER_CHANNEL_EXPIRED_TIME)",
    )


@pytest.mark.parametrize(
    ("kept", "scan", "judgement"),
    [
        (231, 0, "differ"),  # of 4.x
        (229, 0, None),  # the recording ended before
        (226, 5_000, "differ"),
        (226, 60_000, None),
        (281, 60_000, "differ"),
        (700, None, "undetermined"),  # neither its version nor its settings are known
    ],
)
def test_a_name_server_that_keeps_a_dead_master(kept: int, scan: int | None, judgement: str | None) -> None:
    name_servers = {} if scan is None else {"n:1": scan}
    evidence = seen([listed(98, BOTH), listed(kept, BOTH)], name_servers=name_servers)
    late = steps(dataclasses.replace(KILLED, up_ts=None), evidence).filter(pl.col("step") == "removed_by_name_server")
    if judgement is None:
        assert late["judgement"].to_list() == ["undetermined"] or late.is_empty()
        return
    (row,) = late.to_dicts()
    assert (row["judgement"], row["happened"], row["before_ts"]) == (judgement, False, at(kept))
    assert ("scanNotActiveBrokerInterval" in row["reason"]) == (judgement == "undetermined")


ACTING = FailoverSettings(expired_time=10_000, sign_period=1_000, goes_online_late=True)


@pytest.mark.parametrize(("scan", "judgement"), [(5_000, "differ"), (0, "agree"), (None, "undetermined")])
def test_slaves_that_act_as_masters_expire_after_ten_seconds_at_name_servers_of_5(
    scan: int | None, judgement: str
) -> None:
    """A name server of 4.x does not read the broker's own time (RouteInfoManager#registerBroker)."""
    acting = dataclasses.replace(KILLED, settings=ACTING, up_ts=None)
    lists = [listed(98, BOTH), listed(120, BOTH), listed(122, SLAVE)]
    found = steps(acting, seen(lists, name_servers={} if scan is None else {"n:1": scan}))
    assert judgements(found, "removed_by_name_server") == [("removed_by_name_server", judgement, True)]


def test_a_broker_that_meets_its_partner_first_may_register_at_any_time() -> None:
    """BrokerPreOnlineService: with enableSlaveActingMaster a start does not register at once."""
    lists = [*LISTS[:4], listed(400, SLAVE), listed(402, BOTH)]
    (row,) = steps(KILLED, seen(lists)).filter(pl.col("step") == "listed_again").to_dicts()
    assert row["judgement"] == "differ"
    late = dataclasses.replace(KILLED, settings=ACTING)
    (row,) = steps(late, seen(lists)).filter(pl.col("step") == "listed_again").to_dicts()
    assert (row["judgement"], "once it has met" in row["reason"]) == ("undetermined", True)
    paused = dataclasses.replace(late, restarted=False)
    assert judgements(steps(paused, seen(lists)), "listed_again") == [("listed_again", "differ", True)]
    unknown = dataclasses.replace(KILLED, settings=FailoverSettings(is_described=False))
    assert judgements(steps(unknown, seen(lists)), "listed_again") == [("listed_again", "undetermined", True)]


def test_a_client_that_keeps_the_broker_after_every_name_server_removed_it() -> None:
    kept = [routed(s, BOTH) for s in (95, 125, 155)]
    found = steps(KILLED, seen(LISTS, kept))
    (row,) = found.filter(pl.col("step") == "left_route").to_dicts()
    assert (row["judgement"], row["happened"], row["before_ts"]) == ("differ", False, at(155))
    assert row["reason"].startswith("more than 18 s later than the limit: its name server still gave it the broker")


def test_a_client_that_asks_for_no_route() -> None:
    def asked(**intervals: int) -> Row:
        evidence = seen(LISTS, [routed(95, BOTH), routed(260, BOTH)], poll_intervals=intervals)
        (row,) = steps(KILLED, evidence).filter(pl.col("step") == "left_route").to_dicts() or [{"judgement": None}]
        return row

    row = asked(c1=30_000)
    assert (row["judgement"], row["before_ts"]) == ("differ", at(193))
    assert "it asked for no route in this time" in row["reason"]
    assert asked(c1=120_000)["judgement"] is None, "it is not due before the broker is back"
    unknown = asked()
    assert (unknown["judgement"], "pollNameServerInterval is not recorded" in unknown["reason"]) == (
        *("undetermined", True),
    )


def test_a_gap_of_the_recording_leaves_it_open_whether_the_client_asked() -> None:
    evidence = dataclasses.replace(seen(LISTS, [routed(95, BOTH), routed(260, BOTH)]), starts=[at(-50), at(150)])
    (row,) = steps(KILLED, evidence).filter(pl.col("step") == "left_route").to_dicts()
    assert (row["judgement"], row["reason"]) == ("undetermined", "not every answer to the client was recorded")


def test_a_log_of_changed_routes_does_not_show_that_a_client_asked_for_none() -> None:
    found = steps(KILLED, seen(LISTS, [routed(-500, BOTH), routed(260, BOTH)]))
    assert judgements(found, "left_route") == [("left_route", "undetermined", False)]


def test_a_client_that_stopped_has_no_step() -> None:
    assert judgements(steps(KILLED, seen(LISTS, [routed(95, BOTH)])), "left_route") == []


def test_a_name_server_that_kept_the_broker_leaves_late_clients_undetermined() -> None:
    other = [listed(s, BOTH, "n:2") for s in (98, 150)]
    late = [routed(s, addrs, "c2") for s, addrs in ((95, BOTH), (125, BOTH), (155, SLAVE))]
    kept = [routed(s, BOTH, "c3") for s in (95, 125, 155, 185)]
    found = steps(KILLED, seen(LISTS + other, ROUTES + late + kept))
    in_time, row = found.filter(pl.col("step") == "left_route").sort("ts").to_dicts()
    assert (in_time["client_id"], in_time["judgement"]) == ("c1", "agree")
    assert (row["judgement"], row["reason"]) == ("undetermined", "not every recorded name server removed the broker")


def test_without_lists_the_limit_of_name_servers_counts_for_clients() -> None:
    found = steps(KILLED, seen([], ROUTES))
    assert judgements(found, "removed_by_name_server", "left_route", "back_in_route") == [
        ("left_route", "agree", True),
        ("removed_by_name_server", "undetermined", False),
        ("back_in_route", "agree", True),
    ]


def test_without_clients_their_step_is_undetermined() -> None:
    found = steps(KILLED, seen(LISTS))
    assert judgements(found, "left_route") == [("left_route", "undetermined", False)]


def test_when_only_clients_asked_the_broker_its_stop_is_not_known() -> None:
    found = steps(dataclasses.replace(KILLED, stopped_ts=None, answered_ts=None), seen(LISTS))
    assert judgements(found, "removed_by_name_server") == [("removed_by_name_server", "undetermined", True)]


def test_without_an_address_only_the_broker_itself_has_steps() -> None:
    found = steps(dataclasses.replace(KILLED, broker_addr=None), seen(LISTS, ROUTES))
    assert found["step"].to_list() == ["stopped_answering", "answers_again"]


def test_late_pulls_are_no_fault() -> None:
    late = [pulled(90, 0, "master"), pulled(170, 1, "master_gone"), pulled(300, 0, "master")]
    found = steps(KILLED, seen(LISTS, ROUTES, late))
    assert judgements(found, "first_slave_read", "first_master_read") == [
        ("first_slave_read", "undetermined", True),
        ("first_master_read", "undetermined", True),
    ]


def test_pulls_of_a_client_with_a_wrong_clock_are_left_out() -> None:
    assert judgements(steps(KILLED, seen(LISTS, ROUTES, PULLS, skewed=["c1"])), "first_slave_read") == []


def test_a_new_master_of_a_controller() -> None:
    lists = [listed(98, BOTH), listed(103, {0: B}), listed(300, {0: B, 1: A})]
    found = steps(KILLED, seen(lists))
    assert judgements(found, "removed_by_name_server", "new_master_listed") == [
        ("new_master_listed", "agree", True),
        ("removed_by_name_server", "agree", True),
    ]
    (row,) = found.filter(pl.col("step") == "new_master_listed").to_dicts()
    assert row["reason"].endswith("heartbeat had not expired: its channel closed, or it was replaced")


@pytest.mark.parametrize(
    ("settings", "judgement"),
    [
        ({}, "undetermined"),  # the controller's own scan is not recorded
        ({"elected_within": 100_000}, "agree"),
        ({"is_described": False}, "undetermined"),
    ],
)
def test_a_late_election_follows_from_settings_that_may_not_be_known(settings: Row, judgement: str) -> None:
    elected = dataclasses.replace(KILLED, settings=FailoverSettings(**settings))
    found = steps(elected, seen([listed(s, BOTH) for s in (98, 150)] + [listed(160, {0: B})]))
    assert judgements(found, "new_master_listed") == [("new_master_listed", judgement, True)]


EXPOSED = {"minute_ts": at(60), "redelivered": 2, "redelivered_by_group": [("g", 2)]}


@pytest.mark.parametrize(
    ("deliveries", "exposure", "judgement", "reason"),
    [
        ([(1, 50, "c1"), (1, 150, "c1")], [EXPOSED], "agree", "the slave's offsets lacked 2 messages of the group"),
        ([(n, s, "c1") for n in (1, 2, 3) for s in (50, 150)], [EXPOSED], "undetermined", "lacked only 2 messages"),
        ([(1, 50, "c1"), (1, 150, "c1")], [], "undetermined", "are not known"),
        ([(1, 149, "c1"), (1, 150, "c2")], [], "agree", "queues changed hands before the next commit"),
        ([(1, 130, "c1"), (1, 195, "c1")], [], "agree", "offsets were committed to the slave meanwhile"),
    ],
)
def test_messages_delivered_again(
    deliveries: list[tuple[int, int, str]], exposure: list[Row], judgement: str, reason: str
) -> None:
    consumed = [{"queue_offset": n, "ts": at(s), "client_id": client} for n, s, client in deliveries]
    found = steps(KILLED, seen(LISTS, consumed=consumed, exposure=exposure))
    (row,) = found.filter(pl.col("step") == "delivered_again").to_dicts()
    assert (row["judgement"], row["consumer_group"]) == (judgement, "g")
    assert reason in row["reason"]


def test_a_master_that_goes_online_late_has_fetched_the_offsets_of_its_slave() -> None:
    """BrokerPreOnlineService#syncMetadataReverse: that it lacked them is no cause then."""
    consumed = [{"queue_offset": 1, "ts": at(s), "client_id": "c1"} for s in (130, 195)]
    found = steps(dataclasses.replace(KILLED, settings=ACTING), seen(LISTS, consumed=consumed))
    assert judgements(found, "delivered_again") == [("delivered_again", "undetermined", True)]
