"""A finding of the day before that goes on is the same finding; whatever else is a finding of its own."""

from __future__ import annotations

from mqreplay.findings.going_on import going_on
from mqreplay.findings.shape import HIDDEN, SCHEMA
from silver_moments import at
from silver_rows import rows

BASE = {"kind": "idle_consumer", "severity": "info", "confidence": 1.0, "advice": "", "evidence": []}
BASE |= {"consumer_group": "g", "client_id": "c1"}
HOUR = 3600
MIDNIGHT = 10 * HOUR


def finding_of(name: str, first: float, last: float | None, **differs: object) -> dict[str, object]:
    text = {"finding_id": name, "summary": f"{name} was idle."}
    return text | {"from_ts": at(first), "to_ts": None if last is None else at(last)} | differs


def found_of(found: list[dict], before: list[dict]) -> dict[tuple[str, int], dict]:
    mine = rows("gold.finding", BASE, found).select(*[name for name in SCHEMA if name not in HIDDEN])
    again = going_on(mine, rows("gold.finding", BASE, before))
    assert again.schema == mine.schema
    return {(row["finding_id"], row["from_ts"].hour): row for row in again.to_dicts()}


def hour(seconds: float) -> int:
    return at(seconds).hour


def test_it_keeps_its_id_and_its_beginning() -> None:
    before = [finding_of("old", 2 * HOUR, MIDNIGHT - 1)]
    found = found_of([finding_of("new", MIDNIGHT - HOUR, MIDNIGHT + HOUR)], before)
    assert found.keys() == {("old", hour(2 * HOUR))}
    (row,) = found.values()
    assert row["to_ts"] == at(MIDNIGHT + HOUR)
    assert row["summary"] == f"new was idle. It began at {at(2 * HOUR):%Y-%m-%d %H:%M:%S} UTC, see the day before."


def test_of_another_kind_place_or_time_it_is_another() -> None:
    before = [
        finding_of("kind", 2 * HOUR, MIDNIGHT, kind="stuck_queue"),
        finding_of("place", 2 * HOUR, MIDNIGHT, client_id="c2"),
        finding_of("nowhere", 2 * HOUR, MIDNIGHT, client_id=None),
        finding_of("over", 2 * HOUR, MIDNIGHT - 2 * HOUR),
        finding_of("at once", 2 * HOUR, None),
        finding_of("later", MIDNIGHT - HOUR / 2, MIDNIGHT),
    ]
    found = found_of([finding_of("new", MIDNIGHT - HOUR, MIDNIGHT)], before)
    assert found.keys() == {("new", hour(MIDNIGHT - HOUR))}
    assert next(iter(found.values()))["summary"] == "new was idle."


def test_it_may_begin_when_the_one_before_ended_and_not_later() -> None:
    for since, expected in ((MIDNIGHT - HOUR, "old"), (MIDNIGHT - HOUR + 0.001, "new")):
        found = found_of([finding_of("new", since, MIDNIGHT)], [finding_of("old", 2 * HOUR, MIDNIGHT - HOUR)])
        assert {name for name, _ in found} == {expected}


def test_what_both_days_saw_begin_is_one_already() -> None:
    same = finding_of("same", MIDNIGHT - HOUR, MIDNIGHT)
    found = found_of([same], [same, finding_of("long", 1 * HOUR, 2 * HOUR)])
    assert found.keys() == {("same", hour(MIDNIGHT - HOUR))}


def test_two_of_today_are_never_the_same_of_yesterday() -> None:
    before = [finding_of("old", 2 * HOUR, MIDNIGHT), finding_of("older", 1 * HOUR, MIDNIGHT)]
    today = [
        finding_of("second", MIDNIGHT - HOUR / 2, MIDNIGHT),
        finding_of("first", MIDNIGHT - HOUR, MIDNIGHT - HOUR + 60),
    ]
    found = found_of(today, before)
    assert found.keys() == {("old", hour(2 * HOUR)), ("second", hour(MIDNIGHT - HOUR / 2))}


def test_a_day_without_findings_before_or_now_stays_as_it_is() -> None:
    assert found_of([], [finding_of("old", 2 * HOUR, MIDNIGHT)]) == {}
    assert found_of([finding_of("new", MIDNIGHT - HOUR, MIDNIGHT)], []).keys() == {("new", hour(MIDNIGHT - HOUR))}
