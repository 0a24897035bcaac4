"""Gaps of the audit: groups of POP, and sends that prove nothing."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.evidence.gap_rows import GAP
from mqreplay.evidence.messages.audit_scope import BY_POP, NO_ANSWERS, audit_gaps

DAY = dt.date(2026, 11, 26)
SENT = pl.DataFrame({"topic": ["t", "t", "u"]})
PAIR = {"consumer_group": pl.String, "topic": pl.String}


def gaps(
    sent: pl.DataFrame = SENT, popped: tuple = (), audit: tuple = (), missing: tuple = ("consume_log",)
) -> list[tuple]:
    found = audit_gaps(
        DAY, sent, pl.DataFrame(popped, PAIR, orient="row"), pl.DataFrame(audit, PAIR, orient="row"), missing
    )
    assert found.schema == pl.Schema(GAP)
    assert set(found["decision"]) <= {"gold.delivery_audit"}
    return found.select("consumer_group", "topic", "evidence", "reason").sort("consumer_group").rows()


def test_groups_of_pop_are_gaps_once_where_sends_were_recorded() -> None:
    found = gaps(popped=(("g", "t"), ("g", "t"), ("h", "v"), ("i", "u")), audit=(("i", "u"),))
    assert found == [("g", "t", "undetermined", BY_POP)]


def test_sends_without_answers_are_a_gap_unless_logs_are_complete() -> None:
    assert gaps() == [(None, None, "sends", NO_ANSWERS)]
    assert gaps(missing=("produce_log", "routes")) == [(None, None, "sends", NO_ANSWERS)]
    assert gaps(missing=("routes",)) == []
    assert gaps(audit=(("g", "t"),)) == []


def test_without_sends_the_missing_kinds_are_the_gap() -> None:
    assert gaps(sent=SENT.clear(), popped=(("g", "t"),)) == []
