"""Which rows are all evidence of a finding: gold.finding keeps the keys of the first ones alone (shape.EVIDENCE_ROWS).

These are the kinds that often have more. A rule selects rows as the module of its kind does, by the place and the time
of the finding. The number of rows that the finding counts is the check: see night/whole_evidence.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS
from mqreplay.decisions.slave_suggestion import FOUND
from mqreplay.evidence.brokers.broker_outages import HEARTBEAT, LONG_POLL, PULL, ROUTE, RUNTIME, SEEN_LATE
from mqreplay.evidence.brokers.slave_reads import MASTER_ID
from mqreplay.evidence.messages.deliveries import repeated_deliveries
from mqreplay.evidence.messages.failed_sends import UNSAFE, failed_messages
from mqreplay.evidence.messages.sends import REFUSED as SEND_REFUSED
from mqreplay.evidence.messages.sends import outcome
from mqreplay.evidence.offsets.standstills import SYSTEM_BUSY
from mqreplay.findings.batches import DISK_BOUND_CATCHUP
from mqreplay.findings.brokers import BROKER_DOWN, FAILOVER_PULL
from mqreplay.findings.duplicates import DUPLICATE_DELIVERY
from mqreplay.findings.pulls import SLAVE_PULL
from mqreplay.findings.refused import PULL_ANSWERS as ANSWERS
from mqreplay.findings.refused import PULL_REFUSED
from mqreplay.findings.sends import MESSAGES, NOT_STORED, SEND_FAILED, TRIES
from mqreplay.findings.texts import PLACE_NAMES
from mqreplay.words.keys import BROKER

Finding = Mapping[str, Any]
SUGGESTIONS, CONSUME = "gold.slave_suggestion", "silver.consume"


@dataclass(frozen=True)
class EvidenceRule:
    """The rows of one table that are evidence.

    ``rows`` takes rows of the finding's place, from ``before`` its begin to ``after`` its end by ``instant``, and
    returns those that are evidence, with record_id. ``place`` are the columns that agree with those of the finding.
    """

    table: str
    instant: str
    rows: Callable[[pl.DataFrame, Finding], pl.DataFrame]
    before: dt.timedelta = dt.timedelta()
    after: dt.timedelta = dt.timedelta()
    place: tuple[str, ...] = PLACE_NAMES


def _suggested(rows: pl.DataFrame, finding: Finding) -> pl.DataFrame:
    sent = rows.filter(pl.col("cause") == "suggested", pl.col("route_broker_ids").list.contains(MASTER_ID))
    slave = finding["broker_id"]
    return sent.filter(pl.col("actual_broker_id") == slave) if slave else sent


def _refused_by_slave(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    return rows.filter(pl.col("response_code") == SYSTEM_BUSY, pl.col("broker_id") > MASTER_ID)


def _failed_over(rows: pl.DataFrame, finding: Finding) -> pl.DataFrame:
    """Return the pulls of BROKER_DOWN: those that the outage of a master sent to a slave."""
    return rows.filter(pl.col("cause") == "master_gone") if finding["broker_id"] == MASTER_ID else rows.clear()


def _without_master(rows: pl.DataFrame, finding: Finding) -> pl.DataFrame:
    """Return the pulls of FAILOVER_PULL, which names a slave."""
    gone = rows.filter(pl.col("cause") == "master_gone")
    return gone if finding["broker_id"] is None else gone.filter(pl.col("actual_broker_id") == finding["broker_id"])


def _errors(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    return rows.filter(pl.col("error").is_not_null())


def _from_disk(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    return rows.filter(pl.col("diff_min") > pl.col("memory"), pl.col("response_code") == FOUND)


def _refused(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    return rows.filter(pl.col("refusal").is_not_null())


def _unsent(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    return failed_messages(rows).filter(pl.col("send_status").is_null())


def _unsafe(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    return failed_messages(rows).filter(pl.col("send_status").is_not_null())


def _refused_sends(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    return rows.filter(outcome() == SEND_REFUSED)


def _unsafe_sends(rows: pl.DataFrame, _finding: Finding) -> pl.DataFrame:
    unsafe = [code for code, status in SEND_STATUS.items() if status in UNSAFE]
    return rows.filter(pl.col("response_code").is_in(unsafe))


def _repeated(rows: pl.DataFrame, finding: Finding) -> pl.DataFrame:
    everyone = pl.DataFrame(schema={"consumer_group": pl.String})  # a broadcasting group has no such finding
    return repeated_deliveries(rows, everyone).filter(pl.col("ts").is_between(finding["from_ts"], finding["to_ts"]))


# For each kind alternatives, each with all tables that the evidence may be in.
RULES: Final[Mapping[str, tuple[tuple[EvidenceRule, ...], ...]]] = {
    SLAVE_PULL.name: (
        (EvidenceRule(ROUTE, "request_ts", _suggested),),
        (EvidenceRule(PULL, "request_ts", _refused_by_slave),),
    ),
    BROKER_DOWN.name: (
        (
            EvidenceRule(PULL, "request_ts", _errors, before=LONG_POLL, place=BROKER),
            EvidenceRule(RUNTIME, "ts", _errors, place=BROKER),
            EvidenceRule(HEARTBEAT, "ts", _errors, place=BROKER),
            EvidenceRule(
                ROUTE,
                "request_ts",
                _failed_over,
                before=SEEN_LATE,
                after=dt.timedelta(minutes=1),
                place=("broker_name",),
            ),
        ),
    ),
    FAILOVER_PULL.name: ((EvidenceRule(ROUTE, "request_ts", _without_master),),),
    DISK_BOUND_CATCHUP.name: ((EvidenceRule(SUGGESTIONS, "request_ts", _from_disk),),),
    PULL_REFUSED.name: ((EvidenceRule(ANSWERS, "request_ts", _refused),),),
    # The row of a message does not name the broker that did not take it.
    SEND_FAILED.name: (
        (EvidenceRule(MESSAGES, "ts", _unsent, place=("topic",)),),
        (EvidenceRule(TRIES, "ts", _refused_sends),),
    ),
    NOT_STORED.name: (
        (EvidenceRule(MESSAGES, "ts", _unsafe, place=("topic",)),),
        (EvidenceRule(TRIES, "ts", _unsafe_sends),),
    ),
    # The first delivery of a message comes before the repeated one.
    DUPLICATE_DELIVERY.name: (
        (
            EvidenceRule(
                CONSUME,
                "ts",
                _repeated,
                before=dt.timedelta(days=1),
                place=("consumer_group", "topic", "broker_name", "queue_id"),
            ),
        ),
    ),
}


def rules_of(kind: str, tables: set[str]) -> tuple[EvidenceRule, ...]:
    """Return the rules of the evidence of a kind that names rows of these tables; none if it cannot be selected."""
    alternatives = RULES.get(kind, ())
    return next((rules for rules in alternatives if tables <= {rule.table for rule in rules}), ())
