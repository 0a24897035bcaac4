"""pull_expired: clients that hold queues and do not pull them."""

from __future__ import annotations

from mqreplay.findings.expired_pulls import expired_pulls
from silver_moments import at
from silver_rows import rows

QUEUES = [{"broker_name": "b", "queue_id": queue} for queue in (0, 1)]


def test_a_client_that_hangs_is_one_finding_a_topic() -> None:
    base = {"consumer_group": "courier", "client_id": "c1", "topic": "orders", "expired": QUEUES}
    listed = rows("gold.rebalance_step", base, [{"ts": at(0)}, {"ts": at(60)}, {"ts": at(400)}])
    first, second = expired_pulls(listed, "harbour").sort("from_ts").to_dicts()
    assert first["summary"] == (
        "Client c1 of group courier did not pull 2 queues of orders (b/0, b/1), and had not dropped them."
    )
    assert (first["from_ts"], first["to_ts"], second["from_ts"]) == (at(0), at(60), at(400))
    assert [item["record_id"] for item in first["evidence"]] == ["r0", "r1"]
    assert expired_pulls(listed.clear(), "harbour").is_empty()
