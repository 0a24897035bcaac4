"""The one table of `make bench`: stages down, engines across, the floor and the ratios beside."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

Run = Mapping[str, float]
TITLES = {
    "spark": "Spark",
    "same": "same, Spark",
    "local": "local",
    "same-local": "same, local",
    "polars": "polars",
    "duckdb": "DuckDB",
    "plain": "plain Python",
}
PEERS = ("polars", "duckdb")  # that write some of the same tables; plain Python writes none
OURS = ("spark", "same", "local", "same-local")  # each has a ratio to the best peer
WHOLE = ("spark", "local")  # run the whole night; the first that ran has a ratio to the floor
# Stage -> its title. A stage of one engine alone has a line, too: the peers have no expectations and no report.
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
    "again": "the night again",
    "driver alone, % of the time": "driver alone, % of the time",
    "CPU s": "CPU seconds, all processes",
    "Spark jobs": "Spark jobs",
    "peak MB": "peak MB, all processes",
}
NO_SECONDS = ("driver alone, % of the time", "Spark jobs", "peak MB")


def with_sums(stages: Run) -> dict[str, float]:
    """Return a peer's stages, and their sums for the two stages that a night has: ingest and replay."""
    layers = {"silver": "ingest", "gold": "replay"}
    sums = {
        whole: sum(seconds for name, seconds in stages.items() if name.startswith(layer))
        for layer, whole in layers.items()
    }
    return {**stages, **sums}


def table(runs: Mapping[str, Sequence[Run]], floors: Run) -> list[str]:
    """Lines of text: medians of each engine's runs. ``floors`` are the seconds that reading a stage's bytes takes."""
    medians = {engine: _medians(of_engine) for engine, of_engine in runs.items()}
    ours = [engine for engine in OURS if engine in medians]
    whole = next((engine for engine in WHOLE if engine in medians), None)
    head = [f"{'seconds':32}", *(f"{TITLES[engine]:>14}" for engine in medians), f"{'floor':>8}"]
    head += [f"{TITLES[engine] + ' / peer':>20}" for engine in ours]
    head += [f"{TITLES[whole] + ' / floor':>15}"] if whole else []
    lines = ["".join(head)]
    for stage, title in STAGES.items():
        values = {engine: of[stage] for engine, of in medians.items() if stage in of}
        if not values:
            continue
        digits = 0 if stage in NO_SECONDS else 1
        floor = floors.get(stage)
        best = min((values[engine] for engine in PEERS if engine in values), default=None)
        cells = [_cell(values.get(engine), 14, digits) for engine in medians]
        cells.append(_cell(floor, 8, 1))
        cells += [_cell(_ratio(values.get(engine), best), 20, 2) for engine in ours]
        cells += [_cell(_ratio(values.get(whole), floor), 15, 1)] if whole else []
        lines.append("".join([f"{title:32}", *cells]).rstrip())
    return lines


def _medians(runs: Sequence[Run]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs if name in run) for name in runs[0]}


def _ratio(value: float | None, to: float | None) -> float | None:
    return value / to if value is not None and to else None


def _cell(value: float | None, width: int, digits: int) -> str:
    return " " * width if value is None else f"{value:{width}.{digits}f}"
