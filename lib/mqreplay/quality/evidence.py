"""What expectations of one table must know of others, or of other days: passed to the suites as parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from mqreplay.ingest.standing import CHAIN, CHANGES, PLACE
from mqreplay.ingest.standing import TABLE as KEPT
from mqreplay.lake.contract import Contract
from mqreplay.lake.duckdb_database import literal
from mqreplay.quality.expectations.rows_conserved import COUNTED_BY_RECORD, KINDS_OF_TABLE
from mqreplay.quality.suite import CHAINED
from mqreplay.quality.tables import Days, Tables

FRESH = "expect_table_to_be_fresh"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Evidence:
    """Of one cluster: the brokers it is known to have, and when its recordings end (epoch ms; null: no file)."""

    known_brokers: list[str]
    recording_end_ms: int | None

    @property
    def end(self) -> dt.datetime:
        """When its recordings end, as an instant; 1970 where there are none."""
        return EPOCH + dt.timedelta(milliseconds=self.recording_end_ms or 0)

    def parameters(self, silver_rows: dict[str, int], newest_before_ms: int | None) -> dict[str, Any]:
        """Suite parameters by name. ``silver_rows`` counts the rows of each table, ``newest_before_ms`` is of one."""
        return {
            "known_brokers": self.known_brokers,
            "recording_end_ms": self.recording_end_ms,
            "silver_rows": silver_rows,
            "newest_before_ms": newest_before_ms,
        }


def gather(tables: Tables, day: dt.date | None) -> Evidence:
    """Read the evidence; recordings of a ``day`` end with it at the latest."""
    brokers = tables.rows("silver.broker", ["broker_name"])
    routes = f"SELECT unnest(broker_datas) AS broker FROM ({tables.rows('silver.route', ['broker_datas'])})"
    names = tables.run(f"{brokers} UNION SELECT broker.broker_name FROM ({routes})")
    end_ms, goes_on = _end(tables, day)
    if goes_on and day is not None:
        # A file that goes on after the day does not say when it paused: the day's own rows do.
        asked = {name: fresh_by(contract) for name, contract in tables.contracts.items()}
        newest = [_newest(tables, name, column, Days(day, day)) for name, column in asked.items() if column]
        end_ms = max((ms for ms in newest if ms is not None), default=None)
    return Evidence(sorted(name for (name,) in names if name is not None), end_ms)


def _end(tables: Tables, day: dt.date | None) -> tuple[int | None, bool]:
    """Return when files that speak of the day end (epoch ms), and whether one goes on after it."""
    files = tables.rows("bronze.source_file", ["first_ts", "last_ts"])
    if day is None:
        return tables.run(f"SELECT epoch_ms(max(last_ts)) FROM ({files})")[0][0], False
    begin, end = (f"TIMESTAMP {literal(str(midnight))}" for midnight in (day, day + DAY))
    query = f"""SELECT epoch_ms(max(last_ts)), coalesce(bool_or(last_ts >= {end}), false) FROM ({files})
        WHERE first_ts < {end} AND last_ts >= {begin}"""
    end_ms, goes_on = tables.run(query)[0]
    return end_ms, goes_on


def _newest(tables: Tables, name: str, column: str, days: Days) -> int | None:
    """Return the newest instant (epoch ms) of the table's column on some days; None where it has none."""
    newest: int | None = tables.run(f"SELECT epoch_ms(max({column})) FROM ({tables.rows(name, [column], days)})")[0][0]
    return newest


def newest_before(tables: Tables, name: str, day: dt.date) -> int | None:
    """Return the newest instant (epoch ms) before the day by which the table must be fresh; None where it has none."""
    column = fresh_by(tables.contracts[name])
    return (
        None
        if column is None or not tables.contracts[name].by_day
        else _newest(tables, name, column, Days(last=day - DAY))
    )


def fresh_by(contract: Contract) -> str | None:
    """The column by which the table must be fresh, if it must."""
    return next((rule["kwargs"]["column"] for rule in contract.quality if rule["type"] == FRESH), None)


def is_chained(contract: Contract) -> bool:
    """Whether the table's rows form chains that go on from day to day."""
    return any(rule["type"] == CHAINED for rule in contract.quality)


def before_in_chain(tables: Tables, columns: list[str], day: dt.date) -> str:
    """Return a query of the rows from which the day's chains go on: of each the last one before the day."""
    own = [*CHAIN, *PLACE, "previous_offset", "new_offset", "from_ts", "to_ts"]
    kept = tables.run(f"SELECT max(day) FROM ({tables.rows(KEPT, ['day'], Days(last=day))})")[0][0]
    before = tables.rows(CHANGES, own, Days(kept, day - DAY))
    if kept is not None:
        before = f"{before} UNION ALL {tables.rows(KEPT, own, Days(kept, kept))}"
    last = f"""SELECT unnest(arg_max(offset_row, to_ts)) FROM (SELECT r AS offset_row, to_ts FROM ({before}) r)
        GROUP BY {", ".join(f"offset_row.{name}" for name in (*CHAIN, *PLACE))}"""
    today = tables.rows(CHANGES, CHAIN, Days(day, day))
    # Which file a row came from is not asked.
    given = {"day": "CAST(to_ts AS DATE)", "source_digest": "''"}
    shown = ", ".join(f"{given.get(name, name)} AS {name}" for name in columns)
    return f"SELECT {shown} FROM ({last}) SEMI JOIN ({today}) USING ({', '.join(CHAIN)})"


def silver_rows(tables: Tables, but: Collection[dt.date]) -> dict[str, int]:
    """Return how many rows (or records) each silver table with days has on other days than those."""
    none = ", ".join(["NULL", *(f"DATE {literal(str(day))}" for day in but)])
    counts = {}
    for name in KINDS_OF_TABLE:
        if name in tables.contracts and tables.contracts[name].by_day:
            column = "record_id" if name in COUNTED_BY_RECORD else None
            rows = tables.rows(name, [column] if column else ["day"])
            counts[name] = tables.count(f"{rows} AND NOT coalesce(day IN ({none}), false)", column)
    return counts
