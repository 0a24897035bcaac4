"""One cause, one finding: what follows from another names it and alarms nobody; what is only near in time does not."""

from __future__ import annotations

import json
import random

import polars as pl
import pytest

from evidence_keys import evidence_of, keys_of
from mqreplay.findings.causes import LONGEST_CHAIN, with_causes, with_renamed_causes
from mqreplay.findings.every import KINDS
from mqreplay.findings.shape import HIDDEN, SCHEMA, none
from silver_moments import at

Finding = dict[str, object]


def finding_of(kind: str, start: float, end: float | None, severity: str = "warning", **place: str) -> Finding:
    """A finding but for its id; ``place`` has g (the group), t (the topic) and b (the broker name)."""
    row: Finding = {
        "kind": kind,
        "severity": severity,
        "evidence": [evidence_of("silver.pull", record_id="r")],
    }
    row |= {"consumer_group": place.get("g"), "topic": place.get("t"), "broker_name": place.get("b")}
    row["broker_id"] = 0 if place.get("b") else None
    return row | {"from_ts": at(start), "to_ts": None if end is None else at(end)}


def frame_of(found: dict[str, Finding]) -> pl.DataFrame:
    return pl.DataFrame([{"finding_id": name} | row for name, row in found.items()], SCHEMA)


# A night each: its findings by name, and which of them follow from which.
NIGHTS: dict[str, tuple[dict[str, Finding], dict[str, str]]] = {
    "a master gone explains its own failovers, while clients come back": (
        {
            "down": finding_of("broker_down", 100, 190, "critical", b="a"),
            "pulls": finding_of("failover_pull", 130, 195, "critical", b="a"),
            "just in time": finding_of("failover_pull", 310, 320, "critical", b="a"),
            "late": finding_of("failover_pull", 311, 320, "critical", b="a"),
            "elsewhere": finding_of("failover_pull", 130, 195, "critical", b="b"),
        },
        {"pulls": "down", "just in time": "down"},
    ),
    "offsets that went back while the roles were swapped, by copies minutes apart": (
        {
            "swapped": finding_of("master_changed", 100, 1000, b="a"),
            "back": finding_of("offset_rewind", 40, 700, "critical", b="a", g="g", t="T"),
            "before": finding_of("offset_rewind", 0, 60, b="a", g="g2", t="T"),
            "elsewhere": finding_of("offset_rewind", 40, 700, b="b", g="g", t="T"),
        },
        {"back": "swapped"},
    ),
    "the outage of a slave sends nobody to a slave": (
        {
            "slave down": finding_of("broker_down", 100, 190, b="a") | {"broker_id": 1},
            "lagged": finding_of("slave_pull", 130, 195, b="a", g="g") | {"broker_id": 1},
            "stale": finding_of("stale_slave_offsets", 130, 195, b="a") | {"broker_id": 1},
        },
        {"stale": "slave down"},
    ),
    "an effect may be seen a little before its cause, but not long before": (
        {
            "conflict": finding_of("strategy_conflict", 100, 180, g="g"),
            "early": finding_of("orphan_queue", 71, 180, g="g"),
            "too early": finding_of("orphan_queue", 69, 180, g="g", t="T"),
            "another group's": finding_of("orphan_queue", 100, 180, g="h"),
        },
        {"early": "conflict"},
    ),
    "what a reset gave again follows from the reset, not from the rewind it shows as": (
        {
            "reset": finding_of("offset_reset", 100, 101, g="g", t="T"),
            "back": finding_of("offset_rewind", 105, 120, g="g", t="T"),
            "again": finding_of("duplicate_delivery", 108, 130, g="g"),
        },
        {"back": "reset", "again": "reset"},
    ),
    "a reset ahead gives nothing again": (
        {
            "ahead": finding_of("offset_reset", 100, 101, g="g", t="T"),
            "by hand": finding_of("offset_rewind", 155, 160, g="g", t="T", b="b"),
            "again": finding_of("duplicate_delivery", 165, 166, g="g"),
        },
        {"again": "by hand"},
    ),
    "a chain of three": (
        {
            "conflict": finding_of("strategy_conflict", 100, 200, g="g"),
            "twice": finding_of("double_owned_queue", 100, 200, g="g", t="T"),
            "back": finding_of("offset_rewind", 110, 200, g="g", t="T"),
            "stuck": finding_of("stuck_queue", 160, 230, g="g", t="T"),
        },
        {"twice": "conflict", "back": "conflict", "stuck": "conflict"},
    ),
    "a slave that refuses explains who was sent to it, and what is stuck on it": (
        {
            "refusing": finding_of("slave_pull", 100, 200, "critical", b="a"),
            "sent": finding_of("slave_pull", 100, 200, b="a", g="g"),
            "stuck": finding_of("stuck_queue", 150, 210, b="a", g="g"),
            "elsewhere": finding_of("slave_pull", 100, 200, b="b", g="g"),
        },
        {"sent": "refusing", "stuck": "refusing"},
    ),
    "such a slave, since the broker was gone": (
        {
            "down": finding_of("broker_down", 100, 190, "critical", b="a"),
            "refusing": finding_of("slave_pull", 150, 200, "critical", b="a"),
            "sent": finding_of("slave_pull", 160, 200, b="a", g="g"),
            "stuck": finding_of("stuck_queue", 165, 300, b="a", g="g"),
        },
        {"refusing": "down", "sent": "down", "stuck": "down"},
    ),
    "findings without a place in common": (
        {
            "dead": finding_of("dead_letter", 100, 200, g="g"),
            "lost": finding_of("consumer_lost", 100, 200, g="g"),
            "retries": finding_of("retry_growth", 100, 200, g="h"),
        },
        {},
    ),
    "a place that is not known meets nothing": (
        {
            "conflict": finding_of("strategy_conflict", 100, 200),
            "orphan": finding_of("orphan_queue", 100, 200),
            "twice": finding_of("double_owned_queue", 100, 200, g="g"),
            "back": finding_of("offset_rewind", 100, 200, g="g"),
        },
        {},
    ),
    "the first in the order of causes, then the nearest, then by id": (
        {
            "subscription": finding_of("subscription_conflict", 100, 200, g="g"),
            "farther": finding_of("strategy_conflict", 80, 200, g="g"),
            "b near": finding_of("strategy_conflict", 95, 200, g="g"),
            "a near": finding_of("strategy_conflict", 105, 200, g="g"),
            "orphan": finding_of("orphan_queue", 100, 200, g="g"),
        },
        {"orphan": "a near"},
    ),
    "a cause that has no end causes nothing": (
        {
            "conflict": finding_of("strategy_conflict", 100, None, g="g"),
            "orphan": finding_of("orphan_queue", 100, 200, g="g"),
        },
        {},
    ),
}


