"""The queries of docs/replay_in_sql.md, as they are written there, against the gold tables and against the kernels."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from polars.testing import assert_frame_equal

from mqreplay.cli.query import query
from mqreplay.decisions.allocation import allocation
from mqreplay.decisions.pull_route import pull_route
from mqreplay.decisions.slave_suggestion import slave_suggestion
from mqreplay.evidence.brokers.routes import route_changes
from mqreplay.evidence.members.client_memory import first_subscriptions_of_shard, new_clients
from mqreplay.settings import load_settings
from tests_shared import ROOT

PAGE = (ROOT / "docs" / "replay_in_sql.md").read_text(encoding="utf-8")
DECISIONS = ("allocation", "pull_route", "slave_suggestion")
QUERIES = dict(zip(DECISIONS, re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL), strict=True))
EXPECTED = {"allocation": "expected", "pull_route": "expected_broker_id", "slave_suggestion": "expected_suggest"}
KEY = ["cluster", "record_id"]
pytestmark = pytest.mark.usefixtures("spark")
ORDERS = "DefaultCluster"
SILVER = ("rebalance", "pull", "route", "broker", "broker_runtime", "subscription_group", "consume", "produce")
CUT = dt.datetime(
    2026, 11, 21, 2, 47, tzinfo=dt.UTC
)  # while a slow group reads from slaves, and before a master is gone
POLLED_UNTIL = dt.datetime(2026, 11, 21, 2, 56, tzinfo=dt.UTC)
PULL_NOT_FOUND = 19
LITTLE_MEMORY = 2_000_000  # so that distances are about as long as memory reaches
ROW = pl.int_range(pl.len())
ORDER = ("record_id", "broker_name", "broker_id", "consumer_group", "ts")
UNCHANGED: dict[str, pl.Expr] = {}


def compare_with_gold(
    decision: str, root: str, gold: pl.DataFrame, without: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the gold rows that the query judges and those that it leaves out.

    All columns of the query's rows must be equal to those of the gold rows. Rows ``without`` are left out of both.
    """
    rows = pl.DataFrame(pl.from_arrow(query(root, QUERIES[decision], load_settings()).toArrow()))
    if without is not None:
        rows, gold = (frame.join(without, on=KEY, how="anti") for frame in (rows, gold))
    judged = gold.join(rows, on=KEY, how="semi").sort(KEY)
    as_gold = judged.with_columns(agrees=pl.col("judgement") == "agree").select(rows.columns)
    assert_frame_equal(rows.sort(KEY).cast(dict(as_gold.schema)), as_gold)  # type: ignore[arg-type]
    assert rows[EXPECTED[decision]].null_count() == 0
    return judged, gold.join(rows, on=KEY, how="anti")


@pytest.mark.parametrize(
    ("decision", "judged", "left_out"),
    [
        ("allocation", 2525, {("agree", "CONFIG"): 50, ("agree", "MACHINE_ROOM_NEARBY-AVG"): 61}),
        ("pull_route", 30546, {}),
        ("slave_suggestion", 28608, {("undetermined", None): 27}),
    ],
)
@pytest.mark.first_case
def test_query_gives_the_gold_rows(night: Any, decision: str, judged: int, left_out: dict[Any, int]) -> None:
    gold = pl.DataFrame(pl.read_delta(f"{night.root}/gold/{decision}"))
    agreeing, others = compare_with_gold(decision, night.root, gold)
    assert len(agreeing) == judged
    strategies = others["strategy"] if decision == "allocation" else [None] * len(others)
    assert Counter(zip(others["judgement"], strategies, strict=True)) == left_out


def altered(table: pa.Table, keep: pl.Expr, columns: dict[str, pl.Expr]) -> pa.Table:
    """Return the rows to keep, with other values in these columns. Types stay, maps among them."""
    frame = pl.DataFrame(pl.from_arrow(table)).with_row_index("place").filter(keep).with_columns(**columns)
    kept = table.take(frame["place"].to_arrow())
    for name in columns:
        at = kept.schema.get_field_index(name)
        field = kept.schema.field(at)
        kept = kept.set_column(at, field, frame[name].to_arrow().cast(field.type))
    return kept


def some(name: str, every: int, value: Any) -> dict[str, pl.Expr]:
    """The column with another value in every so many rows."""
    return {name: pl.when(ROW % every == 0).then(value).otherwise(pl.col(name))}


