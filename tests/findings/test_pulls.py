"""Reads from a slave: of groups that lag, and of groups that a slave's setting keeps; shards change nothing."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.brokers.slave_reads import BY_GROUP, KEPT_BY_RATIO, LAGGED, UNKNOWN_RATIO
from mqreplay.findings.causes import with_causes
from mqreplay.findings.every import KINDS
from mqreplay.findings.pulls import exceptional_pulls_of_shard, pull_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

GAP_S, WARN_S = 120, 10
ROUTED = {
    "consumer_group": "g",
    "topic": "T",
    "queue_id": 0,
    "client_id": "c",
    "judgement": "agree",
    "reason": "",
    "from_slave": True,
    "route_broker_ids": [0, 1],
    "expected_broker_id": 1,
    "actual_broker_id": 1,
    "pull_from_which_node": 1,
    "cause": "suggested",
}
READ = {"why": pl.String, "behind": pl.Boolean, "keeper_id": pl.Int64, "keeper_ratio": pl.Int64}
READ |= {"keeper_configured": pl.Int64, "keeper_addr": pl.String}
OF_KEEPER = {
    "why": KEPT_BY_RATIO,
    "keeper_id": 1,
    "keeper_ratio": -9,
    "keeper_configured": 1,
    "keeper_addr": "10.0.0.2:1",
}


def pulled(broker: str, *seconds: float, **differs: object) -> list[dict[str, object]]:
    row = {"broker_name": broker, "why": LAGGED, "behind": False} | differs
    return [
        row | {"request_ts": at(s), "record_id": f"{broker}{s}{differs.get('consumer_group', '')}"} for s in seconds
    ]


READS = [
    *pulled("nine seconds", 0, 5, 9.999),
    *pulled("ten seconds", 0, 5, 10),
    *pulled("just together", 0, 120, 240),
    *pulled("just apart", 0, 120.001),
    *pulled("two queues", 0),
    *pulled("two queues", 10, queue_id=1),
    *pulled("two groups", 0),
    *pulled("two groups", 10, consumer_group="h"),
    *pulled("by the group's brokerId", 0, 60, why=BY_GROUP),
    *pulled("not known, behind", 0, 20, 40, why=UNKNOWN_RATIO, behind=True),
    *pulled("not known, at the end", 0, 20, 40, why=UNKNOWN_RATIO),
    # A slave that keeps readers: one group that lagged for a second, one that lags for long, one that never did.
    *pulled("keeps", 0, 1, consumer_group="short lag"),
    *pulled("keeps", 2, 60, 90, consumer_group="short lag", **OF_KEEPER),
    *pulled("keeps", 5, 100, consumer_group="long lag"),
    *pulled("keeps", 101, 130, consumer_group="long lag", **OF_KEEPER),
    *pulled("keeps", 40, 41, consumer_group="kept", topic="U", **OF_KEEPER),
    *pulled("keeps", 40, 41, consumer_group="kept behind", behind=True, **OF_KEEPER),
    *pulled("master sends all", 0, 20, **OF_KEEPER | {"keeper_id": 0, "keeper_ratio": 0, "keeper_configured": 0}),
    *pulled("keeps for a moment", 40, 49, **OF_KEEPER),
]


def slave_reads(listed: list[dict[str, object]]) -> pl.DataFrame:
    """The frame of slave_reads.py."""
    of_reads = {name: pl.Series(name, [row.get(name) for row in listed], kind) for name, kind in READ.items()}
    return rows("gold.pull_route", ROUTED, listed).with_columns(**of_reads)


def judged(reads: pl.DataFrame, shards: int = 1) -> pl.DataFrame:
    of = pl.struct("broker_name", "topic", "queue_id").hash(3) % shards
    parts = [reads.filter(of == shard) for shard in range(shards)]
    runs = pl.concat([exceptional_pulls_of_shard(part, GAP_S) for part in parts])
    return pull_findings(runs, "c", GAP_S, WARN_S)


@pytest.fixture(scope="module")
def found() -> dict[str, list[dict]]:
    by_broker: dict[str, list[dict]] = {}
    for row in judged(slave_reads(READS)).sort("from_ts", "consumer_group", nulls_last=False).to_dicts():
        assert row["kind"] == "slave_pull"
        by_broker.setdefault(row["broker_name"], []).append(row)
    return by_broker


def test_reading_from_a_slave_is_a_warning_once_it_lasts(found: dict) -> None:
    severities = {broker: found[broker][0]["severity"] for broker in ("nine seconds", "ten seconds")}
    assert severities == {"nine seconds": "info", "ten seconds": "warning"}
    assert found["ten seconds"][0]["summary"] == (
        "Group g read T of ten seconds from a slave in 3 pulls: it lagged further behind than the broker keeps in"
        " memory."
    )


def test_a_group_that_reads_from_a_slave_by_its_own_setting_is_no_finding(found: dict) -> None:
    assert "by the group's brokerId" not in found


def test_a_lag_that_nothing_shows_is_not_claimed(found: dict) -> None:
    (behind,), (at_end,) = found["not known, behind"], found["not known, at the end"]
    assert behind["summary"] == at_end["summary"].replace("at the end", "behind")
    assert "it lagged further" not in behind["summary"]
    assert "how far the group lagged is not known" in behind["summary"]
    assert "brokers.json" in behind["advice"]
    assert (behind["severity"], at_end["severity"]) == ("warning", "info")


def test_a_slave_that_keeps_readers_is_one_finding_with_its_groups_below(found: dict) -> None:
    listed = with_causes(judged(slave_reads(READS)).filter(pl.col("broker_name") == "keeps"), KINDS.values()).to_dicts()
    by_group: dict[str | None, list[dict]] = {}
    for row in sorted(listed, key=lambda row: row["from_ts"]):
        by_group.setdefault(row["consumer_group"], []).append(row)
    (setting,) = by_group[None]
    assert setting["summary"] == (
        "Slave 1 of keeps keeps its readers, whether they lag or not: its effective accessMessageInMemoryMaxRatio is"
        " -9 (configured: 1), so it suggests itself while it finds messages. It kept 9 pulls of 4 groups from the"
        " master."
    )
    assert (setting["severity"], setting["broker_id"], setting["follows_from"]) == ("warning", 1, None)
    assert (setting["from_ts"], setting["to_ts"]) == (at(2), at(130))
    assert "to 11 or more" in setting["advice"]
    assert "mqadmin updateBrokerConfig -b 10.0.0.2:1 -k accessMessageInMemoryMaxRatio -v 40" in setting["advice"]
    (short,), (lags, kept_later), (kept,) = by_group["short lag"], by_group["long lag"], by_group["kept"]
    (behind,) = by_group["kept behind"]
    assert (short["severity"], short["follows_from"]) == ("info", setting["finding_id"])
    assert short["summary"].endswith("; it was sent there at 02:00:00 UTC, when it lagged (2 pulls).")
    assert (lags["severity"], lags["follows_from"]) == ("warning", None), "it really lags"
    assert "in 2 pulls: it lagged" in lags["summary"]
    assert kept_later["summary"].endswith("; it was sent there at 02:00:05 UTC, when it lagged (2 pulls).")
    assert kept["topic"] == "U"
    assert kept["summary"].endswith(" kept it there by its accessMessageInMemoryMaxRatio.")
    assert kept["advice"].startswith("The group does not lag.")
    assert "mqadmin consumerProgress" in behind["advice"]
    effects = (short, kept_later, kept, behind)
    assert {row["follows_from"] for row in effects} == {setting["finding_id"]}
    assert sum(int(re.findall(r"in (\d+) pulls", row["summary"])[0]) for row in effects) == 9, "as the cause says"


def test_a_master_may_send_all_its_readers_to_a_slave(found: dict) -> None:
    by_group = {row["consumer_group"]: row for row in found["master sends all"]}
    assert by_group[None]["summary"] == (
        "The master of master sends all sends its readers to a slave, whether they lag or not: its effective"
        " accessMessageInMemoryMaxRatio is 0 (configured: 0), so it suggests a slave while it finds messages. It sent 2"
        " pulls of 1 group there."
    )
    assert "to 1 or more" in by_group[None]["advice"]
    assert "in 2 pulls: the master sent it there by its" in by_group["g"]["summary"]


def test_a_slave_that_kept_readers_for_a_moment_only_is_info(found: dict) -> None:
    assert {row["severity"] for row in found["keeps for a moment"]} == {"info"}


def test_an_outage_of_the_master_is_not_why_a_slave_keeps_its_readers() -> None:
    down = {"kind": "broker_down", "severity": "critical", "broker_name": "keeps", "finding_id": "down", "summary": ""}
    down |= {"from_ts": at(0), "to_ts": at(1), "evidence": []}
    both = pl.concat([judged(slave_reads(READS)), pl.DataFrame([down], SCHEMA)])
    listed = with_causes(both, KINDS.values()).filter(broker_name="keeps", broker_id=1).to_dicts()
    assert "down" not in {row["follows_from"] for row in listed if "keeps its readers" in row["summary"]}


def test_a_longer_pause_begins_another_finding(found: dict) -> None:
    assert len(found["just together"]) == 1
    assert len(found["just apart"]) == 2


def test_a_place_is_named_where_all_pulls_share_it(found: dict) -> None:
    (two_queues,) = found["two queues"]
    assert (two_queues["queue_id"], two_queues["client_id"], two_queues["broker_id"]) == (None, "c", 1)
    assert found["ten seconds"][0]["queue_id"] == 0
    assert [row["consumer_group"] for row in found["two groups"]] == ["g", "h"]


def test_no_pulls_are_no_findings() -> None:
    none = judged(slave_reads([]))
    assert (len(none), dict(none.schema)) == (0, SCHEMA)


PULLS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("gh"),
        st.sampled_from("TU"),
        st.integers(0, 5),
        st.sampled_from("cd"),
        st.integers(0, 40),
        st.sampled_from([{"why": LAGGED}, OF_KEEPER, {"why": UNKNOWN_RATIO, "actual_broker_id": 2}, {"why": BY_GROUP}]),
    ),
    max_size=60,
)


@given(PULLS)
def test_findings_over_shards_are_those_of_all_rows(pulls: list[tuple]) -> None:
    names = ("broker_name", "consumer_group", "topic", "queue_id", "client_id")
    listed = [
        dict(zip(names, pull[:5], strict=True)) | {"behind": True, "request_ts": at(pull[5] * 40.5)} | pull[6]
        for pull in pulls
    ]
    reads = slave_reads(listed)
    whole, parts = (judged(reads, shards).sort("finding_id").to_dicts() for shards in (1, 7))
    assert whole == parts