@pytest.mark.parametrize("night", NIGHTS)
def test_what_follows_from_what(night: str) -> None:
    found, follows = NIGHTS[night]
    rows = {row["finding_id"]: row for row in with_causes(frame_of(found), KINDS.values()).to_dicts()}
    assert rows.keys() == found.keys()
    assert {name: row["follows_from"] for name, row in rows.items() if row["follows_from"] is not None} == follows
    for name, row in rows.items():
        assert row["severity"] == ("info" if name in follows else found[name]["severity"])
        effects = sorted(effect for effect, cause in follows.items() if cause == name)
        keys = ["record_id=r", *(f"finding_id={effect}" for effect in effects)]
        assert keys_of(row["evidence"]) == keys
        assert {each["table_name"] for each in row["evidence"][1:]} <= {"gold.finding"}


def test_a_cause_keeps_fifty_rows_of_its_own_and_names_every_effect() -> None:
    own = [evidence_of("silver.pull", record_id=f"{n:02}") for n in range(60)]
    found = {"down": finding_of("broker_down", 100, 190, "critical", b="a") | {"evidence": own}}
    found |= {f"p{n:02}": finding_of("failover_pull", 130, 195, b="a") for n in range(60)}
    rows = {row["finding_id"]: row for row in with_causes(frame_of(found), KINDS.values()).to_dicts()}
    effects = [evidence_of("gold.finding", finding_id=f"p{n:02}") for n in range(60)]
    assert rows["down"]["evidence"] == own[:50] + effects


