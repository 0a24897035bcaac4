"""Compare what two recordings of one night gave: `python tools/compare/recordings.py REFERENCE OTHER [--within 25]`.

Both are warehouses (the folder given to --warehouse). Prints the findings of each that the other lacks, how far the
boundaries of gold.queue_owner are apart, and the judgements of gold.allocation. A finding of the other warehouse
matches one of the reference if kind, group and topic are equal (null matches everything) and their times overlap
within ``--within`` seconds. Exit status 1 if the other warehouse lacks a warning or has one more.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from typing import Any

import polars as pl

from mqreplay.lake.warehouse import Warehouse

Finding = dict[str, Any]
FIELDS = ("kind", "severity", "consumer_group", "topic", "broker_name", "from_ts", "to_ts", "summary")
SAME = ("consumer_group", "topic", "broker_name")
HELD = ["consumer_group", "topic", "broker_name", "queue_id", "client_id"]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", metavar="REFERENCE")
    parser.add_argument("other", metavar="OTHER")
    parser.add_argument("--within", type=float, default=25, metavar="SECONDS", help="(%(default)s)")
    given = parser.parse_args()
    reference, other = Warehouse(given.reference), Warehouse(given.other)
    different = print_findings(findings(reference), findings(other), given.within)
    print_owners(owners(reference), owners(other), given.within)
    for name, warehouse in (("reference", reference), ("other", other)):
        print_allocations(name, warehouse)
    return 1 if different else 0


def findings(warehouse: Warehouse) -> list[Finding]:
    """Return the findings of a warehouse, by time."""
    return warehouse.read("gold.finding").select(FIELDS).sort("from_ts", "kind").collect().to_dicts()


def matches(one: Finding, another: Finding, within_s: float) -> bool:
    """Return whether two findings may tell of the same."""
    slack = dt.timedelta(seconds=within_s)
    overlap = one["from_ts"] <= another["to_ts"] + slack and another["from_ts"] <= one["to_ts"] + slack
    equal = all(None in (one[name], another[name]) or one[name] == another[name] for name in SAME)
    return bool(one["kind"] == another["kind"] and overlap and equal)


def print_findings(reference: list[Finding], other: list[Finding], within_s: float) -> bool:
    """Print findings that only one side has; return whether a warning is among them."""
    lacked = [f for f in reference if not any(matches(f, o, within_s) for o in other)]
    more = [o for o in other if not any(matches(f, o, within_s) for f in reference)]
    print(f"findings: {len(reference)} in the reference, {len(other)} in the other")
    for title, some in (("only in the reference", lacked), ("only in the other", more)):
        print(f"{title}: {len(some)}")
        for found in some:
            print(f"  {found['from_ts']:%H:%M:%S} {found['severity']:8} {found['kind']:22} {found['summary']}")
    return any(found["severity"] != "info" for found in [*lacked, *more])


def owners(warehouse: Warehouse) -> pl.DataFrame:
    """Return HELD, from_ts, to_ts, source; without retry topics."""
    rows = warehouse.read("gold.queue_owner").filter(~pl.col("topic").str.starts_with("%RETRY%"))
    return rows.select(*HELD, "from_ts", "to_ts", "source").sort(*HELD, "from_ts").collect()


def print_owners(reference: pl.DataFrame, other: pl.DataFrame, within_s: float) -> None:
    """Print how far the boundaries of the other's intervals are from the reference's nearest, and what is missed."""
    print(f"gold.queue_owner: {len(reference)} intervals in the reference, {len(other)} in the other")
    for end in ("from_ts", "to_ts"):
        sides = (other.select(*HELD, end), reference.select(*HELD, end))
        for title, one, another in (("other to reference", *sides), ("reference to other", *reversed(sides))):
            apart = one.with_row_index("row").join(another.rename({end: "near"}), HELD, how="left")
            away = (pl.col(end).dt.epoch("ms") - pl.col("near").dt.epoch("ms")).abs() / 1000
            nearest = apart.group_by("row").agg(away.min().alias("s"))["s"]
            known = nearest.drop_nulls()
            far = int((known > within_s).sum())
            print(
                f"  {end:8} {title}: median {known.median() or 0:.1f} s, most {known.max() or 0:.1f} s,"
                f" {far} beyond {within_s:g} s, {nearest.null_count()} without a counterpart"
            )


def print_allocations(name: str, warehouse: Warehouse) -> None:
    """Print the judgements of gold.allocation, with their reasons."""
    rows = warehouse.read("gold.allocation").group_by("strategy", "judgement", "reason").len().collect()
    print(f"gold.allocation of the {name}: {rows['len'].sum()} rows")
    for strategy, judgement, reason, count in rows.sort("judgement", "strategy", "reason").rows():
        print(f"  {count:6} {judgement:13} {strategy}: {reason}")


if __name__ == "__main__":
    sys.exit(main())
