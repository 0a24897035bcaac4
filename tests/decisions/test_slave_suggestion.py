"""Suggestions of brokers against RocketMQ's rule, as far as the recording bounds what the broker compared."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core import slave_suggestion as law
from mqreplay.core.pull_answer import suggest_which_broker_id
from mqreplay.decisions.slave_suggestion import COLUMNS, slave_suggestions
from mqreplay.lake.contract import arrow_schema, load_contracts
from silver_moments import at
from silver_rows import rows

MOST = 2**63 - 1
# The broker has 1,000 bytes of memory at 40 percent: more than 400 bytes behind is slow.
PULL = {
    "client_id": "c",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "broker_id": 0,
    "request_ts": at(25),
    "response_ts": at(25.1),
    "queue_offset": 5,
    "min_offset": 0,
    "max_offset": 6,
    "next_begin_offset": 6,
    "response_code": 0,
    "remark": "FOUND",
    "first_queue_offset": 5,
    "first_commitlog_offset": 500,
    "last_queue_offset": 5,
    "last_commitlog_offset": 500,
    "last_store_size": 100,
    "suggest_which_broker_id": 0,
}
NOTHING_FOUND = {
    "response_code": 19,
    "remark": None,
    "first_queue_offset": None,
    "first_commitlog_offset": None,
    "last_queue_offset": None,
    "last_commitlog_offset": None,
    "last_store_size": None,
}
BROKER = {
    "recording": "r",
    "ts": at(0),
    "broker_name": "b",
    "broker_id": 0,
    "broker_role": "ASYNC_MASTER",
    "rocketmq_version": "4.9.7",
    "physical_memory_bytes": 1000,
    "access_message_in_memory_max_ratio": 40,
    "slave_read_enable": True,
}
GROUP = {
    "source_name": "s",
    "broker_name": "b",
    "broker_id": 0,
    "ts": at(0),
    "consumer_group": "g",
    "change": "added",
    "group_broker_id": 0,
    "which_broker_when_consume_slowly": 1,
}
KEEPING_UP, BEHIND = [(20, 600), (30, 700)], [(20, 2000), (30, 2100)]


def suggested(pulls=({},), brokers=({},), groups=({},), polls=KEEPING_UP, consumed=(), skewed=(), slack_ms=0):
    ends = [{"ts": at(s), "commit_log_max_offset": end} for s, end in polls]
    frame = slave_suggestions(
        rows("silver.pull", PULL, pulls),
        rows("silver.consume", {"client_id": "c", "consumer_group": "g", "ts": at(0)}, consumed),
        rows("silver.produce", {}, []),
        rows("silver.broker", BROKER, brokers),
        rows("silver.subscription_group", GROUP, groups),
        rows("silver.broker_runtime", {"broker_name": "b", "broker_id": 0}, ends),
        slack_ms,
        skewed,
    )
    return frame.rows(named=True)


def one(**evidence):
    (row,) = suggested(**evidence)
    return row


def judged(**evidence):
    row = one(**evidence)
    return row["expected_suggest"], row["judgement"], row["reason"]


def test_client_that_keeps_up_is_sent_to_the_groups_broker():
    row = one()
    assert (row["diff_min"], row["diff_max"], row["memory"], row["effective_ratio"]) == (100, 200, 400, 40)
    assert judged() == (0, "agree", "not slow: diff lies between 100 and 200 bytes, memory is 400")
    assert judged(pulls=[{"suggest_which_broker_id": 1}])[:2] == (0, "differ")
    assert judged(groups=[{"group_broker_id": 3}])[:2] == (3, "differ")


def test_slow_client_is_sent_to_the_slave():
    reason = "slow: diff lies between 1500 and 1600 bytes, memory is 400"
    assert judged(polls=BEHIND) == (1, "differ", reason)
    assert judged(polls=BEHIND, pulls=[{"suggest_which_broker_id": 1}])[:2] == (1, "agree")


def test_more_than_the_memory_is_slow_and_as_much_is_not():
    slow = [judged(polls=[(20, end), (30, end)])[2].split(":")[0] for end in (900, 901)]
    assert slow == ["not slow", "slow"]


@given(st.integers(600, 1 << 50), st.integers(1, 1 << 50), st.integers(1, 100))
def test_where_all_is_known_the_arrays_say_what_core_says(end, memory, ratio):
    broker = {"physical_memory_bytes": memory, "access_message_in_memory_max_ratio": ratio}
    row = one(polls=[(20, end), (30, end)], brokers=[broker])
    is_slow = law.slave_suggestion(end, 500, memory, law.effective_ratio(ratio, "ASYNC_MASTER", "4.9.7"))
    assert row["expected_suggest"] == int(is_slow)
    assert row["diff_min"] == row["diff_max"] == end - 500


def test_bounds_on_both_sides_of_the_memory_leave_it_open():
    polls = [(20, 600), (30, 2000)]
    reason = "diff lies between 100 and 1500 bytes, memory is 400"
    assert judged(polls=polls) == (None, "undetermined", reason)
    same = [{"which_broker_when_consume_slowly": 0}]
    assert judged(polls=polls, groups=same) == (
        0,
        "agree",
        "the group's settings name the same broker for slow and other reads",
    )
    assert judged(polls=[])[2] == "diff lies between 100 and ? bytes, memory is 400"
    assert judged(polls=[(30, 700)])[:2] == (0, "agree")  # the last message itself lies below the end


def test_place_of_a_message_not_seen_lies_between_its_neighbours():
    unseen = NOTHING_FOUND | {"response_code": 20, "remark": "NO_MATCHED_MESSAGE"}
    messages = [
        {"broker_name": "b", "topic": "T", "queue_id": 0, "queue_offset": offset, "commitlog_offset": place}
        for offset, place in ((3, 300), (7, 590))
    ]
    row = one(pulls=[unseen], consumed=messages)
    assert (row["diff_min"], row["diff_max"]) == (600 - 590, 700 - 300)
    row = one(pulls=[unseen], consumed=messages[1:])
    assert (row["diff_min"], row["diff_max"]) == (10, 700)


def test_4_9_may_have_noted_the_place_of_the_next_message_if_the_batch_was_full():
    more = [{"max_offset": 9}]
    messages = [{"broker_name": "b", "topic": "T", "queue_id": 0, "queue_offset": 6, "commitlog_offset": 590}]
    assert one(pulls=more, consumed=messages)["diff_min"] == 10
    assert one(pulls=more)["diff_min"] is None
    assert one(pulls=more, consumed=messages, brokers=[{"rocketmq_version": "5.3.3"}])["diff_min"] == 100
    assert one(pulls=more, consumed=messages, brokers=[{"rocketmq_version": None}])["diff_min"] == 100


def test_reason_names_what_is_missing():
    unknown = (None, "undetermined")
    assert judged(brokers=[]) == (*unknown, "brokers.json does not describe this broker")
    assert judged(brokers=[{"slave_read_enable": None}]) == (
        *unknown,
        "brokers.json lacks slaveReadEnable of this broker",
    )
    assert judged(groups=[]) == (*unknown, "no subscriptionGroup.json of this broker has the group")
    assert judged(groups=[{"change": "removed"}])[2] == "no subscriptionGroup.json of this broker has the group"
    no_memory = [{"physical_memory_bytes": None}]
    assert judged(brokers=no_memory) == (*unknown, "the broker's memory or ratio is not known")
    never = [{"slave_read_enable": False}]
    assert judged(brokers=never) == (0, "agree", "slaveReadEnable is false, so the broker always suggests the master")
    assert judged(pulls=[{"broker_id": None}])[2] == "brokers.json does not describe this broker"


def test_only_answers_with_a_suggestion_have_a_row():
    pulls = [{}, {"suggest_which_broker_id": None}, {"response_ts": None}]
    assert [r["record_id"] for r in suggested(pulls=pulls)] == ["r0"]


@pytest.mark.parametrize(
    ("differs", "slow"),
    [
        ({"remark": "OFFSET_OVERFLOW_ONE"}, "nothing was read"),
        ({"remark": "NO_MESSAGE_IN_QUEUE"}, "nothing was read"),
        ({"remark": "NO_MATCHED_LOGIC_QUEUE"}, "nothing was read"),
        ({"remark": "OFFSET_FOUND_NULL"}, "nothing was read"),
        ({"remark": "NO_MATCHED_MESSAGE", "response_code": 20}, "slow: "),
        ({"remark": "MESSAGE_WAS_REMOVING", "response_code": 20}, "slow: "),
        ({"response_code": 20}, "slow: "),
        ({"response_code": 20, "queue_offset": 6}, "nothing was read"),
        ({"response_code": 20, "max_offset": None}, "diff lies between ? and ? bytes"),
        ({"response_code": 20, "min_offset": None, "queue_offset": 6}, "nothing was read"),
        ({"response_code": 19}, "nothing was read"),
        ({"response_code": None}, "nothing was read"),
        ({"response_code": 21, "remark": "a fork's own"}, "nothing was read"),
        ({"response_code": 0, "remark": "OFFSET_TOO_SMALL"}, "slow: "),
    ],
)
def test_remark_or_code_and_offsets_say_whether_a_message_was_read(differs, slow):
    messages = [{"broker_name": "b", "topic": "T", "queue_id": 0, "queue_offset": 5, "commitlog_offset": 500}]
    row = one(pulls=[NOTHING_FOUND | differs], polls=BEHIND, consumed=messages)
    assert slow in row["reason"]


def test_5_3_compares_with_place_0_where_the_offset_was_found_null():
    version_5 = [{"rocketmq_version": "5.3.3"}]
    for differs in ({"remark": "OFFSET_FOUND_NULL"}, {}):
        row = one(pulls=[NOTHING_FOUND | differs], brokers=version_5)
        assert (row["diff_min"], row["diff_max"], row["expected_suggest"]) == (600, 700, 1)
    outside = NOTHING_FOUND | {"queue_offset": 6}
    assert "nothing was read" in one(pulls=[outside], brokers=version_5)["reason"]


def test_far_numbers_stay_within_a_long():
    far = {"last_commitlog_offset": MOST, "last_store_size": 100, "first_commitlog_offset": -MOST}
    row = one(pulls=[far | {"first_queue_offset": 4}], polls=[(20, -MOST), (30, MOST)])
    assert (row["diff_min"], row["diff_max"]) == (-MOST, 0)
    low = {"first_commitlog_offset": -MOST, "last_commitlog_offset": -MOST, "last_store_size": -100}
    row = one(pulls=[low], polls=[(20, 5), (30, MOST)])
    assert (row["diff_min"], row["diff_max"]) == (MOST, MOST)


def test_clock_that_is_off_leaves_undetermined_what_the_log_end_decided():
    row = one(skewed=["c"])
    assert (row["diff_min"], row["diff_max"], row["expected_suggest"], row["judgement"]) == (
        *(None, None, None),
        "undetermined",
    )
    assert row["reason"] == "the client's clock is wrong, so the time of the broker's decision is unknown"
    assert one(skewed=["another"]) == one()
    outside = [NOTHING_FOUND | {"remark": "OFFSET_OVERFLOW_ONE"}]
    assert judged(skewed=["c"], pulls=outside)[:2] == (0, "agree")


def test_columns_and_types_are_the_contracts():
    columns = [c for c in load_contracts()["gold.slave_suggestion"].columns if c.name != "cluster"]
    schema = pl.DataFrame(pl.from_arrow(arrow_schema((c.name, c.type) for c in columns).empty_table())).schema

    def frame(*listed):
        return slave_suggestions(
            rows("silver.pull", PULL, listed),
            rows("silver.consume", {}, []),
            rows("silver.produce", {}, []),
            *(rows(f"silver.{name}", {}, []) for name in ("broker", "subscription_group", "broker_runtime")),
            0,
            ["c"],
        )

    assert frame().columns == list(COLUMNS)
    assert frame().schema == frame({}).schema == schema
    assert frame().is_empty()


OFFSETS = st.none() | st.integers(0, 8)
PULLS = st.lists(
    st.fixed_dictionaries(
        {
            "queue_id": st.integers(0, 5),
            "queue_offset": st.integers(0, 8),
            "min_offset": OFFSETS,
            "max_offset": OFFSETS,
            "next_begin_offset": OFFSETS,
            "response_code": st.sampled_from([None, 0, 19, 20, 21]),
            "remark": st.sampled_from([None, "FOUND", "OFFSET_FOUND_NULL", "NO_MATCHED_MESSAGE", "OFFSET_TOO_SMALL"]),
            "last_queue_offset": OFFSETS,
            "last_commitlog_offset": st.none() | st.integers(0, 800),
            "last_store_size": st.none() | st.just(100),
            "broker_id": st.none() | st.integers(0, 1),
            "suggest_which_broker_id": st.none() | st.integers(0, 1),
            "client_id": st.sampled_from(["c", "skewed"]),
        }
    ),
    max_size=12,
)
VERSIONS = st.sampled_from(["4.9.7", "5.3.3", "V5_3_3", "unknown", None])


@given(PULLS, VERSIONS, st.sampled_from([None, True, False]), st.sampled_from([None, 0, 1]))
def test_result_does_not_depend_on_shards_and_follows_the_law(pulls, version, enabled, slowly):
    pull = rows("silver.pull", PULL, pulls)
    consume, produce = rows("silver.consume", {}, []), rows("silver.produce", {}, [])
    broker = rows("silver.broker", BROKER, [{"rocketmq_version": version, "slave_read_enable": enabled}])
    group = rows("silver.subscription_group", GROUP, [{"which_broker_when_consume_slowly": slowly}])
    polls = [{"ts": at(s), "commit_log_max_offset": end} for s, end in ((20, 700), (30, 900))]
    runtime = rows("silver.broker_runtime", {"broker_name": "b", "broker_id": 0}, polls)
    whole = slave_suggestions(pull, consume, produce, broker, group, runtime, 0, ["skewed"]).sort("record_id")
    shards = [pull.filter(pl.col("queue_id") % 4 == n) for n in range(4)]
    parts = [slave_suggestions(s, consume, produce, broker, group, runtime, 0, ["skewed"]) for s in reversed(shards)]
    assert pl.concat(parts).sort("record_id").equals(whole)
    since_5 = version == "5.3.3"
    for row in whole.rows(named=True):
        if row["expected_suggest"] is None:
            continue
        by_law = {
            slow: suggest_which_broker_id(slow, enabled, 0, slowly, version="5.3.3" if since_5 else "4.9.7")
            for slow in (True, False)
        }
        if row["reason"].startswith(("slow:", "not slow:")):
            expected = {by_law[row["reason"].startswith("slow:")]}
            is_slow = (row["diff_min"] or 0) > row["memory"]
            assert is_slow == row["reason"].startswith("slow:")
        else:
            expected = {by_law[False]} if "nothing was read" in row["reason"] else set(by_law.values())
        assert {row["expected_suggest"]} == expected
        assert row["judgement"] == ("agree" if row["expected_suggest"] == row["recorded_suggest"] else "differ")
