"""Findings over midnight: which day has a finding, and what follows from findings of the day before."""

from __future__ import annotations

import datetime as dt

import polars as pl

from evidence_of_rows import LOST_S
from mqreplay.findings.every import KINDS, finish
from mqreplay.findings.shape import HIDDEN, SCHEMA, finding, none, that_reach
from silver_moments import at

DAY = at(0).replace(hour=0)


NEXT = DAY + dt.timedelta(days=1)


def one(kind: str, since: dt.datetime, until: dt.datetime, **place: str) -> pl.DataFrame:
    row = {"from_ts": since, "to_ts": until, "evidence": []} | place
    schema = {name: kind_of for name, kind_of in SCHEMA.items() if name in row}
    return finding(pl.DataFrame([row], schema), KINDS[kind], "c", severity="warning", summary=pl.lit("It was so."))


def hours(number: float) -> dt.timedelta:
    return dt.timedelta(hours=number)


def test_a_day_has_what_began_before_its_end_and_reaches_into_it() -> None:
    begun = pl.concat(
        [
            one("stuck_queue", DAY - hours(2), DAY - hours(1), topic="over"),
            one("stuck_queue", DAY - hours(2), DAY, topic="just reaches"),
            one("stuck_queue", NEXT - hours(1), NEXT + hours(1), topic="goes on"),
            one("stuck_queue", NEXT, NEXT + hours(1), topic="the next day's"),
        ]
    )
    found = finish(begun, DAY, NEXT, None, LOST_S)
    assert sorted(found["topic"]) == ["goes on", "just reaches"]
    assert found["day"].unique().to_list() == [DAY.date()]
    names = [name for name in SCHEMA if name not in HIDDEN]
    assert found.columns == ["day", *names[:-2], "follows_from", "evidence", "evidence_count"]


def test_a_day_knows_the_day_before_and_what_follows_from_it() -> None:
    earlier = one("strategy_conflict", DAY - hours(5), DAY - hours(0.5), consumer_group="g")
    conflict = one("strategy_conflict", DAY - hours(1), DAY + hours(1), consumer_group="g")
    orphan = one("orphan_queue", DAY, DAY + hours(1), consumer_group="g")
    found = finish(pl.concat([conflict, orphan]), DAY, NEXT, earlier, LOST_S)
    by_kind = {row["kind"]: row for row in found.to_dicts()}
    assert by_kind["strategy_conflict"]["finding_id"] == earlier["finding_id"].item()
    assert by_kind["strategy_conflict"]["from_ts"] == DAY - hours(5)
    assert by_kind["orphan_queue"]["follows_from"] == earlier["finding_id"].item()
    assert by_kind["orphan_queue"]["severity"] == "info"
    alone = finish(pl.concat([conflict, orphan]), DAY, NEXT, None, LOST_S)
    assert conflict["finding_id"].item() in alone["finding_id"].to_list()


def test_a_finding_may_follow_from_one_that_was_over_before_the_day() -> None:
    conflict = one("strategy_conflict", DAY - hours(1), DAY - dt.timedelta(seconds=10), consumer_group="g")
    orphan = one("orphan_queue", DAY, DAY + hours(1), consumer_group="g")
    (row,) = finish(pl.concat([conflict, orphan]), DAY, NEXT, none(), LOST_S).to_dicts()
    assert (row["kind"], row["follows_from"]) == ("orphan_queue", conflict["finding_id"].item())


def test_lost_before_midnight_and_known_after_it_is_a_finding_after_it() -> None:
    def is_of_day_from(seconds: float, kind: str, to: float | None) -> bool:
        row = {"finding_id": "f", "kind": kind, "from_ts": at(60), "to_ts": None if to is None else at(to)}
        return len(that_reach(pl.DataFrame([row], SCHEMA), at(seconds), LOST_S)) == 1

    assert is_of_day_from(75, "consumer_lost", 75), "it goes on"
    assert is_of_day_from(60 + LOST_S, "consumer_lost", 75), "it had not been silent for long enough before"
    assert is_of_day_from(60 + 2 * LOST_S, "consumer_lost", 75)
    assert not is_of_day_from(61 + 2 * LOST_S, "consumer_lost", 75)
    assert not is_of_day_from(60 + LOST_S, "stuck_queue", 75), "it was over"
    assert is_of_day_from(60, "stuck_queue", None)
    assert not is_of_day_from(61, "stuck_queue", None)
