"""The shape of a finding: every kind has the same columns, so that one table holds them all."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping

import polars as pl

from mqreplay.findings.kind import FindingKind

INSTANT = pl.Datetime("us", "UTC")
PLACE: dict[str, pl.DataType] = {
    "consumer_group": pl.String(),
    "topic": pl.String(),
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),
    "queue_id": pl.Int32(),
    "client_id": pl.String(),
}
EVIDENCE_KEY: dict[str, pl.DataType] = {  # columns that name a row of evidence; those of its table that do not are null
    "finding_id": pl.String(),
    "record_id": pl.String(),
    "source_name": pl.String(),
    **PLACE,
    "kind": pl.String(),
    "ts": INSTANT,
    "to_ts": INSTANT,
    "path": pl.String(),
}
EVIDENCE = pl.List(pl.Struct({"table_name": pl.String(), **EVIDENCE_KEY}))
SCHEMA: dict[str, pl.DataType] = {
    "finding_id": pl.String(),
    "kind": pl.String(),
    "severity": pl.String(),
    **PLACE,
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "confidence": pl.Float64(),
    "summary": pl.String(),
    "advice": pl.String(),
    "evidence": EVIDENCE,
    "evidence_count": pl.Int64(),
}
# Columns that gold.finding does not keep: what the evidence of a finding shows about its cause, see causes.py.
HIDDEN: dict[str, pl.DataType] = {
    "cause_id": pl.String(),  # the cause by the evidence; empty: none; null: time and place decide
    "redelivered": pl.Int64(),  # messages that the group received more than once
}
SCHEMA |= HIDDEN
HOUR, DAY = 3_600, 86_400  # seconds
QUEUES_NAMED = 16  # queues in a summary; more are counted
EVIDENCE_ROWS = 50  # rows of evidence kept with a finding; evidence_count is how many there are


def finding(
    rows: pl.DataFrame,
    kind: FindingKind,
    cluster: str,
    *,
    severity: str | pl.Expr,
    summary: pl.Expr,
    advice: str | pl.Expr | None = None,
    confidence: float | pl.Expr | None = None,
) -> pl.DataFrame:
    """Return one finding a row, of SCHEMA's columns.

    ``rows`` has from_ts, to_ts, evidence and those columns of PLACE and HIDDEN that are known. The first EVIDENCE_ROWS
    rows of evidence are kept; evidence_count is the number of all, unless ``rows`` has a column with that name.
    ``severity``, ``advice`` and ``confidence`` are literals or expressions. The kind has defaults of the last two.
    """
    count = pl.col("evidence_count") if "evidence_count" in rows.columns else pl.col("evidence").list.len()
    known = [
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(of).alias(name)
        for name, of in (PLACE | HIDDEN).items()
    ]
    certainty = kind.confidence if confidence is None else confidence
    columns = {
        "kind": pl.lit(kind.name),
        "severity": pl.lit(severity) if isinstance(severity, str) else severity,
        "confidence": certainty if isinstance(certainty, pl.Expr) else pl.lit(certainty),
        "summary": summary,
        "advice": advice if isinstance(advice, pl.Expr) else pl.lit(kind.advice if advice is None else advice),
        "evidence": pl.col("evidence").list.head(EVIDENCE_ROWS),
        "evidence_count": count,
    }
    named = [expr.alias(name) for name, expr in columns.items()]
    made = rows.select(*known, "from_ts", "to_ts", *named)
    ids = [_finding_id(kind.name, cluster, row) for row in made.select(*PLACE, pl.col("from_ts").dt.epoch("ms")).rows()]
    return made.with_columns(pl.Series("finding_id", ids, pl.String)).select(
        [pl.col(name).cast(of) for name, of in SCHEMA.items()]
    )


def _finding_id(kind: str, cluster: str, place: tuple[object, ...]) -> str:
    """The same finding has the same id in every replay of the night."""
    parts = [kind, cluster, *("" if value is None else str(value) for value in place)]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def that_reach(findings: pl.DataFrame, begin: dt.datetime, lost_s: int) -> pl.DataFrame:
    """Return the findings that go on after an instant, or are known only after it: others are of the day before.

    A lost consumer is known once it has been silent for ``lost_s`` seconds and was not heard of in as many more.
    """
    known_ts = pl.col("from_ts") + dt.timedelta(seconds=2 * lost_s)
    known_later = (pl.col("kind") == "consumer_lost") & (known_ts >= begin)
    return findings.filter((pl.coalesce("to_ts", "from_ts") >= begin) | known_later)


def row_key(*names: str) -> pl.Expr:
    """Return the key of each row, ``key``: a struct of EVIDENCE_KEY's columns, all but those named null."""
    return key_of({name: pl.col(name) for name in names})


