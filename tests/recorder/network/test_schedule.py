"""The schedule of polls: budget, fairness, spread, back-off, and counts of missing polls."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

from mqreplay.recorder.network.schedule import MAX_IN_FLIGHT, MAX_SHARED, Plan, Schedule, Target

A, B = "h:1", "h:2"


def target(kind: str, subject: str = "", addr: str = A, client_id: str = "") -> Target:
    return Target(kind, addr, ("b", 0), subject, client_id)


def polled(
    schedule: Schedule, seconds: int, answered: bool = True, begin: int = 0, step: int = 10
) -> dict[Target, list[int]]:
    """When each target is polled, if each answer comes at once."""
    times: dict[Target, list[int]] = defaultdict(list)
    for now in range(begin, begin + seconds * 1000, step):
        for each in schedule.take(now):
            times[each].append(now)
            schedule.done(each, now, answered)
    return times


def test_a_target_is_polled_once_each_period() -> None:
    schedule = Schedule(50)
    plans = {target("members", f"g{n}"): Plan(5000) for n in range(20)}
    schedule.replace(plans, 0)
    times = polled(schedule, 60)
    assert times.keys() == plans.keys()
    for when in times.values():
        assert when[0] < 1000
        gaps = [b - a for a, b in pairwise(when[1:])]
        assert set(gaps) == {5000}
        assert 2500 <= when[1] - when[0] <= 7500
    assert schedule.skipped() == []


def test_polls_are_spread_over_the_period() -> None:
    schedule = Schedule(1000)
    schedule.replace({target("connections", f"g{n}"): Plan(60_000) for n in range(600)}, 0)
    polled(schedule, 120)
    by_second = Counter(when // 1000 for times in polled(schedule, 60, begin=120_000).values() for when in times)
    assert len(by_second) == 60
    assert max(by_second.values()) < 30


def test_a_budget_lengthens_all_periods_by_the_same_factor() -> None:
    schedule = Schedule(20)
    plans = {target("members", f"g{n}"): Plan(5000) for n in range(200)}
    plans |= {target("connections", f"g{n}"): Plan(10_000) for n in range(200)}
    schedule.replace(plans, 0)
    times = polled(schedule, 300)
    assert sum(map(len, times.values())) <= 20 * 300 + 4
    counts = Counter[str]()
    for each, when in times.items():
        counts[each.kind] += len(when)
        assert max(b - a for a, b in pairwise(when)) <= 5 * plans[each].period_ms
    assert 1.6 < counts["members"] / counts["connections"] < 2.4
    skipped = {each.kind: each for each in schedule.skipped()}
    assert {each.reason for each in skipped.values()} == {"budget"}
    due = 300 * 200 / 5
    assert 0.5 * due < skipped["members"].polls < due - counts["members"] + 200
    assert schedule.skipped() == []


def test_urgent_targets_do_not_wait_for_the_budget_and_each_server_has_its_own() -> None:
    schedule = Schedule(1)
    plans = {target("members", f"g{n}"): Plan(1000) for n in range(50)}
    plans |= {target("runtime"): Plan(1000, urgent=True), target("members", "g", B): Plan(1000)}
    schedule.replace(plans, 0)
    times = polled(schedule, 60)
    assert len(times[target("runtime")]) >= 59
    assert len(times[target("members", "g", B)]) >= 59
    # What urgent polls use, others lack.
    assert sum(len(when) for each, when in times.items() if each.kind == "members" and each.addr == A) < 10


def test_a_poll_that_is_not_answered_is_not_made_twice_at_once() -> None:
    schedule = Schedule(100)
    schedule.replace({target("offsets"): Plan(1000, urgent=True)}, 0)
    assert schedule.take(0) == [target("offsets")]
    assert schedule.take(9000) == []
    schedule.done(target("offsets"), 9000)
    assert schedule.take(9000) == [target("offsets")]
    assert [each.polls for each in schedule.skipped()] == [8]


def test_few_polls_wait_for_their_answer_at_once() -> None:
    schedule = Schedule(1000)
    schedule.replace({target("running_info", f"g{n}"): Plan(20_000, at_once=2) for n in range(50)}, 0)
    assert len(schedule.take(0)) == 2
    schedule.replace({target("members", f"g{n}"): Plan(20_000) for n in range(50)}, 0)
    assert len(schedule.take(1000)) == MAX_IN_FLIGHT - 2


def test_a_target_that_fails_is_tried_less_and_less_up_to_once_a_minute() -> None:
    schedule = Schedule(50)
    plans = {target("members", "g"): Plan(5000), target("runtime"): Plan(5000, urgent=True, probe=True)}
    plans[target("running_info", "g")] = Plan(20_000, patient=True)
    schedule.replace(plans, 0)
    times = polled(schedule, 3600, answered=False, step=100)
    when = times[target("members", "g")]
    assert [b - a for a, b in pairwise(when)][:5] == [10_000, 20_000, 40_000, 60_000, 60_000]
    assert len(times[target("runtime")]) >= 719
    when = times[target("running_info", "g")]
    assert [b - a for a, b in pairwise(when)][:6] == [
        40_000,
        80_000,
        160_000,
        320_000,
        600_000,
        600_000,
    ]
    assert schedule.skipped() == []
    polled(schedule, 60, begin=3_600_000)
    assert len(polled(schedule, 60, begin=3_660_000)[target("members", "g")]) == 12


def test_a_client_is_not_asked_more_often_than_its_limit_through_whichever_broker() -> None:
    schedule = Schedule(50)
    plan = Plan(20_000, limit="c", limit_ms=20_000)
    both = [target("running_info", group, addr, "c") for group, addr in (("g1", A), ("g2", A))]
    schedule.replace(dict.fromkeys(both, plan), 0)
    times = polled(schedule, 200)
    when = sorted(each for some in times.values() for each in some)
    assert all(b - a >= 20_000 for a, b in pairwise(when))
    assert all(len(times[each]) >= 4 for each in both)
    # The client moves to another broker: the limit stays.
    moved = target("running_info", "g3", B, "c")
    schedule.replace({moved: plan}, 200_000)
    assert polled(schedule, 30, begin=200_000)[moved][0] - when[-1] >= 20_000
    assert schedule.skipped() == []


def test_a_target_that_is_hastened_is_polled_at_once_but_for_its_limit() -> None:
    schedule = Schedule(50)
    one, two = target("connections", "g"), target("running_info", "g", client_id="c")
    schedule.replace({one: Plan(60_000), two: Plan(20_000, limit="c", limit_ms=20_000)}, 0)
    for each in schedule.take(0):
        schedule.done(each, 10, answered=each == one)
    schedule.hasten(one, 5000)
    schedule.hasten(two, 5000)
    schedule.hasten(target("members", "unknown"), 5000)
    assert schedule.take(5000) == [one]
    assert schedule.take(19_999) == []
    assert schedule.take(20_000) == [two]


def test_a_server_that_cannot_be_reached_gets_only_probes_until_it_answers() -> None:
    schedule = Schedule(50)
    plans = {target("members", "g"): Plan(1000), target("runtime"): Plan(1000, urgent=True, probe=True)}
    plans |= {target("offsets"): Plan(1000, urgent=True)}
    schedule.replace(plans, 0)
    polled(schedule, 10)
    for _ in range(5):
        schedule.block(A, 10_000)
    times = polled(schedule, 30, begin=10_000)
    assert times.keys() == {target("runtime")}
    assert schedule.skipped() == []
    schedule.unblock(A, 40_000)
    assert polled(schedule, 2, begin=40_000).keys() == plans.keys()
    skipped = schedule.skipped()
    assert {(each.kind, each.reason) for each in skipped} == {("members", "unreachable"), ("offsets", "unreachable")}
    assert all(28 <= each.polls <= 31 and each.to_ms - each.from_ms > 28_000 for each in skipped)


def test_targets_that_are_not_planned_any_more_are_not_polled() -> None:
    schedule = Schedule(50)
    schedule.replace({target("members", "g"): Plan(1000), target("members", "h"): Plan(1000)}, 0)
    taken = schedule.take(0)
    assert len(taken) == 2
    schedule.replace({target("members", "h"): Plan(500)}, 10)
    for each in taken:
        schedule.done(each, 20)
    assert polled(schedule, 10, begin=1000).keys() == {target("members", "h")}
    assert len(schedule) == 1


def test_a_shorter_period_holds_at_once() -> None:
    schedule = Schedule(50)
    schedule.replace({target("members", "g"): Plan(60_000)}, 0)
    polled(schedule, 1)
    schedule.replace({target("members", "g"): Plan(5000)}, 1000)
    assert polled(schedule, 10, begin=1000)[target("members", "g")][0] <= 6000


def test_next_due_is_when_something_may_be_polled() -> None:
    schedule = Schedule(50)
    assert schedule.next_due(0, 250) == 250
    schedule.replace({target("members", "g", A): Plan(1000, phase_ms=0)}, 0)
    assert schedule.next_due(0, 250) == 0
    schedule.done(schedule.take(0)[0], 0)
    assert schedule.next_due(900, 250) == 100
    assert schedule.next_due(500, 250) == 250
    schedule.charge(A, 30)
    assert schedule.next_due(1000, 250) == 250


def test_targets_that_share_a_budget_are_polled_in_turn_and_slow_no_other() -> None:
    schedule = Schedule(50)
    shared = {target("runtime", addr=f"dead:{n}"): Plan(1000, probe=True, is_shared=True) for n in range(500)}
    alive = target("runtime")
    schedule.replace({alive: Plan(1000, urgent=True, probe=True)} | shared, 0)
    assert schedule.has_new
    times = polled(schedule, 60)
    assert not schedule.has_new
    assert len(times[alive]) >= 59
    assert {len(times[each]) for each in shared} <= {5, 6, 7}
    assert sum(len(times[each]) for each in shared) <= 50 * 60 + 10
    # One that answers has a budget of its own from now on.
    first = next(iter(shared))
    schedule.replace(
        {first: Plan(1000, urgent=True)} | {each: shared[each] for each in shared if each != first}, 60_000
    )
    assert len(polled(schedule, 20, begin=60_000)[first]) >= 19


def test_many_targets_that_share_a_budget_may_wait_for_an_answer() -> None:
    schedule = Schedule(1000)
    schedule.replace({target("runtime", addr=f"dead:{n}"): Plan(1000, is_shared=True) for n in range(500)}, 0)
    assert len(schedule.take(0)) + len(schedule.take(1000)) == MAX_SHARED
