"""Facts of other tables or days that expectations of a table need, passed to the suites as parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from mqreplay.ingest.offset_checkpoint import CHAIN, OFFSET_CHANGES, OFFSET_SOURCE
from mqreplay.ingest.offset_checkpoint import CHECKPOINT as KEPT
from mqreplay.lake.contract import Contract
from mqreplay.lake.duckdb_database import literal
from mqreplay.lake.row_filter import Days
from mqreplay.quality.conditions import COUNTED_BY_RECORD, KINDS_OF_TABLE
from mqreplay.quality.suite import CHAINED
from mqreplay.quality.tables import Tables
from mqreplay.words.time_span import EPOCH, ONE_DAY

FRESH = "expect_table_to_be_fresh"
BREAKS = "gold.offset_continuity"


@dataclass(frozen=True)
class Evidence:
    """The evidence of one cluster: its known brokers, and the end of its recordings (epoch ms; null: no file)."""

    known_brokers: list[str]
    recording_end_ms: int | None

    @property
    def end(self) -> dt.datetime:
        """Return the end of its recordings; 1970 if there are none."""
        return EPOCH + dt.timedelta(milliseconds=self.recording_end_ms or 0)

    def parameters(self, silver_rows: dict[str, int]) -> dict[str, Any]:
        """Return suite parameters by name; ``silver_rows`` counts the rows of each table."""
        return {
            "known_brokers": self.known_brokers,
            "recording_end_ms": self.recording_end_ms,
            "silver_rows": silver_rows,
        }


Newest = Callable[[str, str, Days], int | None]


def gather(tables: Tables, day: dt.date | None, newest_in_spark: Newest = lambda name, column, days: None) -> Evidence:
    """Read the evidence; recordings of a ``day`` end at its end at the latest.

    ``newest_in_spark`` returns the newest instant (epoch ms) of a table's column on some days, if the rows stay there.
    """
    brokers = tables.rows("silver.broker", ["broker_name"])
    routes = f"SELECT unnest(broker_datas) AS broker FROM ({tables.rows('silver.route', ['broker_datas'])})"
    names = tables.run(f"{brokers} UNION SELECT broker.broker_name FROM ({routes})")
    end_ms, goes_on = _end(tables, day)
    if goes_on and day is not None:
        # A file that continues after the day does not show a pause: the day's own rows do.
        asked = {name: fresh_by(contract) for name, contract in tables.contracts.items()}
        dated = [(name, column, Days(day, day)) for name, column in asked.items() if column]
        newest = [_newest(tables, *of) if tables.is_here(of[0], of[2]) else newest_in_spark(*of) for of in dated]
        end_ms = max((ms for ms in newest if ms is not None), default=None)
    return Evidence(sorted(name for (name,) in names if name is not None), end_ms)


def _end(tables: Tables, day: dt.date | None) -> tuple[int | None, bool]:
    """Return the end of the files that cover the day (epoch ms), and whether one continues after it."""
    files = tables.rows("bronze.source_file", ["first_ts", "last_ts"])
    if day is None:
        return tables.run(f"SELECT epoch_ms(max(last_ts)) FROM ({files})")[0][0], False
    begin, end = (f"TIMESTAMP {literal(str(midnight))}" for midnight in (day, day + ONE_DAY))
    query = f"""SELECT epoch_ms(max(last_ts)), coalesce(bool_or(last_ts >= {end}), false) FROM ({files})
        WHERE first_ts < {end} AND last_ts >= {begin}"""
    end_ms, goes_on = tables.run(query)[0]
    return end_ms, goes_on


def _newest(tables: Tables, name: str, column: str, days: Days) -> int | None:
    """Return the newest instant (epoch ms) of the table's column on some days; None without rows."""
    newest: int | None = tables.run(f"SELECT epoch_ms(max({column})) FROM ({tables.rows(name, [column], days)})")[0][0]
    return newest


def fresh_by(contract: Contract) -> str | None:
    """Return the freshness column of the table, if it has one."""
    return next((rule["kwargs"]["column"] for rule in contract.quality if rule["type"] == FRESH), None)


def is_chained(contract: Contract) -> bool:
    """Return whether the table's rows form chains across days."""
    return any(rule["type"] == CHAINED for rule in contract.quality)


def before_in_chain(tables: Tables, columns: list[str], day: dt.date) -> str:
    """Return a query for the start of the day's chains: the last row of each before the day."""
    own = [*CHAIN, *OFFSET_SOURCE, "previous_offset", "new_offset", "from_ts", "to_ts"]
    kept = tables.run(f"SELECT max(day) FROM ({tables.rows(KEPT, ['day'], Days(last=day))})")[0][0]
    before = tables.rows(OFFSET_CHANGES, own, Days(kept, day - ONE_DAY))
    if kept is not None:
        before = f"{before} UNION ALL {tables.rows(KEPT, own, Days(kept, kept))}"
    last = f"""SELECT unnest(arg_max(offset_row, to_ts)) FROM (SELECT r AS offset_row, to_ts FROM ({before}) r)
        GROUP BY {", ".join(f"offset_row.{name}" for name in (*CHAIN, *OFFSET_SOURCE))}"""
    today = tables.rows(OFFSET_CHANGES, CHAIN, Days(day, day))
    # The file of a row is not needed.
    values = {"day": "CAST(to_ts AS DATE)", "source_digest": "''"}
    shown = ", ".join(f"{values.get(name, name)} AS {name}" for name in columns)
    return f"SELECT {shown} FROM ({last}) SEMI JOIN ({today}) USING ({', '.join(CHAIN)})"


def rewinds_without_cause(tables: Tables, days: Days) -> str:
    """Return a query for the rewinds whose cause the replay does not know, with the key of their offset change."""
    columns = ["broker_name", "broker_id", "topic", "consumer_group", "queue_id", "to_ts", "kind", "cause"]
    if BREAKS in tables.contracts:
        breaks = tables.rows(BREAKS, columns, days)
    else:  # the changes of offsets are validated alone
        breaks = f"SELECT {', '.join(f'NULL AS {name}' for name in columns)} WHERE false"
    source = "broker_name || '-' || broker_id AS source_name"
    return f"""SELECT {source}, topic, consumer_group, queue_id, to_ts FROM ({breaks})
        WHERE kind = 'rewind' AND cause = 'unknown'"""


def silver_rows(tables: Tables, but: Collection[dt.date]) -> dict[str, int]:
    """Return the number of rows (or records) of each silver table with days on other days than these."""
    none = ", ".join(["NULL", *(f"DATE {literal(str(day))}" for day in but)])
    counts = {}
    for name in KINDS_OF_TABLE:
        if name not in tables.contracts or not tables.contracts[name].is_dated:
            continue
        if name in COUNTED_BY_RECORD:
            rows = tables.rows(name, ["record_id"])
            counts[name] = tables.count(f"{rows} AND NOT coalesce(day IN ({none}), false)", "record_id")
        else:
            counts[name] = tables.count_outside(name, but)
    return counts