def test_a_cause_that_the_evidence_shows_counts_before_time_and_place() -> None:
    found = {
        "near": finding_of("consumer_lost", 100, 120, g="g"),
        "far": finding_of("consumer_lost", 10, 12, g="g"),
        "shown": finding_of("duplicate_delivery", 110, 120, g="g") | {"cause_id": "far", "redelivered": 3},
        "two": finding_of("duplicate_delivery", 111, 120, g="g") | {"cause_id": "far", "redelivered": 1},
        "none": finding_of("duplicate_delivery", 112, 120, g="g") | {"cause_id": "", "redelivered": 9},
        "not kept": finding_of("duplicate_delivery", 113, 120, g="g") | {"cause_id": "of another day"},
        "by time": finding_of("duplicate_delivery", 114, 120, g="g"),
        "one": finding_of("duplicate_delivery", 115, 120, g="g") | {"cause_id": "near", "redelivered": 1},
    }
    found = {name: row | {"summary": "S."} for name, row in found.items()}
    rows = {row["finding_id"]: row for row in with_causes(frame_of(found), KINDS.values()).to_dicts()}
    follows = {name: row["follows_from"] for name, row in rows.items() if row["follows_from"] is not None}
    assert follows == {"shown": "far", "two": "far", "by time": "near", "one": "near"}
    assert rows["far"]["summary"] == "S. 4 messages were delivered again."
    assert rows["near"]["summary"] == "S. 1 message was delivered again."
    assert {rows[name]["summary"] for name in ("shown", "none", "by time")} == {"S."}


def test_a_bound_is_left_out_where_the_log_counts() -> None:
    reset = {"queues": 1, "back": 50, "recorded": True, "bounded": True, "again": 50}
    rewind = {"queues": 1, "most": 50, "causes": ["restart"], "bound": "at_most", "again": 50}
    resets = {"summary": "With a bound.", "values": json.dumps(reset)}
    rewinds = resets | {"values": json.dumps(rewind)}
    found = {
        "reset": finding_of("offset_reset", 100, 101, g="g", t="T") | resets,
        "back": finding_of("offset_rewind", 105, 110, g="g", t="T") | rewinds,
        "again": finding_of("duplicate_delivery", 112, 120, g="g") | {"cause_id": "reset", "redelivered": 45},
        "not logged": finding_of("offset_reset", 100, 101, g="h", t="T") | resets,
        "down": finding_of("broker_down", 500, 520, "critical", b="a") | {"summary": "Down."},
        "of g": finding_of("duplicate_delivery", 510, 520, g="g", b="a") | {"cause_id": "down", "redelivered": 2},
        "g back": finding_of("offset_rewind", 510, 520, g="g", t="T", b="a") | rewinds,
        "h back": finding_of("offset_rewind", 510, 520, g="h", t="T", b="a") | rewinds,
    }
    rows = {row["finding_id"]: row["summary"] for row in with_causes(frame_of(found), KINDS.values()).to_dicts()}
    unbounded = (
        "the offset of 1 queue went back by up to 50 messages, by a restart of the broker, which had not saved its"
    )
    assert rows["reset"] == (
        "Group g on T: 1 queue reset, back by up to 50 messages. 45 messages were delivered again."
    )
    assert rows["back"] == rows["g back"] == f"Group g on T: {unbounded} latest offsets."
    assert rows["not logged"] == rows["h back"] == "With a bound."
    assert rows["down"] == "Down. 2 messages were delivered again."


