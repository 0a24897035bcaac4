"""A queue that changed hands between two polls: both clients may have held it in all of that time."""

from __future__ import annotations

import polars as pl
import pytest

from evidence.members.test_observed_clients import answer, assignments, owned_frame, sessions
from mqreplay.evidence.members.ownership import possible_owners
from mqreplay.evidence.offsets.break_causes import HANDOVER, with_concluded_resets, with_handovers
from silver_moments import BEGAN, at

# c2 joined at 48: c1 gave queue 1 to it between its answers at 44 and 64, and c2 took it before its first answer at 68.
HELD = assignments(answer("c1", 4, 0, 1), answer("c1", 64, 0, before=44), answer("c2", 68, 1))
MEMBERS = sessions(("c1", 0, 100), ("c2", 48, 100))


def seconds_of(owners: pl.DataFrame) -> list[tuple[str, int, float, float]]:
    spans = [((pl.col(name) - BEGAN).dt.total_milliseconds() / 1000).alias(name) for name in ("from_ts", "to_ts")]
    return owners.sort("client_id", "queue_id").select("client_id", "queue_id", *spans).rows()


def possible() -> pl.DataFrame:
    return possible_owners(owned_frame(HELD, MEMBERS), HELD, MEMBERS)


def broke(*queues: int, ts: float) -> pl.DataFrame:
    """Offsets of queues that fell within a second, without a known cause."""
    place = {"topic": "T", "broker_name": "b", "broker_id": 0, "consumer_group": "g"}
    span = {"from_ts": at(ts - 1), "to_ts": at(ts)}
    cause = {"kind": "rewind", "cause": "unknown"}
    rows = [place | span | cause | {"queue_id": queue} for queue in queues]
    return pl.DataFrame(rows, schema_overrides={"queue_id": pl.Int32})


def test_both_may_have_held_it_between_the_polls() -> None:
    assert seconds_of(owned_frame(HELD, MEMBERS)) == [
        ("c1", 0, 2, 100), ("c1", 1, 2, 54), ("c2", 1, 58, 100),
    ]  # fmt: skip
    assert seconds_of(possible()) == [("c1", 0, 0, 100), ("c1", 1, 0, 64), ("c2", 1, 48, 100)]


def test_owners_by_other_sources_stay() -> None:
    hooked = owned_frame(HELD, MEMBERS).with_columns(source=pl.lit("rebalance"))
    assert possible_owners(hooked, HELD, MEMBERS).equals(hooked)


@pytest.mark.parametrize(("ts", "cause"), [(30, "unknown"), (49, HANDOVER), (53, HANDOVER), (66, HANDOVER)])
def test_a_rewind_between_the_polls_is_a_handover(ts: float, cause: str) -> None:
    # The middle between the polls is at 54: the offset of the queue may fall before it.
    assert with_handovers(broke(1, ts=ts), possible(), 30, ["unknown"])["cause"].to_list() == [cause]


def test_queues_that_change_hands_together_were_not_reset() -> None:
    both = assignments(answer("c1", 4, 0, 1), answer("c1", 64, before=44), answer("c2", 68, 0, 1))
    owners = owned_frame(both, MEMBERS)
    polls = [{"broker_name": "b", "broker_id": 0, "ts": at(ts), "boot_ts": at(-50)} for ts in (49, 55)]

    def causes(frame: pl.DataFrame) -> list[str]:
        return with_concluded_resets(broke(0, 1, ts=52), pl.DataFrame(polls), frame, False)["cause"].to_list()

    assert causes(possible_owners(owners, both, MEMBERS)) == ["unknown", "unknown"]
    assert causes(owners) == ["reset", "reset"]  # what the middle alone would conclude