def record_key(record_ids: pl.Expr) -> pl.Expr:
    """Return the key of rows with these record ids; see `row_key`."""
    return key_of({"record_id": record_ids})


def key_of(values: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the key with these values, by their columns; see `row_key`."""
    typed = [values.get(name, pl.lit(None)).cast(of).alias(name) for name, of in EVIDENCE_KEY.items()]
    return pl.struct(typed).alias("key")


def evidence(table: str, *key: str) -> pl.Expr:
    """Return an aggregate, ``evidence``: table and key of a group's rows, each once, in order."""
    return evidence_rows(table, row_key(*key).unique().sort().implode())


def evidence_rows(table: str, keys: pl.Expr) -> pl.Expr:
    """Return evidence made of a list of keys (see `row_key`) in each row."""
    return keys.list.eval(evidence_row(pl.lit(table), pl.element())).alias("evidence")


def evidence_row(table: pl.Expr, key: pl.Expr) -> pl.Expr:
    """Return a row of evidence, of EVIDENCE's items, made of the name of a table and a key (see `row_key`)."""
    return pl.struct(table.alias("table_name"), *(key.struct.field(name) for name in EVIDENCE_KEY))


def rows_of(table: str) -> pl.Expr:
    """Return the evidence of record_ids: of the table, or of the one that the id begins with."""
    of_other = pl.element().str.contains(" ", literal=True)
    named = pl.when(of_other).then(pl.element().str.extract("^([^ ]+) ")).otherwise(pl.lit(table))
    record_id = pl.when(of_other).then(pl.element().str.extract(" (.*)$")).otherwise(pl.element())
    return pl.col("record_ids").list.eval(evidence_row(named, record_key(record_id))).alias("evidence")


def one_or_none(name: str) -> pl.Expr:
    """Return an aggregate: the value, where all of a group's rows that have one share it, else null."""
    known = pl.col(name).drop_nulls()
    return pl.when(known.n_unique() == 1).then(known.first()).alias(name)


def places() -> pl.Expr:
    """Return an aggregate, ``places``: the queues of a group's rows, in order: ["broker-a/0", "broker-a/1"]."""
    queue = pl.element().struct
    named = pl.format("{}/{}", queue.field("broker_name"), queue.field("queue_id"))
    return pl.struct("broker_name", "queue_id").unique().sort().implode().list.eval(named).alias("places")


def places_text() -> pl.Expr:
    """Return the queues of ``places`` as part of a sentence: ' (broker-a/0, broker-a/1)'."""
    more = pl.col("places").list.len().cast(pl.Int64) - QUEUES_NAMED
    rest = pl.when(more > 0).then(pl.lit(" and ") + counted(more, "more queue")).otherwise(pl.lit(""))
    return pl.format(" ({}{})", pl.col("places").list.head(QUEUES_NAMED).list.join(", "), rest)


def place_text(place: Iterable[object]) -> str:
    """Return the values of PLACE that are known as text.

    >>> place_text(["pay-group", "pay-topic", "broker-a", None, 0, None])
    'pay-group/pay-topic/broker-a/0'
    """
    return "/".join(str(value) for value in place if value is not None)


def counted(n: str | pl.Expr, what: str) -> pl.Expr:
    """Return a number with its noun: '1 queue', '8 queues'; null where the number is."""
    number = pl.col(n) if isinstance(n, str) else n
    return number.cast(pl.String) + pl.when(number == 1).then(pl.lit(f" {what}")).otherwise(pl.lit(f" {what}s"))


def seconds(from_ts: str, to_ts: str) -> pl.Expr:
    """Return the seconds between two instants, counted in whole milliseconds."""
    return (pl.col(to_ts).dt.epoch("ms") - pl.col(from_ts).dt.epoch("ms")) / 1000


def whole_seconds(from_ts: str, to_ts: str) -> pl.Expr:
    """Return the time between two instants as text: '95 s', '2 h 5 min' and, from two days on, '115 d 3 h'."""
    s = (pl.col(to_ts).dt.epoch("ms") - pl.col(from_ts).dt.epoch("ms") + 500) // 1000
    minutes = pl.format("{} h {} min", s // HOUR, s % HOUR // 60)
    hours = pl.format("{} d {} h", s // DAY, s % DAY // HOUR)
    return pl.when(s < 2 * HOUR).then(pl.format("{} s", s)).when(s < 2 * DAY).then(minutes).otherwise(hours)


def none() -> pl.DataFrame:
    """Return no findings."""
    return pl.DataFrame(schema=SCHEMA)
