"""Topics and groups of a slave that differ from its master's for longer than a copy takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.brokers.slave_configs import slave_config_drift
from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.slaves import config_drift
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
END, LIMIT = 900, 300
VALUES = {"read_queue_nums": 4, "write_queue_nums": 4, "perm": 6}


def topic(seconds: float, broker_id: int, name: str = "t", change: str = "first", **differs: object) -> Row:
    place = {"source_name": f"b-{broker_id}", "broker_name": "b", "broker_id": broker_id}
    return place | {"ts": at(seconds), "topic": name, "change": change} | VALUES | differs


def group(seconds: float, broker_id: int, name: str = "g", change: str = "first", **differs: object) -> Row:
    row = topic(seconds, broker_id) | {"consumer_group": name, "change": change, "consume_enable": True} | differs
    return {key: value for key, value in row.items() if key not in {"topic", *VALUES}}


def lives(*spans: tuple[int, int, int]) -> pl.DataFrame:
    polls = [(n, s) for n, since, until in spans for s in range(since, until + 1, 5)]
    return rows(
        "silver.broker_runtime", {"broker_name": "b"}, [{"broker_id": broker, "ts": at(s)} for broker, s in polls]
    )


BOTH = lives((0, 0, END), (1, 0, END))
OTHERS = [topic(0, 0, "other"), topic(0, 1, "other")]


def drift(
    topics: list[Row], groups: list[Row] | None = None, alive: pl.DataFrame = BOTH, limit: int = LIMIT
) -> pl.DataFrame:
    no_copies = rows("silver.snapshot", {}, [])
    configs = rows("silver.topic_config", {}, [*OTHERS, *topics])
    return slave_config_drift(configs, rows("silver.subscription_group", {}, groups or []), no_copies, alive, limit)


OUTAGES = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}


def found(drifted: pl.DataFrame, *outages: tuple[int, int]) -> Mapping[str, Any]:
    down = pl.DataFrame([("b", 0, at(since), at(until)) for since, until in outages], OUTAGES, orient="row")
    (row,) = config_drift(drifted, down, "c", 60).to_dicts()
    return row


def test_a_slave_that_lacks_a_topic_and_a_group() -> None:
    drifted = drift([topic(100, 0)], [group(0, 0), group(0, 0, "both"), group(0, 1, "both")])
    assert drifted.select("topic", "consumer_group", "differs", "from_ts", "to_ts").rows() == [
        (None, "g", None, at(0), at(END)),
        ("t", None, None, at(100), at(END)),
    ]
    row = found(drifted)
    assert (row["severity"], row["broker_id"], row["topic"], row["consumer_group"]) == ("warning", 1, "t", "g")
    assert (
        row["summary"]
        == "Slave 1 of b had another configuration than its master for 900 s: it lacked group g, topic t."
    )
    keys = [(e["table_name"], e["source_name"], e["topic"] or e["consumer_group"]) for e in row["evidence"]]
    assert keys == [("silver.topic_config", "b-0", "t"), ("silver.subscription_group", "b-0", "g")]


def test_a_slave_with_other_values() -> None:
    drifted = drift(
        [topic(0, 0, perm=6), topic(0, 1, perm=2, read_queue_nums=8)],
        [group(0, 0), group(0, 1, consume_enable=False)],
    )
    assert found(drifted)["summary"] == (
        "Slave 1 of b had another configuration than its master for 900 s: it had other values of group g"
        " (consumeEnable false instead of true), topic t (readQueueNums 8 instead of 4, perm 2 instead of 6)."
    )


@pytest.mark.parametrize(
    "topics",
    [
        [topic(0, 0), topic(0, 1)],
        [topic(100, 0), topic(400, 1)],  # copied in time
        [topic(0, 0), topic(0, 1), topic(100, 0, change="changed", perm=2), topic(390, 1, change="changed", perm=2)],
        [topic(0, 1)],  # only the slave has it
        [topic(0, 0), topic(100, 0, change="removed"), topic(0, 1)],
        [topic(0, 0, perm=7), topic(0, 0, "%RETRY%g"), topic(0, 0, "%DLQ%g"), topic(0, 0, "rmq_sys_REVIVE_LOG_c")],
        [topic(0, 0, perm=None), topic(0, 1)],  # a value that is not known
        [topic(s, 0, change="changed", perm=2 + s // 50 % 2 * 4) for s in range(0, END, 50)],  # always a copy behind
    ],
)
def test_no_drift(topics: list[Row]) -> None:
    assert drift(topics).is_empty()


@pytest.mark.parametrize(
    "alive",
    [
        lives((0, 0, END), (1, 0, 250), (1, 620, END)),  # nobody saw whether the slave copied it
        lives((0, 0, 250), (0, 620, END), (1, 0, END)),  # the slave cannot copy from a master that is down
        lives((0, 0, END)),
    ],
)
def test_only_time_in_which_both_answered_counts(alive: pl.DataFrame) -> None:
    assert drift([topic(0, 0)], alive=alive).is_empty()


def test_a_slave_whose_configuration_was_never_read_is_not_known_to_lack_anything() -> None:
    configs = rows("silver.topic_config", {}, [topic(0, 0)])
    empty = rows("silver.subscription_group", {}, []), rows("silver.snapshot", {}, [])
    assert slave_config_drift(configs, *empty, BOTH, LIMIT).is_empty()


def test_what_a_slave_lost_again() -> None:
    drifted = drift([topic(0, 0), topic(0, 1), topic(200, 1, change="removed"), topic(600, 1)])
    assert drifted.select("from_ts", "to_ts", "until_ts").rows() == [(at(200), at(600), at(600))]


def test_it_is_critical_if_the_master_went_down_meanwhile() -> None:
    alive = lives((0, 0, 500), (1, 0, END))
    drifted = drift([topic(0, 0)], alive=alive)
    row = found(drifted, (501, 600))
    assert row["severity"] == "critical"
    assert row["summary"].endswith("for 500 s: it lacked topic t. The master went down meanwhile, at 02:08:21 UTC.")
    ended = drift([topic(0, 0), topic(450, 1)], alive=alive)
    assert found(ended, (501, 600))["severity"] == "warning"


def test_a_long_list_is_cut() -> None:
    row = found(drift([topic(0, 0, f"t{n}") for n in range(7)]))
    assert row["summary"].endswith("it lacked topic t0, topic t1, topic t2, topic t3, topic t4 and 2 more.")
    assert row["topic"] is None
