"""What a day's replay rests on: its own files, and no others."""

from __future__ import annotations

import datetime as dt

from mqreplay.steps import Span, days_of, digests, gapless_starts, kinds_of, reach_of, sure_starts

FIRST, SECOND = dt.date(2026, 11, 21), dt.date(2026, 11, 22)


def at(day: dt.date, hour: int) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(hour), dt.UTC)


def night(name: str, day: dt.date, hour: int = 12) -> list[Span]:
    """A recording of an hour, with a brokers.json, which has no instants."""
    told = Span(name, "pull_log", f"{name}-p", at(day, hour), at(day, hour))
    return [told, Span(name, "brokers", "the same", None, None)]


def test_a_night_that_is_added_changes_no_day_before() -> None:
    alone = digests(night("a", FIRST), "s", 60)
    both = digests(night("a", FIRST) + night("b", SECOND), "s", 60)
    assert sorted(both) == [FIRST, SECOND]
    assert both[FIRST] == alone[FIRST]


def test_a_day_rests_on_the_lookback_before_it() -> None:
    late, early = (digests(night("a", FIRST, hour) + night("b", SECOND), "s", 60) for hour in (23, 22))
    other = digests(night("c", FIRST, 23) + night("b", SECOND), "s", 60)
    assert late[SECOND] != early[SECOND]
    assert late[SECOND] != other[SECOND]


def test_what_has_no_instant_speaks_of_its_recording_and_of_later_days() -> None:
    both = night("a", FIRST) + night("b", SECOND)
    assert kinds_of(both, FIRST) == {"pull_log", "brokers"}
    later = [night("a", FIRST)[0], *night("b", SECOND)]
    assert kinds_of(later, FIRST) == {"pull_log"}
    assert digests(both, "s", 60)[SECOND] != digests(later, "s", 60)[SECOND]
    refused = [*night("a", FIRST), Span("b", "routes", "r", None, None)]
    assert kinds_of(refused, FIRST) == {"pull_log", "brokers", "routes"}, "nobody knows when that one was recorded"


def test_the_recordings_of_a_day_reach_as_far_as_they_tell() -> None:
    over = [
        Span("over", kind, kind, at(FIRST, 20), at(last, hour))
        for kind, last, hour in (("a", FIRST, 22), ("b", SECOND, 6))
    ]
    found = [*over, *night("b", SECOND, 9)]
    assert reach_of(found, FIRST) == (at(FIRST, 20), at(SECOND, 6))
    assert reach_of(found, SECOND) == (at(FIRST, 20), at(SECOND, 9))
    assert reach_of(night("a", FIRST) + night("b", SECOND), SECOND) == (at(SECOND, 12), at(SECOND, 12))


def test_a_day_of_which_nothing_is_told_parts_a_recording() -> None:
    """As where a client's clock was never set: what it says is of another stretch, and days between are none."""
    long_ago = dt.date(2001, 1, 1)
    found = [
        Span("a", "pull_log", "p", at(long_ago, 1), at(long_ago, 2)),
        *night("a", FIRST, 12),
        *night("a", SECOND, 3),
    ]
    assert days_of(found) == [long_ago, FIRST, SECOND]
    assert reach_of(found, FIRST) == (at(FIRST, 12), at(SECOND, 3))
    assert gapless_starts(found) == [at(long_ago, 1), at(FIRST, 12)]
    assert kinds_of(found, FIRST) == {"pull_log", "brokers"}


def test_a_clock_that_is_behind_does_not_make_a_recording_begin_earlier() -> None:
    behind = dt.timedelta(hours=2)
    found = night("a", FIRST, 12)
    assert sure_starts(found, dt.timedelta()) == {at(FIRST, 12): at(FIRST, 12)}
    assert sure_starts(found, behind) == {at(FIRST, 12): at(FIRST, 14)}
    own = Span("a", "broker_runtime", "r", at(FIRST, 13), at(FIRST, 15))
    assert sure_starts([*found, own], behind) == {at(FIRST, 12): at(FIRST, 13)}
    assert sure_starts([*found, own], dt.timedelta()) == {at(FIRST, 12): at(FIRST, 12)}
    both = [*found, own, *night("b", SECOND, 3)]
    assert sure_starts(both, behind) == {at(FIRST, 12): at(FIRST, 13), at(SECOND, 3): at(SECOND, 5)}