def test_a_cause_is_found_by_the_name_that_the_day_before_gave_it() -> None:
    found = {
        "old": finding_of("consumer_lost", 10, 12, g="g") | {"begun_id": "new"},
        "shown": finding_of("duplicate_delivery", 110, 120, g="g") | {"cause_id": "new", "begun_id": "shown"},
        "none": finding_of("duplicate_delivery", 110, 120, g="g") | {"cause_id": "", "begun_id": "none"},
        "by time": finding_of("duplicate_delivery", 300, 320, g="g") | {"begun_id": "by time"},
    }
    begun = frame_of(found).with_columns(begun_id=pl.Series([row["begun_id"] for row in found.values()]))
    renamed = with_renamed_causes(begun, "begun_id")
    assert dict(renamed.select("finding_id", "cause_id").rows()) == {
        "old": None,
        "shown": "old",
        "none": "",
        "by time": None,
    }
    assert dict(renamed.schema) == SCHEMA


def plainly(found: dict[str, Finding]) -> dict[str, str]:
    """Effect and first cause, pair by pair."""

    def ms(name: str, ts: str) -> float:
        return found[name][ts].timestamp() * 1000  # type: ignore[attr-defined]

    by: dict[str, str] = {}
    for name, row in found.items():
        met = []
        for number, cause in enumerate(KINDS[str(row["kind"])].causes):
            for other, of in found.items():
                same = all(row[column] is not None and row[column] == of[column] for column in cause.same)
                grave = of["severity"] == "critical" and row["severity"] != "critical"
                since, late = ms(name, "from_ts") - ms(other, "from_ts"), ms(name, "from_ts") - ms(other, "to_ts")
                in_time = since >= -cause.before_s * 1000 and late <= cause.after_s * 1000
                known = (grave or not cause.critical) and (of["broker_id"] == 0 or not cause.of_master)
                if of["kind"] == cause.name and same and in_time and known:
                    met.append((number, abs(since), other))
        if met:
            by[name] = min(met)[2]
    above = dict(by)
    for _ in range(1, LONGEST_CHAIN):
        by = {effect: above.get(cause, cause) for effect, cause in by.items()}
    return by


@pytest.mark.parametrize("seed", range(20))
def test_as_pair_by_pair(seed: int) -> None:
    rng = random.Random(seed)
    found = {}
    for number in range(120):
        start = rng.randrange(0, 900, 5)
        place = {name: rng.choice(f"{name}h") for name in "gtb" if rng.random() < 0.8}
        severity = rng.choice(("critical", "warning", "info"))
        found[f"f{number:03}"] = finding_of(
            rng.choice(list(KINDS)), start, start + rng.randrange(0, 90, 5), severity, **place
        ) | {"broker_id": rng.choice((0, 1))}
    causes = with_causes(frame_of(found), KINDS.values()).filter(pl.col("follows_from").is_not_null())
    assert dict(causes.select("finding_id", "follows_from").rows()) == plainly(found)


def test_no_findings_have_no_causes() -> None:
    found = with_causes(none(), KINDS.values())
    kept = {name: kind for name, kind in SCHEMA.items() if name not in HIDDEN}
    assert dict(found.schema) == kept | {"follows_from": pl.String()}
    assert len(found) == 0


def test_no_kind_comes_round_to_itself() -> None:
    # slave_pull follows from slave_pull: of a critical one only, which has no such cause.
    causes = {name: {cause.name for cause in kind.causes} - {name} for name, kind in KINDS.items()}
    assert set().union(*causes.values()) <= KINDS.keys()

    def longest(kind: str, seen: tuple[str, ...] = ()) -> int:
        assert kind not in seen
        return max((1 + longest(cause, (*seen, kind)) for cause in causes[kind]), default=0)

    assert max(map(longest, causes)) + 1 == LONGEST_CHAIN, "with slave_pull by slave_pull between"
