"""A topic that no member subscribes to any more is a finding where it left queues without an owner, or a lag."""

from __future__ import annotations

import polars as pl
import pytest

from evidence_keys import evidence_of
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.unsubscribed_topics import unsubscribed_findings
from silver_moments import at

SPAN = {
    "consumer_group": pl.String,
    "topic": pl.String,
    "from_ts": pl.Datetime("us", "UTC"),
    "to_ts": pl.Datetime("us", "UTC"),
    "record_ids": pl.List(pl.String),
}
DISPUTE_S = 45


def found(
    kind: str, began: float, ended: float, *, topic: str = "T", dropped_s: float = 104
) -> list[dict[str, object]]:
    spans = pl.DataFrame([("g", "T", at(59), at(59 + dropped_s), ["silver.assignment r1", "r2"])], SPAN, orient="row")
    other = {"kind": kind, "consumer_group": "g", "topic": topic, "from_ts": at(began), "to_ts": at(ended)}
    return unsubscribed_findings(spans, pl.DataFrame([other], SCHEMA), "c", DISPUTE_S).to_dicts()


@pytest.mark.parametrize("kind", ["orphan_queue", "lag_grows"])
def test_what_it_did_makes_it_a_finding(kind):
    (row,) = found(kind, 49, 169)
    assert row["summary"] == "No member of group g subscribed to T any more, for 104 s: nobody consumed it."
    assert (row["severity"], row["consumer_group"], row["topic"]) == ("warning", "g", "T")
    tables = [(item["table_name"], item["record_id"]) for item in row["evidence"]]
    assert tables == [("silver.assignment", "r1"), ("silver.heartbeat", "r2")]
    assert row["evidence"][1] == evidence_of("silver.heartbeat", record_id="r2")


@pytest.mark.parametrize(
    "differs",
    [
        {"kind": "idle_consumer"},
        {"topic": "U"},
        {"began": 164, "ended": 300},
        {"dropped_s": 45},  # as long as a change of all members may take
    ],
)
def test_without_an_effect_it_is_none(differs):
    assert found(**({"kind": "orphan_queue", "began": 49, "ended": 169} | differs)) == []
