"""Breaks in offsets of random nights: against plain rules, over shards, and in any order of rows."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.decisions.offset_continuity import CHAIN, skips
from mqreplay.evidence.offsets.offset_causes import (
    offset_resets,
    with_awaited_reset,
    with_committed,
    with_extent,
    with_reset,
    with_reset_ahead,
    with_skip,
)
from mqreplay.evidence.offsets.queue_ends import queue_ends
from mqreplay.evidence.offsets.queue_events import groups_with_commits_of_shard, queue_events
from mqreplay.lake.contract import arrow_schema, load_contracts
from offset_nights import REACH_S, continuity, random_night


def expected_row(row: dict[str, Any], before: dict[str, Any] | None, ends: list[tuple[Any, ...]]) -> dict[str, Any]:
    """The kind, cause and redelivered_max of a change; ``before`` is that of the change before it in its file."""
    new, old, began = row["new_offset"], row["previous_offset"], row["from_ts"] or row["to_ts"]
    highs = [(asked, high) for _, asked, _, high in ends if high is not None]
    above = min((end for end in highs if end[0] >= row["to_ts"]), default=(None, None))[1]
    below = max(((ts, low) for ts, _, low, _ in ends if ts <= began and low is not None), default=(None, None))[1]
    above_old = min((end for end in highs if end[0] >= began), default=(None, None))[1]
    kind = None
    if new is None:
        kind = "vanished"
    elif old is not None and new < old:
        kind = "rewind"
    elif above is not None and new > above and new != old:
        kind = "beyond_max"
    elif below is not None and new < below:
        kind = "below_min"
    elif old is not None and (row["reset"] or row["skipped"]):
        kind = "jump"
    if before is None:
        corrected = None not in (old, above_old) and old > above_old
    else:
        end = before["answered_end"]
        corrected = before["kind"] == "beyond_max" and None not in (new, end) and new >= end
    cause = {True: "client_commit", False: "set_from_outside", None: "unknown"}[row["committed"]]
    if row["broker_id"] > 0 and not row["committed"]:
        cause = "copied_from_master"
    cause = "reset" if row["reset"] else cause
    again = None if kind in (None, "vanished") else 0
    if kind == "rewind":
        top = old if above_old is None else min(old, above_old)
        top = top if row["delivered_to"] is None else max(top, row["delivered_to"])
        bottom = min(new, new if row["reset_to"] is None else row["reset_to"])
        again = 0 if corrected else max(top - max(bottom, below if below is not None else 0), 0)
        cause = "corrected" if corrected else cause
    cause = "removed" if kind == "vanished" else cause
    answers = [(answered, high) for answered, _, _, high in ends if high is not None and answered >= row["to_ts"]]
    ends_then = {
        "queue_min_offset": below,
        "queue_max_offset": above,
        "answered_end": min(answers, default=(0, None))[1],
    }
    return row | ends_then | {"kind": kind, "cause": cause, "redelivered_max": again}


def following(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The change after this one in its file."""
    later = [one for one in rows if all(one[name] == row[name] for name in CHAIN) and one["to_ts"] > row["to_ts"]]
    return min(later, key=lambda one: one["to_ts"], default=None)


def is_overtaken(row: dict[str, Any], later: dict[str, Any] | None) -> bool:
    """Whether an offset fell by 32 messages or less, and was there again within 15 s."""
    if later is None or later["new_offset"] is None or row["previous_offset"] - row["new_offset"] > 32:
        return False
    return later["new_offset"] >= row["previous_offset"] and (later["to_ts"] - row["to_ts"]).total_seconds() <= 15


@pytest.mark.parametrize("seed", range(20))
def test_the_kind_and_cause_of_any_change(seed):
    night = random_night(seed)
    commits, pulls, stats = (night[name] for name in ("offset_commit", "pull", "topic_stats"))
    skipped = pl.DataFrame(pl.from_arrow(skips(queue_events(night["offset_change"], commits, pulls, stats, set()))))
    resets = offset_resets(night["server_request"], pulls)
    changes = with_reset(night["offset_change"].unique(), resets, REACH_S)
    changes = with_committed(with_skip(changes, skipped, REACH_S), commits, pulls, {"g"}, REACH_S)
    changes = with_reset_ahead(with_awaited_reset(changes, resets), resets, skipped, REACH_S)
    changes = with_extent(changes, resets, pulls, REACH_S)
    ends, last, expected = queue_ends(pulls, stats).rows(), {}, []
    for row in changes.sort("to_ts").rows(named=True):
        chain = tuple(row[name] for name in CHAIN)
        of_queue = [end[3:] for end in ends if end[:3] == (row["broker_name"], row["topic"], row["queue_id"])]
        last[chain] = expected_row(row, last.get(chain), of_queue)
        expected.append(last[chain])
    for row, later in zip(expected, (following(row, expected) for row in expected), strict=True):
        if (row["kind"], row["cause"]) == ("rewind", "unknown") and is_overtaken(row, later):
            row["cause"] = "overtaken"
    found = continuity(night)
    columns = [name for name in found.columns if name not in ("size", "from_ts", "day", "source", "client_addr")]
    wanted = sorted([tuple(row[name] for name in columns) for row in expected if row["kind"]], key=str)
    assert sorted(found.select(columns).rows(), key=str) == wanted


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 7, 8])  # night 3 has no corrected offset
def test_shards_together_are_the_whole(seed):
    night = random_night(seed)
    whole = continuity(night)
    columns = [(c.name, c.type) for c in load_contracts()["gold.offset_continuity"].columns if c.name != "cluster"]
    assert whole.schema == pl.DataFrame(pl.from_arrow(arrow_schema(columns).empty_table())).schema
    assert set(whole["kind"]) == {"rewind", "vanished", "beyond_max", "below_min", "jump"}
    causes = {"removed", "reset", "client_commit", "set_from_outside", "unknown", "corrected", "copied_from_master"}
    assert set(whole["cause"]) - {"overtaken"} == causes
    recording = groups_with_commits_of_shard(night["offset_commit"])
    for count in (1, 7):
        parts = []
        for part in range(count):
            own = pl.struct("broker_name", "topic", "queue_id").hash(seed) % count == part
            parts.append(
                continuity({n: f.filter(own) if "queue_id" in f.columns else f for n, f in night.items()}, recording)
            )
        assert_frame_equal(pl.concat(parts), whole, check_row_order=False)


def test_the_order_of_rows_does_not_matter():
    night = random_night(0)
    shuffled = {name: frame.sample(fraction=1, shuffle=True, seed=1) for name, frame in night.items()}
    assert_frame_equal(continuity(shuffled), continuity(night), check_row_order=False)


def test_no_rows():
    night = {name: frame.clear() for name, frame in random_night(0).items()}
    assert continuity(night).is_empty()
    assert continuity(night).schema == continuity(random_night(0)).schema
