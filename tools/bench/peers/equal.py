"""Are two warehouses of one recording the same, and are they what is known of it? Hashes do not ask for an order."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from deltalake import DeltaTable

# Of each table the columns that name a row and what was found of it.
COLUMNS = {
    "silver.offset_change": (
        *("source_name", "topic", "consumer_group", "queue_id", "previous_offset", "new_offset", "from_ts", "to_ts"),
        "source_digest",
    ),
    "silver.pull": (
        *("record_id", "request_ts", "response_ts", "client_id", "queue_offset", "next_begin_offset", "max_offset"),
        *("suggest_which_broker_id", "last_commitlog_offset"),
    ),
    "gold.pull_route": ("record_id", "pull_from_which_node", "expected_broker_id", "cause", "judgement", "reason"),
    "gold.allocation": ("record_id", "rebalance_ts", "judgement", "reason"),
    "gold.offset_continuity": (
        *("broker_name", "broker_id", "topic", "consumer_group", "queue_id", "kind", "previous_offset", "new_offset"),
        *("size", "from_ts", "to_ts"),
    ),
}
# Tables that only recordings with such lines have, and the answer that says how many rows.
MORE = {
    "silver.offset_commit": ("offset_commits", ("record_id", "ts", "client_id", "kind", "commit_offset")),
    "silver.consume": ("consume_log", ("record_id", "ts", "client_id", "queue_offset", "born_ts", "orderly")),
    "silver.produce": ("produce_log", ("record_id", "ts", "topic", "queue_offset", "offset_msg_id")),
}


def files_of(warehouse: Path, name: str) -> list[str]:
    """The Parquet files that a table now consists of."""
    return sorted(DeltaTable(warehouse / name.replace(".", "/")).file_uris())


def summed(warehouse: Path, name: str) -> dict[str, int]:
    """Rows of a table, and the sum of its rows' hashes (64 bit), a file at a time: it fits into any memory."""
    rows = total = 0
    columns = COLUMNS[name] if name in COLUMNS else MORE[name][1]
    for file in files_of(warehouse, name) if _has(warehouse, name) else ():
        frame = pl.read_parquet(file, columns=list(columns))
        frame = frame.select(pl.col(c).dt.timestamp("us") if frame[c].dtype == pl.Datetime else c for c in columns)
        frame = frame.with_columns(pl.selectors.integer().cast(pl.Int64))
        rows += len(frame)
        # A null has a hash that a number might have: it is given a word of its own.
        hashed = frame.select(pl.all().cast(pl.String).fill_null("~")).hash_rows(7)
        total = (total + int(hashed.cast(pl.Decimal(38, 0)).sum() or 0)) % 2**64
    return {"rows": rows, "hash": total}


def compare(one: Path, other: Path) -> dict[str, object]:
    """Table -> whether both have the same rows."""
    names = [*COLUMNS, *[name for name in MORE if _has(one, name) or _has(other, name)]]
    tables = {name: [summed(one, name), summed(other, name)] for name in names}
    different = [name for name, (a, b) in tables.items() if a != b]
    return {"equal": not different, "different": different, "tables": tables}


def checked(warehouse: Path, answers: Path) -> dict[str, object]:
    """The sums of every table, and what of the answers they miss."""
    known = json.loads(answers.read_bytes())
    tables = {name: summed(warehouse, name) for name in [*COLUMNS, *[n for n in MORE if MORE[n][0] in known]]}
    wrong = [name for name, is_right in _answers(warehouse, tables, known).items() if not is_right]
    return {"right": not wrong, "wrong": wrong, "tables": tables}


def _answers(warehouse: Path, tables: dict[str, dict[str, int]], known: dict) -> dict[str, bool]:
    breaks = pl.read_parquet(files_of(warehouse, "gold.offset_continuity"))
    found = {
        "offset_changes": tables["silver.offset_change"]["rows"] == known["offset_changes"],
        "pulls": tables["silver.pull"]["rows"] == known["pulls"],
        "pull_route": _judged(warehouse, "gold.pull_route") == known["pull_route"],
        "allocation": _judged(warehouse, "gold.allocation") == known["allocation"],
    }
    found |= {told: tables[name]["rows"] == known[told] for name, (told, _) in MORE.items() if told in known}
    names = ("broker_name", "broker_id", "topic", "consumer_group", "queue_id", "previous_offset", "new_offset")
    for kind, told in (("rewind", "rewinds"), ("jump", "jumps"), ("vanished", "vanished")):
        rows = breaks.filter(pl.col("kind") == kind)
        there = set(rows.select(*names, pl.col("to_ts").dt.timestamp("ms")).rows())
        found[told] = there == {tuple(row[n] for n in (*names, "to_ts")) for row in known[told]}
    found["no other break"] = len(breaks) == sum(len(known[told]) for told in ("rewinds", "jumps", "vanished"))
    return found


def _has(warehouse: Path, name: str) -> bool:
    return (warehouse / name.replace(".", "/") / "_delta_log").is_dir()


def _judged(warehouse: Path, name: str) -> dict[str, int]:
    counts = {"agree": 0, "differ": 0, "undetermined": 0}
    for file in files_of(warehouse, name):
        for judgement, count in pl.read_parquet(file, columns=["judgement"])["judgement"].value_counts().rows():
            counts[judgement] += count
    return counts
