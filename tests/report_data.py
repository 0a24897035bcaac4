"""Data for the tests of the report: base rows, and what differs."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

from mqreplay.report.coverage import Coverage, RecordingAdvice
from mqreplay.report.data import Listing, ReportData, Row
from mqreplay.report.evidence_rows import EvidenceRow, EvidenceRows

BEGAN = dt.datetime(2026, 11, 21, 2, 0, tzinfo=dt.UTC)
ENDED = BEGAN + dt.timedelta(hours=1)
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
    "\u202e\u2066\x00\x1b\u200b\ufeff\ud800&\"'{{7*7}}"
)


def finding(finding_id: str = "0123456789abcdef", **differs: Any) -> Row:
    base = {
        "finding_id": finding_id,
        "kind": "offset_rewind",
        "severity": "warning",
        "consumer_group": "pay-group",
        "topic": "pay-topic",
        "broker_name": None,
        "broker_id": None,
        "queue_id": None,
        "client_id": None,
        "from_ts": BEGAN,
        "to_ts": BEGAN + dt.timedelta(minutes=5),
        "confidence": 0.9,
        "summary": "Offsets went back.",
        "advice": "See who reset them.",
        "follows_from": None,
    }
    return base | differs


# A cause, what follows from it, and two findings of their own.
CHAIN = [
    finding("aa01", severity="critical", kind="broker_down", consumer_group=None, topic=None, broker_name="broker-a"),
    finding("bb02", follows_from="aa01", severity="info", consumer_group="order-group", summary="Delivered again."),
    finding("cc03", consumer_group="pay-group", summary="Stood still.", from_ts=BEGAN.replace(minute=40), to_ts=None),
    finding("dd04", severity="info", topic="ship-topic", summary="Had no queue."),
]


def evidence(text: str = "offset 63 -> 28", total: int = 3, who: str = "group pay-group") -> EvidenceRows:
    return EvidenceRows([EvidenceRow("gold.offset_continuity", BEGAN, who, text, {})], total)


def judged(**differs: Any) -> Coverage:
    """Decisions that were all judged."""
    base: dict[str, Any] = {"decision": "gold.pull_route", "one": "pull", "name": "pulls", "judged": 23_671}
    return Coverage(**base | {"agreed": 23_671, "differing": 0} | differs)


def unjudged(**differs: Any) -> Coverage:
    """Decisions that could not be judged, and what would help."""
    base: dict[str, Any] = {"decision": "gold.allocation", "one": "rebalance", "name": "rebalances"}
    lacks = {
        "missing": ("rebalance_log",),
        "helps": (RecordingAdvice("record it", "record it"),),
        "findings": ("idle_consumer",),
    }
    return Coverage(**base | lacks | differs)


def offset_break(**differs: Any) -> Row:
    base = {
        "broker_name": "broker-a",
        "broker_id": 0,
        "topic": "pay-topic",
        "consumer_group": "pay-group",
        "queue_id": 3,
        "kind": "rewind",
        "previous_offset": 63,
        "new_offset": 28,
        "from_ts": BEGAN,
        "to_ts": BEGAN + dt.timedelta(seconds=5),
        "cause": "reset",
        "redelivered_max": 35,
    }
    return base | differs


def gap(**differs: Any) -> Row:
    base = {
        "decision": "gold.slave_suggestion",
        "evidence": "broker_runtime",
        "consumer_group": None,
        "topic": None,
        "broker_name": "broker-a",
        "from_ts": BEGAN,
        "to_ts": None,
        "decisions": 24,
        "reason": "commitLogMaxOffset was not recorded",
    }
    return base | differs


def refused(**differs: Any) -> Row:
    base = {"path": "pull_log.jsonl", "line_number": 7, "detail_key": "", "code": "torn"}
    return base | {"reason": "the line ends in the middle", "advice": "copy it again"} | differs


def expectation(**differs: Any) -> Row:
    base = {
        "day": BEGAN.date(),
        "table_name": "silver.pull",
        "expectation": "expect_known_brokers",
        "arguments": '{"column": "broker_name"}',
    }
    found = {"passed": True, "unexpected_count": 0, "unexpected_sample": None, "description": "brokers are known"}
    return base | found | differs


def judgement(**differs: Any) -> Row:
    return {"table_name": "gold.pull_route", "judgement": "agree", "decisions": 23671, "reason": "the master"} | differs


def files(**differs: Any) -> Row:
    base = {"kind": "pull_log", "status": "read", "files": 1, "rows_in": 10, "rows_out": 9, "first_ts": BEGAN}
    return base | {"rows_quarantined": 1, "rows_duplicate": 0, "last_ts": ENDED} | differs


def data(hostile: str | None = None, **differs: Any) -> ReportData:
    """A night with something in each section; with ``hostile``, that in every text that a recording can bring."""

    def texts(*names: str) -> dict[str, Any]:
        return {} if hostile is None else dict.fromkeys(names, hostile)

    place = texts("consumer_group", "topic", "broker_name", "client_id", "reason")
    words = texts("summary", "advice", "kind")
    seen = evidence() if hostile is None else evidence(hostile, who=hostile)
    base = ReportData(
        cluster=hostile or "orders",
        first_ts=BEGAN,
        last_ts=ENDED,
        findings=[finding(**{k: v for k, v in (place | words).items() if k != "reason"})],
        evidence={"0123456789abcdef": seen},
        coverage=[judged()],
        judgements=[judgement(**texts("reason"))],
        breaks=Listing.of([offset_break(**texts("consumer_group", "topic", "broker_name", "cause"))]),
        gaps=Listing.of([gap(**{k: v for k, v in place.items() if k != "client_id"})]),
        quarantine=Listing.of([refused(**texts("path", "detail_key", "code", "reason", "advice"))]),
        expectations=[expectation(), expectation(passed=False, **texts("unexpected_sample", "arguments"))],
        files=[files(**texts("kind"))],
    )
    return dataclasses.replace(base, **differs)
