"""What the page needs of a cluster's tables: small frames, each capped, with the count of all rows."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from mqreplay.lake.row_filter import of_last_day
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import ENGLISH, Language, language
from mqreplay.report.coverage import coverage
from mqreplay.report.cursor_states import group_order, json_text, parts_of
from mqreplay.report.data import CAP, MOST_FINDINGS, Listing, ReportData, Row
from mqreplay.report.evidence_rows import evidence_of
from mqreplay.report.pictures import pictures
from mqreplay.report.pictures.drawing import Picture
from mqreplay.report.pictures.night import NightSpan, touches
from mqreplay.report.what_if_commands import finding_commands
from mqreplay.report.window import Window
from mqreplay.words.severity import WORST_FIRST

if TYPE_CHECKING:
    from mqreplay.moment.night_states import NightStates

MOST_READ = 5_000  # findings and failures that are read at all: they are counted by severity, and one page shows CAP
SHOWN_EVIDENCE = 12  # rows of a finding's evidence
SHOWN_OF_MANY = 3  # the same, of more than MANY findings
MANY = 200
SHOWN_OF_MOST = 2  # the same, of more than MOST_AT_EASE findings
MOST_AT_EASE = 400
ROW_COUNTS = ("rows_in", "rows_out", "rows_quarantined", "rows_duplicate")


def collect(
    warehouse: Warehouse,
    cluster: str,
    since: dt.date | None = None,
    states: NightStates | None = None,
    lang: str = ENGLISH,
) -> ReportData:
    """Read what the page needs of the days from ``since`` on; of all days if it is None.

    ``states`` are those of the last night; without them, the page has no cursor and no parts. Pictures, parts and
    texts of evidence are made in the language ``lang``; other rows stay in English.
    """
    here = Window(warehouse, cluster, since).read
    files = _files(here("bronze.source_file"))
    findings, total = _findings(here("gold.finding"))
    shown = findings[:MOST_FINDINGS]
    first = [row["first_ts"] for row in files if row["first_ts"] is not None]
    last = [row["last_ts"] for row in files if row["last_ts"] is not None]
    words = language(lang)
    drawn = pictures(warehouse, cluster, shown, words, states)
    return ReportData(
        cluster=cluster,
        lang=lang,
        since=since,
        first_ts=min(first, default=None),
        last_ts=max(last, default=None),
        findings=findings,
        findings_total=total,
        evidence=evidence_of(warehouse, cluster, shown, _rows_shown(len(shown)), words=words),
        known_issues=_rows(of_last_day(here("gold.known_issue"), "finding_id", "issue").sort("finding_id", "issue")),
        coverage=coverage(warehouse, cluster, since),
        pictures=drawn,
        **({} if states is None else _night(states, shown, drawn, words)),
        judgements=_judgements(here("gold.judgement")),
        breaks=_breaks(here("gold.offset_continuity")),
        gaps=_gaps(here("gold.replay_gap")),
        quarantine=_quarantine(here("bronze.quarantine")),
        expectations=_expectations(here("gold.validation_result")),
        files=files,
        of_cluster=f" --cluster {shlex.quote(cluster)}" if _has_others(warehouse, cluster) else "",
    )


def _has_others(warehouse: Warehouse, cluster: str) -> bool:
    """Return whether commands need the name of the cluster (moment.instant.recorded)."""
    recorded = warehouse.read("bronze.source_file").filter(pl.col("first_ts").is_not_null())
    return not recorded.filter(pl.col("cluster") != cluster).head(1).collect().is_empty()


def _rows_shown(findings: int) -> int:
    """Return how many rows of evidence each finding shows: the page stays below 3 MB."""
    if findings <= MANY:
        return SHOWN_EVIDENCE
    return SHOWN_OF_MANY if findings <= MOST_AT_EASE else SHOWN_OF_MOST


def _findings(findings: pl.LazyFrame) -> tuple[list[Row], int]:
    worst = place_among("severity", WORST_FIRST)
    kept = of_last_day(findings, "finding_id").sort(worst, "from_ts", "kind", "finding_id").collect()
    return kept.head(MOST_READ).to_dicts(), kept.height


def _night(states: NightStates, findings: list[Row], drawn: Sequence[Picture], words: Language) -> dict[str, Any]:
    """Return the states of the night, its parts, and what-if commands of its findings."""
    night = NightSpan(states.night.first, states.night.last)
    here = [finding for finding in findings if touches(finding, night)]
    parts = parts_of(states, findings, [place for picture in drawn for place in picture.places], words)
    anchors = {part.place: part.anchor for part in parts}
    commands = {finding["finding_id"]: finding_commands(finding, states) for finding in here}
    return {
        "states": json_text(states, group_order(states, here), here, anchors, words),
        "parts": parts,
        "commands": {finding_id: made for finding_id, made in commands.items() if made},
    }


def _expectations(results: pl.LazyFrame) -> list[Row]:
    """Those that fail, day by day; then each of those that hold on every day, once."""
    of_rule = ("table_name", "expectation", "arguments")
    failed = results.filter(~pl.col("passed")).sort("day", *of_rule).head(MOST_READ)
    rules = results.group_by(of_rule).agg(pl.col("passed").all(), pl.col("description").max())
    return _rows(failed) + _rows(rules.filter("passed").sort(of_rule))


def _breaks(breaks: pl.LazyFrame) -> Listing:
    order = ("to_ts", "broker_name", "broker_id", "consumer_group", "topic", "queue_id", "kind")
    return _listing(breaks.drop("cluster", "day", "source_digest", strict=False).sort(order))


def _gaps(gaps: pl.LazyFrame) -> Listing:
    return _listing(gaps.drop("cluster").sort(-pl.col("decisions"), "decision", "evidence", "day", "gap_id"))


def _quarantine(refused: pl.LazyFrame) -> Listing:
    shown = refused.select("path", "line_number", "detail_key", "code", "reason", "advice")
    return _listing(shown.sort("path", "line_number", "detail_key", "code"))


def _files(files: pl.LazyFrame) -> list[Row]:
    counted = files.group_by("kind", "status").agg(
        pl.len().alias("files"),
        pl.col(ROW_COUNTS).sum(),
        pl.col("first_ts").min(),
        pl.col("last_ts").max(),
    )
    return _rows(counted.sort("kind", "status"))


def _judgements(counted: pl.LazyFrame) -> list[Row]:
    of_reason = counted.group_by(pl.col("decision").alias("table_name"), "judgement", "reason")
    of_all_days = of_reason.agg(pl.col("decisions").sum())
    rank = place_among("judgement", ("differ", "undetermined", "agree"))
    return _rows(of_all_days.sort("table_name", rank, -pl.col("decisions"), "reason"))


def place_among(column: str, words: Sequence[str]) -> pl.Expr:
    """Return the place of the column's word among the words, from 1 on; 0 for another."""
    return pl.col(column).replace_strict(words, range(1, len(words) + 1), default=0, return_dtype=pl.Int8)


def _listing(rows: pl.LazyFrame) -> Listing:
    shown = _rows(rows.head(CAP + 1))
    return Listing(shown[:CAP], int(rows.select(pl.len()).collect().item())) if len(shown) > CAP else Listing.of(shown)


def _rows(rows: pl.LazyFrame) -> list[Row]:
    return rows.collect().to_dicts()
