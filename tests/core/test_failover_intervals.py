"""The time that a step of a failover may take, against brokers and clients that were killed and stopped."""

from __future__ import annotations

from mqreplay.core.failover_intervals import (
    Interval,
    election,
    judge_time,
    may_have_expired,
    next_pull,
    registration,
    removal_by_name_server,
    route_update,
)


def test_a_stopped_master_of_4_9_7_expired_after_89_s() -> None:
    # SIGSTOP at 02:54:22.231; both name servers listed it at 02:55:51.108, and no longer at 02:55:53.108.
    stopped, listed, gone = 22_231, 111_108, 113_108
    assert judge_time(removal_by_name_server(stopped), listed, gone) == "agree"
    assert may_have_expired(stopped, gone)
    assert not may_have_expired(stopped, stopped + 1_500)


def test_the_scan_of_5_is_shorter() -> None:
    assert removal_by_name_server(0, "4.9.8").end - removal_by_name_server(0, "5.0.0").end == 5_000


def test_a_name_server_of_4_knows_no_setting_of_5() -> None:
    assert removal_by_name_server(0, "4.9.7", 10_000, 1_000) == removal_by_name_server(0, "4.9.7")
    assert removal_by_name_server(0, "5.3.3", 10_000, 60_000) == Interval(0, 70_000)


def test_a_name_server_that_lists_a_dead_broker_for_longer_differs() -> None:
    expected = removal_by_name_server(0)
    assert [judge_time(expected, at, None) for at in (129_000, 130_000, 130_001)] == [
        "undetermined",
        "undetermined",
        "differ",
    ]


def test_between_two_records_the_step_is_only_known_to_be_late_if_the_first_is() -> None:
    expected = Interval(0, 100)
    assert judge_time(expected, 100, 200) == "undetermined"
    assert judge_time(expected, 101, 200) == "differ"
    assert judge_time(expected, None, 100) == "agree"


def test_a_step_before_its_cause_is_undetermined() -> None:
    assert judge_time(Interval(100, 200), 40, 99) == "undetermined"


def test_a_client_has_the_route_after_one_interval_and_pulls_after_a_timeout() -> None:
    assert route_update(1_000, 5_000, poll_name_server_interval=10_000) == Interval(1_000, 21_000)
    assert next_pull(1_000) == Interval(1_000, 34_000)


def test_a_broker_registers_within_its_period_which_has_bounds() -> None:
    assert registration(0, "5.3.3", 1_000).end == 34_000
    assert registration(0, "4.9.7", 600_000).end == 66_000
    assert election(5) == Interval(5, 44_005), "controllers are of 5.x, whose brokers wait 24 s for each name server"
