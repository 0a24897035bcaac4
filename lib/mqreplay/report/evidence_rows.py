"""The rows of evidence that findings name, read from their tables and put into words."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import polars_schema
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.report.evidence_groups import EvidenceGroup, alike, groups_of, outcome
from mqreplay.report.evidence_words import Wording, what, who, wording_of
from mqreplay.words.time_span import ONE_DAY

LIMIT = 50  # rows of a finding
EFFECTS = "gold.finding"  # items of evidence that are other findings
AROUND = dt.timedelta(minutes=1)  # rows whose key has no instant are those near the finding
FIRST, LAST = (end.replace(tzinfo=dt.UTC) for end in (dt.datetime.min, dt.datetime.max))
COMMON_COLUMNS = frozenset({"cluster", "day", "source_digest"})
FINDING_COLUMN = "_finding_id"


@dataclass(frozen=True)
class EvidenceRow:
    """A row of evidence. ``ts`` is in UTC; None for a table without an instant. ``row`` has columns of the table."""

    table_name: str
    ts: dt.datetime | None
    who: str
    what: str
    row: dict[str, Any]


@dataclass
class EvidenceRows:
    """Rows of evidence of one finding, in time order, and how many there are without a limit.

    ``total`` counts the ``unnamed`` rows too: those that the finding counts without keeping their keys. ``groups`` are
    of all other rows, the largest first; only where whole rows are read.
    """

    rows: list[EvidenceRow] = field(default_factory=list)
    total: int = 0
    unnamed: int = 0
    groups: list[EvidenceGroup] = field(default_factory=list)

    @property
    def more(self) -> int:
        """Return the number of rows that are not in ``rows``."""
        return self.total - len(self.rows)


@dataclass(frozen=True)
class _Key:
    """One item of a finding's evidence: the finding, the values of the key, and the time near the finding."""

    finding_id: str
    values: tuple[Any, ...]
    begin: dt.datetime
    end: dt.datetime


def evidence_of(
    warehouse: Warehouse,
    cluster: str,
    findings: Iterable[Mapping[str, Any]],
    limit: int = LIMIT,
    whole: bool = False,
    words: Language | None = None,
) -> dict[str, EvidenceRows]:
    """Return the rows of evidence of each finding, by finding_id: at most ``limit`` each.

    ``findings`` are rows of gold.finding of one cluster, as dicts. Each table is read once for all of them. Rows have
    the columns that their text needs, or all columns of their table (``whole``). Their texts are in the language
    ``words``; None: English.
    """
    words = words or in_english()
    found: dict[str, EvidenceRows] = {}
    keys: dict[tuple[str, tuple[str, ...]], list[_Key]] = defaultdict(list)
    for finding in findings:
        items = [each for each in finding["evidence"] or [] if each["table_name"] != EFFECTS]
        left_out = (finding["evidence_count"] or 0) - len(items)
        found[finding["finding_id"]] = EvidenceRows(total=max(0, left_out), unnamed=max(0, left_out))
        begin, end = _shifted(finding["from_ts"], -AROUND, FIRST), _shifted(finding["to_ts"], AROUND, LAST)
        for each in items:
            key = {name: value for name, value in each.items() if name != "table_name" and value is not None}
            if key:
                values = tuple(_utc(value) for value in key.values())
                keys[each["table_name"], tuple(key)].append(_Key(finding["finding_id"], values, begin, end))
    for (table, names), wanted in sorted(keys.items(), key=lambda item: item[0]):
        if table not in warehouse.contracts or not warehouse.exists(table):
            continue
        unknown = sorted(set(names) - set(warehouse.contracts[table].arrow_schema.names))
        if unknown:  # of a finding of a user's package
            _add_unknown(found, table, unknown, wanted, words)
        else:
            _add_rows(found, _Table(warehouse, cluster, table, names, whole), wanted, limit, words)
    for each in found.values():
        each.groups.sort(key=lambda group: (-group.count, group.first_ts or LAST, group.table_name))
        each.rows.sort(key=lambda row: (row.ts or LAST, row.table_name))  # stable: rows of a table are sorted
        del each.rows[limit:]
    return found


def sufficient(rows: Sequence[EvidenceRow], begin: dt.datetime | None, limit: int) -> list[EvidenceRow]:
    """Return at most ``limit`` rows, in time order: of each outcome those nearest to the begin of the finding.

    Rare outcomes come first, so that a small limit shows what happened, and not one kind of row many times.
    """
    if len(rows) <= limit:
        return list(rows)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        groups[row.table_name, alike(outcome(wording_of(row.table_name, list(row.row)), row.row))].append(number)
    at = FIRST if begin is None else _utc(begin)
    ranked: list[tuple[int, int, int]] = []
    for numbers in groups.values():
        numbers.sort(key=lambda number: abs((rows[number].ts or at) - at))  # stable: the earlier of two
        ranked += [(rank, len(numbers), number) for rank, number in enumerate(numbers)]
    shown = sorted(number for _, _, number in sorted(ranked)[:limit])
    return [rows[number] for number in shown]


