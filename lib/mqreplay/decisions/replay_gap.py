"""gold.replay_gap: decisions that could not be judged, and the missing evidence."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Mapping

import polars as pl

from mqreplay.decode.recording.advice import EVIDENCE, MODE_KINDS, Mode, Need, all_ways, label_of, mode_of
from mqreplay.evidence.gap_rows import GAP
from mqreplay.words.keys import GROUP_TOPIC_BROKER

GAP_KEY = ("decision", "evidence", "day", *GROUP_TOPIC_BROKER, "reason")


def missing_kinds(
    day: dt.date,
    missing: Collection[str],
    needed: Mapping[str, Collection[Need]],
    polled: bool = False,
) -> pl.DataFrame:
    """Return the gaps (columns of GAP) for missing kinds of files in the recording of ``day``.

    ``missing`` are these kinds. If the recorder ``polled`` the cluster, its polls replace some of them.
    ``needed`` maps the name of each decision to what its judgement needs.
    """
    mode = "network" if polled else mode_of({*MODE_KINDS} - set(missing))
    rows = [
        {
            "day": day,
            "decision": decision,
            "evidence": need.kind,
            "decisions": 0,
            "reason": _not_recorded(need, mode, missing),
        }
        for decision, needs in needed.items()
        for need in needs
        if need.kind in missing and not need.is_replaced_by_other_kind(missing, polled)
    ]
    return pl.DataFrame(rows, GAP)


def lacking(missing: Collection[str], pulls: pl.DataFrame) -> set[str]:
    """Return the kinds of files that are missing, with pull_log if only answers to pulls were recorded.

    Clients' logs have some answers. ``pulls`` counts answers and requests of each shard.
    """
    counts = pulls.sum().row(0, named=True)
    only_answers = counts["answers"] > 0 and counts["requests"] == 0
    return {*missing, *(["pull_log"] if only_answers else [])}


def _not_recorded(need: Need, mode: Mode, missing: Collection[str]) -> str:
    kind = need.next_time(EVIDENCE.keys() - set(missing))
    ways = all_ways(kind, mode)
    return f"no record of {label_of(kind)}" + (f". Next time: {ways}" if ways else "")


def replay_gap(gaps: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return the rows of gold.replay_gap: all gaps (columns of GAP), merged by GAP_KEY."""
    merged = gaps.group_by(GAP_KEY).agg(pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("decisions").sum())
    ids = [_gap_id(cluster, key) for key in merged.select(GAP_KEY).rows()]
    return merged.select("day", pl.Series("gap_id", ids, pl.String), *[name for name in GAP if name != "day"])


def _gap_id(cluster: str, key: tuple[object, ...]) -> str:
    """Return the id of a gap, which is the same in every replay of the night."""
    parts = [cluster, *("" if value is None else str(value) for value in key)]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
