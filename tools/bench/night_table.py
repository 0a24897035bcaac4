"""The one table of `make bench`: stages down, engines across, the floor and the ratios beside."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

Run = Mapping[str, float]
TITLES = {"spark": "Spark", "same": "the same", "polars": "polars", "duckdb": "DuckDB", "plain": "plain Python"}
PEERS = ("polars", "duckdb")  # that write some of the same tables; plain Python writes none
OURS = {"spark": "x best peer", "same": "same x peer"}  # all of the night, and the peers' part of it
# Stage -> what it is called. Those of one engine alone stand too: the peers have no expectations and no report.
STAGES = {
    "session": "session start",
    "silver.offset_change": "snapshots alone",
    "silver.pull": "  pulls alone",
    "ingest": "ingest",
    "gold.pull_route": "  gold.pull_route alone",
    "gold.offset_continuity": "  gold.offset_continuity alone",
    "replay": "replay",
    "validate": "validate",
    "report": "report",
    "all": "all",
    "again, less session": "the night again, less session",
    "driver alone, % of the time": "driver alone, % of the time",
    "CPU s": "CPU seconds, all processes",
    "Spark jobs": "Spark jobs",
    "peak MB": "peak MB, all processes",
}
NO_SECONDS = ("driver alone, % of the time", "Spark jobs", "peak MB")


def with_sums(stages: Run) -> dict[str, float]:
    """A peer's stages, and what they make together of what Spark's night tells of: ingest and replay."""
    layers = {"silver": "ingest", "gold": "replay"}
    sums = {
        whole: sum(seconds for name, seconds in stages.items() if name.startswith(layer))
        for layer, whole in layers.items()
    }
    return {**stages, **sums}


def table(told: Mapping[str, Sequence[Run]], floors: Run) -> list[str]:
    """Lines of text: medians of each engine's runs. ``floors`` are the seconds that reading a stage's bytes takes."""
    medians = {engine: _medians(runs) for engine, runs in told.items()}
    engines = list(medians)
    head = [f"{'seconds':32}", *(f"{TITLES[engine]:>14}" for engine in engines)]
    asked = [engine for engine in OURS if engine in medians] or list(OURS)[:1]
    lines = ["".join([*head, f"{'floor':>8}", *(f"{OURS[engine]:>13}" for engine in asked), f"{'x floor':>9}"])]
    for stage, title in STAGES.items():
        values = {engine: of[stage] for engine, of in medians.items() if stage in of}
        if not values:
            continue
        digits = 0 if stage in NO_SECONDS else 1
        cells = [f"{values[e]:14.{digits}f}" if e in values else f"{'':14}" for e in engines]
        lines.append("".join([f"{title:32}", *cells, *_beside(asked, values, floors.get(stage))]).rstrip())
    return lines


def _medians(runs: Sequence[Run]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs if name in run) for name in runs[0]}


def _beside(ours: Sequence[str], values: Run, floor: float | None) -> list[str]:
    peers = [values[engine] for engine in PEERS if engine in values]
    shown = f"{'':8}" if floor is None else f"{floor:8.1f}"
    beside = [f"{values[one] / min(peers):13.2f}" if one in values and peers else f"{'':13}" for one in ours]
    over = f"{values['spark'] / floor:9.1f}" if "spark" in values and floor else ""
    return [shown, *beside, over]