class _Table:
    """The rows of one table that keys of the same columns name."""

    def __init__(self, warehouse: Warehouse, cluster: str, name: str, names: Sequence[str], whole: bool) -> None:
        self.name = name
        self.names = list(names)
        self._warehouse, self._cluster = warehouse, cluster
        self._contract = warehouse.contracts[name]
        self._unique = self.names == ["record_id"]
        self._types = polars_schema(self._contract.arrow_schema)
        columns = self._types.names()
        self.wording: Wording = wording_of(name, columns)
        self.order = [name for name in (self.wording.instant, *self._contract.key) if name]
        needed = set(columns) - COMMON_COLUMNS if whole else self.wording.columns
        shown = [column for column in columns if column in needed]
        self.columns = list(dict.fromkeys([*shown, *self.order, *self.names]))
        self.shown = shown
        self.whole = whole
        self.near = bool(self.wording.instant) and not self._unique and self.wording.instant not in self.names

    def rows(self, keys: Sequence[_Key]) -> pl.DataFrame:
        """Return the rows that the keys name: FINDING_COLUMN and ``columns``, sorted by finding and instant."""
        rows = self._read(keys, self._days(keys))
        if self._unique:
            there = set(rows["record_id"])
            elsewhere = [key for key in keys if key.values[0] not in there]
            if elsewhere and self._days(keys) is not None:
                rows = pl.concat([rows, self._read(elsewhere, None)])
        return rows.unique([FINDING_COLUMN, *self._contract.key], keep="any").sort(
            FINDING_COLUMN, *self.order, nulls_last=True
        )

    def _days(self, keys: Sequence[_Key]) -> tuple[dt.date, dt.date] | None:
        """Return the days that may have the rows; None for all. A gold row has the day that was replayed."""
        begin, end = min(key.begin for key in keys), max(key.end for key in keys)
        if begin == FIRST or end == LAST or not self._contract.is_dated:
            return None
        if self._unique:
            return _shifted(begin, -ONE_DAY, FIRST).date(), _shifted(end, ONE_DAY, LAST).date()
        near = self.wording.instant not in self.names and self.name.startswith("silver.")
        return (begin.date(), end.date()) if near else None

    def _read(self, keys: Sequence[_Key], days: tuple[dt.date, dt.date] | None) -> pl.DataFrame:
        near_ts = pl.Datetime("us", "UTC")
        types: dict[str, pl.DataType] = {FINDING_COLUMN: pl.String(), "_begin": near_ts, "_end": near_ts}
        types |= {name: of for name, of in self._types.items() if name in self.names}
        wanted = pl.DataFrame(
            [(key.finding_id, key.begin, key.end, *key.values) for key in keys],
            {name: types[name] for name in (FINDING_COLUMN, "_begin", "_end", *self.names)},
            orient="row",
        )
        # A join skips nothing in a file: bounds of the values do.
        rows = self._warehouse.read(self.name, RowFilter(self._cluster, between=days))
        rows = rows.filter(pl.col(name).is_in(wanted[name].unique().to_list()) for name in self.names)
        if self.near:
            rows = rows.filter(self._within(pl.lit(wanted["_begin"].min()), pl.lit(wanted["_end"].max())))
        named = rows.select(self.columns).join(wanted.lazy(), on=self.names)
        if self.near:
            named = named.filter(self._within(pl.col("_begin"), pl.col("_end")))
        return named.select(FINDING_COLUMN, *self.columns).collect()

    def _within(self, begin: pl.Expr, end: pl.Expr) -> pl.Expr:
        """Return whether a row is in the time from ``begin`` to ``end``, at least in part."""
        ended = pl.col(self.wording.until or self.wording.instant)
        return (pl.col(self.wording.instant) <= end) & (ended >= begin)


def _add_rows(found: dict[str, EvidenceRows], table: _Table, keys: Sequence[_Key], limit: int, words: Language) -> None:
    rows = table.rows(keys)
    if table.whole:
        begins = {key.finding_id: key.begin + AROUND for key in keys if key.begin != FIRST}
        for finding_id, of_finding in rows.group_by(FINDING_COLUMN):
            begin = begins.get(str(finding_id[0]), FIRST)
            groups = groups_of(table.name, table.wording, of_finding, begin, words, is_near=table.near)
            found[str(finding_id[0])].groups += groups
    for finding_id, count in rows.group_by(FINDING_COLUMN).len().rows():
        found[finding_id].total += count
    for row in rows.group_by(FINDING_COLUMN, maintain_order=True).head(limit).iter_rows(named=True):
        ts = row[table.wording.instant] if table.wording.instant else None
        shown = {name: row[name] for name in table.shown}
        about, text = who(row, words), what(table.wording, row, words)
        found[row[FINDING_COLUMN]].rows.append(EvidenceRow(table.name, ts, about, text, shown))


def _add_unknown(
    found: dict[str, EvidenceRows], table: str, columns: Sequence[str], keys: Sequence[_Key], words: Language
) -> None:
    template = "evidence that cannot be read: the table has no column {columns}"
    text = words.filled(template, columns=", ".join(columns))
    for finding_id in dict.fromkeys(key.finding_id for key in keys):
        found[finding_id].total += 1
        found[finding_id].rows.append(EvidenceRow(table, None, "", text, {}))


def _utc(value: Any) -> Any:
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo is None else value


def _shifted(ts: dt.datetime | None, by: dt.timedelta, otherwise: dt.datetime) -> dt.datetime:
    """Return the instant in UTC, shifted by a duration; ``otherwise`` for none and beyond what Python has."""
    try:
        return otherwise if ts is None else _utc(ts) + by
    except OverflowError:
        return otherwise
