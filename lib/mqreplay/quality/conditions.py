"""SQL of the tables' views that tells valid rows from others: chains of offsets, unique keys, CHECKs, rows of files.

The rules of suite.py and Great Expectations (expectations/) both use it. It does not import Great Expectations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqreplay.decode.kinds import FILE_KINDS
from mqreplay.ingest.offset_checkpoint import CHAIN
from mqreplay.lake.duckdb_database import literal

UNIQUE_COLUMN = "is_unique"  # column of a table's view: whether no other row equals this one
# Silver table -> kinds of files that give its rows.
KINDS_OF_TABLE = {
    table: tuple(sorted(kind.stem for kind in FILE_KINDS.values() if kind.table == table))
    for table in sorted({kind.table for kind in FILE_KINDS.values()})
}
# A line of topic_stats gives many rows, so count its records.
COUNTED_BY_RECORD = frozenset({"silver.topic_stats"})
ROW_COUNTS = ["rows_in", "rows_out", "rows_quarantined", "rows_duplicate"]
ROWS_EXPIRED = "rows_expired"
LINK = ["previous_offset", "new_offset", "from_ts", "to_ts"]
LINKED_COLUMN = "is_linked"  # column of the table's view: whether the row continues the row before it
REWINDS = "rewinds_without_cause"  # view of REWIND_KEY
REWIND_KEY = ["source_name", "topic", "consumer_group", "queue_id", "to_ts"]
ROW = "judged_row"  # the name of a row in the table's view
_IS_REWIND = " AND ".join(f"{REWINDS}.{name} IS NOT DISTINCT FROM {ROW}.{name}" for name in REWIND_KEY)
_WINDOW = "(PARTITION BY {} ORDER BY to_ts)".format(", ".join(CHAIN))
LINKED_CONDITION = (
    f"(previous_offset IS NOT DISTINCT FROM lag(new_offset) OVER {_WINDOW} OR row_number() OVER {_WINDOW} = 1)"
    " AND (from_ts IS NULL OR from_ts <= to_ts)"
)
EXPLAINED_COLUMN = "is_explained"  # whether the row is no rewind without a cause
MAY_BE_REWIND = "coalesce(new_offset < previous_offset, true)"
EXPLAINED_CONDITION = f"NOT EXISTS (SELECT 1 FROM {REWINDS} WHERE {_IS_REWIND})"


def check_column(name: str) -> str:
    """Return the column with the value of the CHECK ``name``."""
    return f"check_{name}"


def unique_condition(columns: Sequence[str]) -> str:
    """Return the SQL of UNIQUE_COLUMN."""
    return "count(*) OVER (PARTITION BY {}) = 1".format(", ".join(f'"{name}"' for name in columns))


def rows_lost(silver_rows: Mapping[str, int]) -> str:
    """Return the SQL of how many files and silver tables break expect_rows_conserved, on bronze.source_file."""
    rows_in, *parts = ROW_COUNTS
    broken = [f"count(*) FILTER (WHERE {rows_in} IS DISTINCT FROM {' + '.join(parts)})"]
    for table, kinds in KINDS_OF_TABLE.items():
        own = f"status = 'read' AND kind IN ({', '.join(map(literal, kinds))})"
        rows_out = f"coalesce(sum(rows_out - coalesce({ROWS_EXPIRED}, 0)) FILTER (WHERE {own}), 0)"
        broken.append(f"({rows_out} <> {silver_rows.get(table, 0)})::INT")
    return " + ".join(broken)


def true_of_all(run: Callable[[str], list[Any]], rows: str) -> dict[str, str]:
    """Return those of the two columns that are true of all ``rows`` (a query), so that no other query computes them.

    ``run`` returns the rows of a query.
    """
    suspects = {LINKED_COLUMN: _suspects(rows), EXPLAINED_COLUMN: f"SELECT 1 FROM {REWINDS}"}
    return {column: "true" for column, others in suspects.items() if not run(f"{others} LIMIT 1")}


def _suspects(rows: str) -> str:
    """Return a query for the rows that may break their chain: none if all chains are intact.

    Chains are sorted by a hash of their columns, which takes a third of the time. A second hash shows a row that
    follows one of another chain, which is suspect too.
    """
    chain = ", ".join(CHAIN)
    return f"""SELECT 1 FROM (SELECT *, hash({chain}, 1) AS second FROM ({rows}))
        WINDOW chain AS (PARTITION BY hash({chain}) ORDER BY to_ts)
        QUALIFY NOT coalesce((lag(second) OVER chain IS NULL OR (lag(second) OVER chain = second
                AND previous_offset IS NOT DISTINCT FROM lag(new_offset) OVER chain))
            AND (from_ts IS NULL OR from_ts <= to_ts), false)"""
