"""What the day before told of and goes on is the same finding; whatever else is a finding of its own."""

from __future__ import annotations

from mqreplay.replay.findings.going_on import going_on
from silver_moments import at

BASE = {"kind": "idle_consumer", "severity": "info", "confidence": 1.0, "advice": "", "evidence": []}
BASE |= {"consumer_group": "g", "client_id": "c1"}
HOUR = 3600
MIDNIGHT = 10 * HOUR


def told(name: str, first: float, last: float | None, **differs: object) -> dict[str, object]:
    text = {"finding_id": name, "summary": f"{name} was idle."}
    return text | {"from_ts": at(first), "to_ts": None if last is None else at(last)} | differs


def found_of(rows, found, before):
    mine = rows("gold.finding", BASE, found).drop("day", "follows_from")
    told_again = going_on(mine, rows("gold.finding", BASE, before))
    assert told_again.schema.simpleString() == mine.schema.simpleString()
    return {(r.finding_id, r.from_ts.hour): r for r in told_again.collect()}


def hour(seconds: float) -> int:
    return at(seconds).hour


def test_it_keeps_its_id_and_its_beginning(rows):
    before = [told("old", 2 * HOUR, MIDNIGHT - 1)]
    found = found_of(rows, [told("new", MIDNIGHT - HOUR, MIDNIGHT + HOUR)], before)
    assert found.keys() == {("old", hour(2 * HOUR))}
    (row,) = found.values()
    assert row.to_ts == at(MIDNIGHT + HOUR).replace(tzinfo=None)
    assert (
        row.summary
        == f"new was idle. It goes on since {at(2 * HOUR):%Y-%m-%d %H:%M:%S} UTC; the day before tells more."
    )


def test_of_another_kind_place_or_time_it_is_another(rows):
    before = [
        told("kind", 2 * HOUR, MIDNIGHT, kind="stuck_queue"),
        told("place", 2 * HOUR, MIDNIGHT, client_id="c2"),
        told("nowhere", 2 * HOUR, MIDNIGHT, client_id=None),
        told("over", 2 * HOUR, MIDNIGHT - 2 * HOUR),
        told("at once", 2 * HOUR, None),
        told("later", MIDNIGHT - HOUR / 2, MIDNIGHT),
    ]
    found = found_of(rows, [told("new", MIDNIGHT - HOUR, MIDNIGHT)], before)
    assert found.keys() == {("new", hour(MIDNIGHT - HOUR))}
    assert next(iter(found.values())).summary == "new was idle."


def test_what_both_days_saw_begin_is_one_already(rows):
    same = told("same", MIDNIGHT - HOUR, MIDNIGHT)
    found = found_of(rows, [same], [same, told("long", 1 * HOUR, 2 * HOUR)])
    assert found.keys() == {("same", hour(MIDNIGHT - HOUR))}


def test_two_of_today_are_never_the_same_of_yesterday(rows):
    before = [told("old", 2 * HOUR, MIDNIGHT), told("older", 1 * HOUR, MIDNIGHT)]
    today = [told("second", MIDNIGHT - HOUR / 2, MIDNIGHT), told("first", MIDNIGHT - HOUR, MIDNIGHT - HOUR + 60)]
    found = found_of(rows, today, before)
    assert found.keys() == {("old", hour(2 * HOUR)), ("second", hour(MIDNIGHT - HOUR / 2))}
