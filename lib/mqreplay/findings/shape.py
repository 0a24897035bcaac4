"""The shape of a finding: every kind has the same columns, so that one table holds them all."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from mqreplay.evidence.frames import ms
from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.texts import ADVICE_FORM, FINISHED, FORM, in_english_of, texts_of, values_of, written_summary
from mqreplay.language.language import in_english
from mqreplay.words.keys import TOPIC_QUEUE

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
    "values": pl.String(),  # JSON: what the summary and the advice are written with
    "evidence": EVIDENCE,
    "evidence_count": pl.Int64(),
}
# Columns that gold.finding does not keep: what the evidence of a finding shows about its cause, see causes.py.
HIDDEN: dict[str, pl.DataType] = {
    "cause_id": pl.String(),  # the cause by the evidence; empty: none; null: time and place decide
    "redelivered": pl.Int64(),  # messages that the group received more than once
}
SCHEMA |= HIDDEN
LASTED = "lasted_s"
QUEUES_NAMED = 16  # queues in a summary; more are counted
EVIDENCE_ROWS = 50  # rows of evidence kept with a finding; evidence_count is how many there are


def finding(
    rows: pl.DataFrame,
    kind: FindingKind,
    cluster: str,
    *,
    severity: str | pl.Expr,
    form: str = "",
    advice_form: str | pl.Expr = "",
    summary: pl.Expr | None = None,
    advice: str | pl.Expr | None = None,
    confidence: float | pl.Expr | None = None,
) -> pl.DataFrame:
    """Return one finding a row, of SCHEMA's columns.

    ``rows`` has from_ts, to_ts, evidence and those columns of PLACE and HIDDEN that are known. The first EVIDENCE_ROWS
    rows of evidence are kept; evidence_count is the number of all, unless ``rows`` has a column with that name.
    ``severity``, ``advice_form`` and ``confidence`` are literals or expressions; a kind has a confidence of its own.

    ``form`` and ``advice_form`` name forms of the kind's text file. Their fields are columns of ``rows``: these become
    the ``values`` of the finding. LASTED, whole seconds from from_ts to to_ts, need not be there. A kind without a text
    file gives ``summary`` and ``advice`` themselves, in English.
    """
    if rows.is_empty():
        return none()
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
        "evidence": pl.col("evidence").list.head(EVIDENCE_ROWS),
        "evidence_count": count,
    }
    named = [expr.alias(name) for name, expr in columns.items()]
    placed = rows.select(*known, "from_ts", "to_ts", *named)
    if summary is None:
        worded = _worded(rows, kind, form, advice_form, placed.select(*PLACE))
    else:
        usual = kind.text("advice") if advice is None else advice
        texts = {"summary": summary, "advice": usual if isinstance(usual, pl.Expr) else pl.lit(usual)}
        worded = [(*each, json_of({FINISHED: each[0]})) for each in rows.with_columns(**texts).select(*texts).rows()]
    ids = [_finding_id(kind.name, cluster, row) for row in placed.select(*PLACE, ms("from_ts")).rows()]
    text_columns = pl.DataFrame(worded, dict.fromkeys(("summary", "advice", "values"), pl.String), orient="row")
    made = pl.concat([placed, text_columns], how="horizontal").with_columns(pl.Series("finding_id", ids, pl.String))
    return made.select([pl.col(name).cast(of) for name, of in SCHEMA.items()])


def _worded(
    rows: pl.DataFrame, kind: FindingKind, form: str, advice_form: str | pl.Expr, places: pl.DataFrame
) -> list[tuple[str, str, str]]:
    """Return summary, advice and values of each row. Raises ValueError if a column of the form is missing."""
    texts = texts_of(kind.name)
    names = texts.form("summary", form).names - PLACE.keys()
    if missing := names - {*rows.columns, LASTED}:
        raise ValueError(f"{kind.name}: the summary names what the rows do not have: {', '.join(sorted(missing))}")
    of_advice = {name for each in texts.names("advice") for name in texts.form("advice", each).names}
    names |= (of_advice & set(rows.columns)) - PLACE.keys()
    which = pl.lit(advice_form) if isinstance(advice_form, str) else advice_form
    more = [which.alias(ADVICE_FORM), pl.lit(form).alias(FORM)]
    more += [] if LASTED in rows.columns else [whole_seconds("from_ts", "to_ts").alias(LASTED)]
    valued = rows.with_columns(more).select(*sorted(names), ADVICE_FORM, FORM).iter_rows(named=True)
    worded = []
    for row, place in zip(valued, places.iter_rows(named=True), strict=True):
        values = {name: _plain(value) for name, value in row.items() if value not in (None, "")}
        worded.append((*in_english_of(kind.name, place | values), json_of(values)))
    return worded


def with_values(findings: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the findings with columns of theirs among their values: those that are not null."""
    summaries, values = findings["summary"].to_list(), findings["values"].to_list()
    rows = findings.select("kind", "summary", "values", *PLACE, *names).iter_rows(named=True)
    for number, row in enumerate(rows):
        more = {name: _plain(row[name]) for name in names if row[name] is not None}
        if more:
            known = (values_of(row) or {FINISHED: row["summary"]}) | more
            summaries[number] = written_summary(row["kind"], known, in_english())
            values[number] = json_of({name: value for name, value in known.items() if name not in PLACE})
    return findings.with_columns(
        pl.Series("summary", summaries, pl.String), pl.Series("values", values, pl.String)
    ).drop(names)


