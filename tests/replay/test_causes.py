"""One cause, one finding: what follows from another says so and alarms nobody; what only looks near does not."""

from __future__ import annotations

import pytest

from mqreplay.replay.findings.causes import LINKS, LONGEST, with_causes
from silver_moments import at

SCHEMA = (
    "cluster STRING, finding_id STRING, kind STRING, severity STRING, consumer_group STRING, topic STRING, "
    "broker_name STRING, from_ts TIMESTAMP, to_ts TIMESTAMP, evidence ARRAY<STRUCT<table_name: STRING, key: STRING>>"
)


def told(kind: str, start: float, end: float, severity: str = "warning", **place: str) -> tuple[object, ...]:
    """A finding's columns after its id; ``place`` has g (the group), t (the topic) and b (the broker name)."""
    evidence = [("silver.pull", "record_id=r")]
    return (kind, severity, place.get("g"), place.get("t"), place.get("b"), at(start), at(end), evidence)


# A night each: its findings by name, and which of them follow from which.
NIGHTS = {
    "a master gone explains its own failovers, while clients come back": (
        {
            "down": told("broker_down", 100, 190, "critical", b="a"),
            "pulls": told("failover_pull", 130, 195, "critical", b="a"),
            "just in time": told("failover_pull", 310, 320, "critical", b="a"),
            "late": told("failover_pull", 311, 320, "critical", b="a"),
            "elsewhere": told("failover_pull", 130, 195, "critical", b="b"),
        },
        {"pulls": "down", "just in time": "down"},
    ),
    "an effect may be seen a little before its cause, but not long before": (
        {
            "conflict": told("strategy_conflict", 100, 180, g="g"),
            "early": told("orphan_queue", 71, 180, g="g"),
            "too early": told("orphan_queue", 69, 180, g="g", t="T"),
            "another group's": told("orphan_queue", 100, 180, g="h"),
        },
        {"early": "conflict"},
    ),
    "what a reset gave again follows from the reset, not from the rewind it shows as": (
        {
            "reset": told("offset_reset", 100, 101, g="g", t="T"),
            "back": told("offset_rewind", 105, 120, g="g", t="T"),
            "again": told("duplicate_delivery", 108, 130, g="g"),
        },
        {"back": "reset", "again": "reset"},
    ),
    "a reset ahead gives nothing again": (
        {
            "ahead": told("offset_reset", 100, 101, g="g", t="T"),
            "by hand": told("offset_rewind", 155, 160, g="g", t="T", b="b"),
            "again": told("duplicate_delivery", 165, 166, g="g"),
        },
        {"again": "by hand"},
    ),
    "a chain of three": (
        {
            "conflict": told("strategy_conflict", 100, 200, g="g"),
            "twice": told("double_owned_queue", 100, 200, g="g", t="T"),
            "back": told("offset_rewind", 110, 200, g="g", t="T"),
            "stuck": told("stuck_queue", 160, 230, g="g", t="T"),
        },
        {"twice": "conflict", "back": "conflict", "stuck": "conflict"},
    ),
    "a slave that refuses explains who was sent to it, and what is stuck on it": (
        {
            "refusing": told("slave_pull", 100, 200, "critical", b="a"),
            "sent": told("slave_pull", 100, 200, b="a", g="g"),
            "stuck": told("stuck_queue", 150, 210, b="a", g="g"),
            "elsewhere": told("slave_pull", 100, 200, b="b", g="g"),
        },
        {"sent": "refusing", "stuck": "refusing"},
    ),
    "such a slave, since the broker was gone": (
        {
            "down": told("broker_down", 100, 190, "critical", b="a"),
            "refusing": told("slave_pull", 150, 200, "critical", b="a"),
            "sent": told("slave_pull", 160, 200, b="a", g="g"),
            "stuck": told("stuck_queue", 165, 300, b="a", g="g"),
        },
        {"refusing": "down", "sent": "down", "stuck": "down"},
    ),
    "findings without a place in common": (
        {
            "dead": told("dead_letter", 100, 200, g="g"),
            "lost": told("consumer_lost", 100, 200, g="g"),
            "retries": told("retry_growth", 100, 200, g="h"),
        },
        {},
    ),
}


@pytest.fixture(scope="module")
def judged(spark):
    """All nights at once, each a cluster of its own: {night: {name: row}}."""
    rows = [
        (night, f"{night}: {name}", *place) for night, (found, _) in NIGHTS.items() for name, place in found.items()
    ]
    nights: dict[str, dict] = {night: {} for night in NIGHTS}
    for row in with_causes(spark.createDataFrame(rows, SCHEMA)).collect():
        nights[row.cluster][row.finding_id.split(": ")[1]] = row
    return nights


@pytest.mark.parametrize("night", NIGHTS)
def test_what_follows_from_what(judged, night):
    found, follows = NIGHTS[night]
    rows = judged[night]
    assert rows.keys() == found.keys()
    causes = {name: row.follows_from.split(": ")[1] for name, row in rows.items() if row.follows_from is not None}
    assert causes == follows
    for name, row in rows.items():
        assert row.severity == ("info" if name in follows else found[name][1])
        effects = {e.key.split(": ")[1] for e in row.evidence if e.table_name == "gold.finding"}
        assert effects == {effect for effect, cause in follows.items() if cause == name}
        assert row.evidence[0].key == "record_id=r"


def test_no_kind_comes_round_to_itself():
    causes: dict[str, set[str]] = {}
    for link in LINKS:
        if link.effect != link.cause:  # slave_pull: of a critical one only, which has no such cause
            causes.setdefault(link.effect, set()).add(link.cause)

    def longest(kind: str, seen: tuple[str, ...] = ()) -> int:
        assert kind not in seen
        return max((1 + longest(cause, (*seen, kind)) for cause in causes.get(kind, ())), default=0)

    assert max(map(longest, causes)) == LONGEST
    assert longest("stuck_queue") + 1 <= LONGEST, "with slave_pull by slave_pull between"
