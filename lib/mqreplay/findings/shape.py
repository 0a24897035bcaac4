"""The shape of a finding: every family makes the same columns, so that one table holds them all."""

from __future__ import annotations

import datetime as dt
import hashlib

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
EVIDENCE = pl.List(pl.Struct({"table_name": pl.String, "key": pl.String}))
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
}
# What gold.finding does not keep: families say by it what their evidence says about the cause, see causes.py.
HIDDEN: dict[str, pl.DataType] = {
    "cause_id": pl.String(),  # the cause by the evidence; empty: none; null: time and place decide
    "redelivered": pl.Int64(),  # messages that the group received more than once
}
SCHEMA |= HIDDEN
EVIDENCE_ROWS = 50  # keys kept with a finding; the summary says how many rows there are in all


def finding(
    rows: pl.DataFrame,
    kind: FindingKind,
    cluster: str,
    *,
    severity: str | pl.Expr,
    summary: pl.Expr,
    advice: str | pl.Expr | None = None,
    confidence: float | None = None,
) -> pl.DataFrame:
    """Return one finding a row, of SCHEMA's columns.

    ``rows`` has from_ts, to_ts, evidence and those columns of PLACE and HIDDEN that are known. ``severity`` and
    ``advice`` are literals or expressions. ``advice`` and ``confidence`` are the kind's unless given.
    """
    known = [
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(of).alias(name)
        for name, of in (PLACE | HIDDEN).items()
    ]
    told = {
        "kind": pl.lit(kind.name),
        "severity": pl.lit(severity) if isinstance(severity, str) else severity,
        "confidence": pl.lit(kind.confidence if confidence is None else confidence),
        "summary": summary,
        "advice": advice if isinstance(advice, pl.Expr) else pl.lit(kind.advice if advice is None else advice),
    }
    named = [expr.alias(name) for name, expr in told.items()]
    made = rows.select(*known, "from_ts", "to_ts", "evidence", *named)
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


def key_text(*names: str) -> pl.Expr:
    """Return the key of each row as text: ``name=value name=value``; columns that are null are left out."""
    parts = [pl.lit(f"{name}=") + pl.col(name).cast(pl.String) for name in names]
    return pl.concat_str(parts, separator=" ", ignore_nulls=True)


def evidence(table: str, *key: str) -> pl.Expr:
    """Return an aggregate, ``evidence``: table and key of a group's rows, in order, at most EVIDENCE_ROWS of them."""
    return evidence_rows(table, key_text(*key).unique().sort().head(EVIDENCE_ROWS).implode())


def evidence_rows(table: str, keys: pl.Expr) -> pl.Expr:
    """Return evidence made of a list of keys (text) in each row; at most EVIDENCE_ROWS of them."""
    row = pl.struct(pl.lit(table).alias("table_name"), pl.element().alias("key"))
    return keys.list.head(EVIDENCE_ROWS).list.eval(row).alias("evidence")


def instant_text(column: str) -> pl.Expr:
    """Return an instant as text in UTC, as Spark casts it: a fraction of a second only where there is one."""
    text = pl.col(column).dt.strftime("%Y-%m-%d %H:%M:%S%.6f")
    return text.str.strip_chars_end("0").str.strip_chars_end(".")


def one_or_none(name: str) -> pl.Expr:
    """Return an aggregate: the value, where all of a group's rows that have one share it, else null."""
    known = pl.col(name).drop_nulls()
    return pl.when(known.n_unique() == 1).then(known.first()).alias(name)


def counted(n: str | pl.Expr, what: str) -> pl.Expr:
    """Return so many, in words: '1 queue', '8 queues'; null where the number is."""
    number = pl.col(n) if isinstance(n, str) else n
    return number.cast(pl.String) + pl.when(number == 1).then(pl.lit(f" {what}")).otherwise(pl.lit(f" {what}s"))


def seconds(from_ts: str, to_ts: str) -> pl.Expr:
    """Return the seconds between two instants, counted in whole milliseconds."""
    return (pl.col(to_ts).dt.epoch("ms") - pl.col(from_ts).dt.epoch("ms")) / 1000


def none() -> pl.DataFrame:
    """Return no findings."""
    return pl.DataFrame(schema=SCHEMA)