def json_of(values: Mapping[str, object]) -> str:
    """Return values as gold.finding has them."""
    return json.dumps(values, ensure_ascii=False)


def _plain(value: object) -> object:
    """Return a value without an instant."""
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, dt.datetime) else value


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


def with_stated_offsets(findings: pl.DataFrame, groups: Collection[str]) -> pl.DataFrame:
    """Return the findings; the evidence of these groups' offsets are answers to GET_CONSUME_STATS, not copies."""
    item = pl.element().struct.field
    key = {name: item(name) for name in ("consumer_group", "broker_name")}
    answer = evidence_row(pl.lit("silver.consume_stats"), key_of(key))
    is_copy = item("table_name") == "silver.offset_change"
    stated = pl.col("evidence").list.eval(pl.when(is_copy).then(answer).otherwise(pl.element())).list.unique()
    of_group = pl.col("consumer_group").is_in(sorted(groups)).fill_null(value=False)
    return findings.with_columns(pl.when(of_group).then(stated).otherwise("evidence").alias("evidence"))


def one_or_none(name: str) -> pl.Expr:
    """Return an aggregate: the value, where all of a group's rows that have one share it, else null."""
    known = pl.col(name).drop_nulls()
    return pl.when(known.n_unique() == 1).then(known.first()).alias(name)


def places(most: int | None = QUEUES_NAMED, names: Sequence[str] = TOPIC_QUEUE, text: str = "") -> tuple[pl.Expr, ...]:
    """Return aggregates, ``places``, the first ``most`` queues of a group's rows, and ``more_queues``, how many more.

    ``names`` are the columns of a place. Places are in the order of their values, or of the ``text`` made of them.
    """
    item = pl.element().struct
    each = pl.struct(*names).unique()
    by = pl.element() if not text else pl.format(text, *map(item.field, names))
    ordered = each.implode().list.eval(pl.element().sort_by(by))
    if most is None:
        return (ordered.alias("places"),)
    more = each.len().cast(pl.Int64) - most
    return ordered.list.head(most).alias("places"), pl.when(more > 0).then(more).alias("more_queues")


def first_of(name: str, most: int) -> tuple[pl.Expr, pl.Expr]:
    """Return the first items of a list, and how many more there are, ``more_NAME``; null if there are none."""
    more = pl.col(name).list.len().cast(pl.Int64) - most
    return pl.col(name).list.head(most), pl.when(more > 0).then(more).alias(f"more_{name}")


def place_text(place: Iterable[object]) -> str:
    """Return the values of PLACE that are known as text.

    >>> place_text(["pay-group", "pay-topic", "broker-a", None, 0, None])
    'pay-group/pay-topic/broker-a/0'
    """
    return "/".join(str(value) for value in place if value is not None)


def seconds(from_ts: str, to_ts: str) -> pl.Expr:
    """Return the seconds between two instants, counted in whole milliseconds."""
    return (ms(to_ts) - ms(from_ts)) / 1000


def whole_seconds(from_ts: str, to_ts: str) -> pl.Expr:
    """Return the seconds between two instants, rounded."""
    return (ms(to_ts) - ms(from_ts) + 500) // 1000


def none() -> pl.DataFrame:
    """Return no findings."""
    return pl.DataFrame(schema=SCHEMA)