@pytest.fixture(scope="module")
def degraded(night: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, pl.DataFrame]]:
    """A warehouse with the second half of a night, less evidence and wrong decisions; its silver tables."""
    root = tmp_path_factory.mktemp("degraded")
    since = pl.col("ts") >= CUT
    unseen = pl.when(ROW % 40 != 0)
    broker_b = pl.col("broker_name") == "broker-b"
    # A topic's route changes while that of another topic of the client has not: which one counts?
    of_retries = pl.col("topic").str.starts_with("%RETRY%")
    late = pl.when(of_retries).then(pl.duration(seconds=40)).otherwise(pl.duration(milliseconds=-700))
    answers_after = pl.when(ROW % 2 == 0).then(pl.duration(milliseconds=500)).otherwise(pl.duration())
    changes: dict[str, tuple[pl.Expr, dict[str, pl.Expr]]] = {
        "rebalance": (since, some("mq_divided", 9, pl.col("mq_divided").list.head(0)) | some("strategy", 10, None)),
        "pull": (
            pl.col("request_ts") >= CUT,
            {
                "response_ts": unseen.then("response_ts"),
                "suggest_which_broker_id": unseen.then((pl.col("suggest_which_broker_id") + (ROW % 37 == 0)) % 2),
                "broker_id": (pl.col("broker_id") + (ROW % 41 == 0)) % 2,
                "response_code": pl.when(ROW % 47 != 0).then("response_code").otherwise(PULL_NOT_FOUND),
                "first_commitlog_offset": pl.when(ROW % 3 == 0).then("first_commitlog_offset"),
                "last_commitlog_offset": pl.when(ROW % 4 == 0).then("last_commitlog_offset"),
                "remark": pl.when(ROW % 43 != 0).then(
                    pl.when(ROW % 47 != 0).then("remark").otherwise(pl.lit("OFFSET_FOUND_NULL"))
                ),
            },
        ),
        "route": (since, {"ts": pl.col("ts") + late, "response_ts": pl.col("response_ts") + late + answers_after}),
        "broker": (
            pl.lit(True),
            {
                "ts": pl.lit(CUT),
                "physical_memory_bytes": pl.lit(LITTLE_MEMORY),
                "rocketmq_version": pl.when(broker_b).then(pl.lit("5.3.3")).otherwise("rocketmq_version"),
                "access_message_in_memory_max_ratio": pl.lit(11),
                "effective_access_message_in_memory_max_ratio": pl.when(~broker_b).then(1),
            },
        ),
        "broker_runtime": (since & (pl.col("ts") < POLLED_UNTIL) & (ROW % 10 == 0), UNCHANGED),
        "subscription_group": (ROW % 8 != 0, UNCHANGED),
        "consume": (since & (ROW % 3 != 0), UNCHANGED),
        "produce": (since & (ROW % 3 == 0), UNCHANGED),
    }
    silver = {}
    for name in SILVER:
        table = DeltaTable(str(Path(night.root, "silver", name))).to_pyarrow_table()
        of_orders = table.filter(pc.equal(table["cluster"], ORDERS))
        keys = [key for key in ORDER if key in table.column_names]
        kept = altered(of_orders.sort_by([(key, "ascending") for key in keys]), *changes[name])
        write_deltalake(str(root / "silver" / name), kept)
        silver[name] = pl.DataFrame(pl.from_arrow(kept))
    return str(root), silver


def test_allocation_leaves_out_what_the_kernel_leaves_undetermined(degraded: Any) -> None:
    root, silver = degraded
    kernel = allocation(silver["rebalance"]).with_columns(cluster=pl.lit(ORDERS))
    judged, others = compare_with_gold("allocation", root, kernel)
    assert Counter(judged["judgement"]) == {"agree": 1014, "differ": 124}
    assert Counter(others["judgement"]) == {"undetermined": 127}


@pytest.mark.long
def test_pull_route_leaves_out_what_the_client_may_not_have_known(degraded: Any) -> None:
    root, silver = degraded
    starts = {CUT: CUT}
    new = new_clients([first_subscriptions_of_shard(silver["pull"], starts)], starts)
    kernel = pull_route(silver["pull"], route_changes(silver["route"], starts), new, starts, 1000)
    gold = kernel.with_columns(cluster=pl.lit(ORDERS))
    # The query compares ids, one row at a time: it does not see that all pulls of a client ask one broker, as with
    # connectBrokerByUser, nor that the address that was asked is listed under another id.
    unseen = gold.filter(pl.col("reason").str.contains("connectBrokerByUser|^the route lists"))
    judged, others = compare_with_gold("pull_route", root, gold, unseen)
    assert Counter(judged["judgement"]) == {"agree": 9765, "differ": 573 - len(unseen)}
    assert Counter(others["judgement"]) == {"undetermined": 624, "agree": 342}
    without_route = others.filter(pl.col("judgement") != "undetermined")
    assert without_route["reason"].str.ends_with("the client's route was not recorded").all()


@pytest.mark.long
def test_suggestion_leaves_out_what_the_bounds_leave_open(degraded: Any) -> None:
    root, silver = degraded
    kernel = slave_suggestion(
        silver["pull"],
        silver["consume"],
        silver["produce"],
        silver["broker"],
        silver["subscription_group"],
        silver["broker_runtime"],
        poll_slack_ms=0,
    )
    judged, others = compare_with_gold("slave_suggestion", root, kernel.with_columns(cluster=pl.lit(ORDERS)))
    assert Counter(judged["judgement"]) == {"agree": 6101, "differ": 189, "undetermined": 89}
    assert Counter(others["judgement"]) == {"undetermined": 3326, "agree": 147, "differ": 7}
    without_remark = silver["pull"].filter(pl.col("remark").is_null())["record_id"]
    assert set(others.filter(~pl.col("record_id").is_in(without_remark.to_list()))["judgement"]) == {"undetermined"}
