"""gold.slave_suggestion: each suggestion against DefaultMessageStore#getMessage and PullMessageProcessor.

The broker compares diff = end of its commit log - place of the last message read, with a share of its memory. Both are
known only within bounds: the end from polls before and after, the place from recorded messages. If both bounds of diff
give the same suggestion, it is determined; otherwise it is undetermined.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import polars as pl
import pyarrow as pa

from mqreplay.core import slave_suggestion as law
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.decision import QUEUE_WORDS, Decision
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, doubted
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.distinct import distinct_cases
from mqreplay.evidence.arrays.frame_arrays import INT64_MIN, less
from mqreplay.evidence.brokers.broker_descriptions import STORE_PLUG_IN, with_descriptions
from mqreplay.evidence.brokers.log_marks import with_marks
from mqreplay.evidence.frames import first_of

FOUND, NOT_FOUND, RETRY_IMMEDIATELY = 0, 19, 20  # ResponseCode of PULL_MESSAGE
NEEDED = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "broker_id", "client_id", "record_id"),
    *("request_ts", "response_ts", "queue_offset", "response_code", "remark", "next_begin_offset"),
    *("min_offset", "max_offset", "suggest_which_broker_id", "last_store_size"),
    *("first_queue_offset", "first_commitlog_offset", "last_queue_offset", "last_commitlog_offset"),
)
COLUMNS = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "client_id", "request_ts", "broker_id"),
    *("response_code", "diff_min", "diff_max", "memory", "effective_ratio", "expected_suggest", "recorded_suggest"),
    *("judgement", "reason", "record_id"),
)
# What an answer is judged by, besides COLUMNS.
CONDITIONS = (
    *("suggest_which_broker_id", "has_broker", "has_group", "has_store_plug_in", "in_container", "may_be_in_container"),
    *("since_5", "slave_read_enable", "compares", "if_slow", "if_not", "case"),
)
SUGGESTION_CASE: Final = pa.schema(
    {
        "physical_memory_bytes": pa.int64(),
        "effective_ratio": pa.int64(),
        "diffs": pa.list_(pa.field("element", pa.int64())),  # in order
    }
)
SUGGESTION_ANSWER: Final = pa.schema({"near_until": pa.int64()})
SKEWED = "the client's clock is wrong, so the time of the broker's decision is unknown"
CONTAINER = "a broker in a container always suggests the master, and whether this one is in one is not recorded"
ACTING = "a slave that may act as master suggests by whether its master lives, which is not recorded"
UNBOUNDED = "?"


def slave_suggestions(
    pull: pl.DataFrame,
    consume: pl.DataFrame,
    produce: pl.DataFrame,
    broker: pl.DataFrame,
    subscription_group: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    poll_slack_ms: int,
    skewed: Sequence[str] = (),
) -> pl.DataFrame:
    """Return one row of gold.slave_suggestion for each pull of a shard whose answer has a suggestion.

    ``consume`` and ``produce`` are those of the shard's queues; the other tables are whole. ``poll_slack_ms`` is the
    largest difference between the time of a poll and the time at which the broker read the end of its commit log.
    ``skewed`` are the clients with a wrong clock: the times of their answers are unknown.
    """
    evidence = (consume, produce, broker, subscription_group, broker_runtime, poll_slack_ms)
    asked, cases = suggestion_cases(pull, *evidence)
    return judged_suggestions(asked, slave_suggestion(cases), skewed)


def suggestion_cases(
    pull: pl.DataFrame,
    consume: pl.DataFrame,
    produce: pl.DataFrame,
    broker: pl.DataFrame,
    subscription_group: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    poll_slack_ms: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the answers for `judged_suggestions`, and a case of SUGGESTION_CASE for each setting of memory.

    Its diffs are the distinct bounds of its answers. The parameters are those of `slave_suggestions`.
    """
    is_answered = pl.col("suggest_which_broker_id").is_not_null() & pl.col("response_ts").is_not_null()
    marked = with_marks(pull.select(NEEDED), is_answered, broker_runtime, consume, produce, poll_slack_ms)
    bounded = with_diffs(with_bounds(with_descriptions(marked, broker, subscription_group)))
    settings, case_of = distinct_cases(bounded.select("physical_memory_bytes", "effective_ratio"))
    diffs = pl.col("diff_min").append(pl.col("diff_max")).drop_nulls().unique().sort()
    asked = bounded.with_columns(pl.Series("case", case_of))
    cases = settings.with_columns(asked.group_by("case").agg(diffs.alias("diffs")).sort("case")["diffs"])
    return asked.select(*[name for name in (*COLUMNS, *CONDITIONS) if name in asked.columns]), cases


def slave_suggestion(cases: pl.DataFrame, _: None = None) -> pl.DataFrame:
    """Return the greatest diff up to which DefaultMessageStore#getMessage suggests no slave, as SUGGESTION_ANSWER.

    INT64_MIN if it suggests one at all; null if the broker's memory or ratio is not known.
    """
    near_until = [_near_until(*case) for case in cases.select(SUGGESTION_CASE.names).iter_rows()]
    return pl.DataFrame({"near_until": pl.Series(near_until, dtype=pl.Int64)})


def _near_until(size: int | None, ratio: int | None, diffs: Sequence[int]) -> int | None:
    if size is None or ratio is None:
        return None
    # The law suggests a slave from some diff on. A search asks it about few diffs to find the first.
    slow = bisect_left(diffs, True, key=lambda diff: law.slave_suggestion(diff, 0, size, ratio))
    return diffs[slow - 1] if slow else INT64_MIN


def judged_suggestions(asked: pl.DataFrame, answers: pl.DataFrame, skewed: Sequence[str]) -> pl.DataFrame:
    """Return gold.slave_suggestion of `suggestion_cases`; ``answers`` are the law's to its cases, in order."""
    judged = judge(asked.with_columns(answers["near_until"][asked["case"]]))
    if skewed:
        judged = _without_skewed(judged, pl.col("client_id").is_in(list(skewed)))
    return judged.rename({"suggest_which_broker_id": "recorded_suggest"}).select(COLUMNS)


def with_bounds(pull: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls with bounds, in bytes, of the values that the broker compared:

    log_end_min, log_end_max  the end of the commit log. The log only grows, so the last poll before the request bounds
                              it from below, and the first after the answer from above; the answer's own last message
                              lies below the end too.
    place_min, place_max      the place of the last message read, which is the one before next_begin_offset. 4.9 notes
                              the place before it asks whether the batch is full, and so may have noted the place of
                              the next message; 5.3 notes it after.
    """
    end_of_last = pl.col("last_commitlog_offset").cast(pl.Int128) + pl.col("last_store_size")
    own = end_of_last.cast(pl.Int64, strict=False)  # null if it does not fit a long
    # 4.9 also reads what arrives after it read max_offset.
    is_full = (pl.col("response_code") == FOUND) & (pl.col("next_begin_offset") != pl.col("max_offset"))
    return pull.with_columns(
        pl.max_horizontal("end_before", own).alias("log_end_min"),
        pl.col("end_after").alias("log_end_max"),
        pl.col("place_before").alias("place_min"),
        pl.when(~pl.col("since_5") & is_full)
        .then(pl.col("next_place"))
        .otherwise(pl.col("place_after"))
        .alias("place_max"),
    )


def with_diffs(bounded: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls with the bounds of diff; null if unknown, or if the broker did not compare."""
    has_read, compares_all = pl.col("has_read"), pl.col("compares_all")
    read_min, read_max = less("log_end_min", "place_max"), less("log_end_max", pl.col("place_min").fill_null(0))
    diff_min = first_of((has_read, read_min), (compares_all, pl.col("log_end_min")))
    diff_max = first_of((has_read, read_max), (compares_all, pl.col("log_end_max")))
    return bounded.with_columns(_has_read().alias("has_read"), _compares_all().alias("compares_all")).with_columns(
        (has_read | compares_all).alias("compares"), diff_min.alias("diff_min"), diff_max.alias("diff_max")
    )


def judge(asked: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls with the suggestion by the law's answers at both bounds, judgement and reason."""
    slow, expected = pl.col("slow"), pl.col("expected_suggest")
    is_far, is_near = pl.col("diff_min") > pl.col("near_until"), pl.col("diff_max") <= pl.col("near_until")
    is_slow = first_of((~pl.col("compares"), False), (is_far, True), (is_near, False))
    if_slow, if_not = pl.col("if_slow"), pl.col("if_not")
    suggestion = first_of((slow, if_slow), (~slow, if_not), (if_slow == if_not, if_slow))
    agreement = first_of(
        (expected.is_null(), UNDETERMINED),
        (expected == pl.col("suggest_which_broker_id"), AGREE),
        (pl.col("has_store_plug_in") | _may_be_in_container(), UNDETERMINED),
        otherwise=DIFFER,
    )
    return (
        asked.with_columns(is_slow.alias("slow"))
        .with_columns(suggestion.alias("expected_suggest"))
        .with_columns(agreement.alias("judgement"), _reason().alias("reason"))
    )


def _may_be_in_container() -> pl.Expr:
    """Return whether a suggestion of the master may be that of a broker in a container."""
    return pl.col("may_be_in_container") & (pl.col("suggest_which_broker_id") == MASTER_ID)


def _in_range() -> pl.Expr:
    offset = pl.col("queue_offset")
    return (offset >= pl.col("min_offset")) & (offset < pl.col("max_offset"))


def _has_read() -> pl.Expr:
    """Return whether the broker read a message; null if unknown.

    The remark is the name of GetMessageStatus; without it, the code and the offsets show nearly the same. Nothing was
    read if the offset is outside the queue: the suggestion flag stays false.
    """
    code, remark = pl.col("response_code"), pl.col("remark")
    read = remark.is_in(["FOUND", "NO_MATCHED_MESSAGE", "MESSAGE_WAS_REMOVING"]) | (code == FOUND)
    none_read = remark.str.contains("^(OFFSET_|NO_ME|NO_MATCHED_L)")
    return first_of((read, True), (none_read, False), (code == RETRY_IMMEDIATELY, _in_range()), otherwise=False)


def _compares_all() -> pl.Expr:
    """Return whether the broker compared with place 0: on OFFSET_FOUND_NULL, 5.3 does, and 4.9 leaves the flag."""
    remark = pl.col("remark")
    unnamed = remark.is_null() & (pl.col("response_code") == NOT_FOUND) & _in_range()
    return (pl.col("since_5") & ((remark == "OFFSET_FOUND_NULL") | unnamed)).fill_null(value=False)


def _reason() -> pl.Expr:
    slow, expected = pl.col("slow"), pl.col("expected_suggest")
    is_open = expected.is_null()
    bounds = pl.format(
        "diff lies between {} and {} bytes, memory is {}",
        pl.col("diff_min").cast(pl.String).fill_null(UNBOUNDED),
        pl.col("diff_max").cast(pl.String).fill_null(UNBOUNDED),
        "memory",
    )
    by_plug_in = pl.col("has_store_plug_in") & (expected != pl.col("suggest_which_broker_id"))
    return first_of(
        (by_plug_in, STORE_PLUG_IN),
        (_may_be_in_container() & (expected != MASTER_ID), CONTAINER),
        (~pl.col("has_broker"), "brokers.json does not describe this broker"),
        (pl.col("slave_read_enable").is_null(), "brokers.json lacks slaveReadEnable of this broker"),
        (~pl.col("has_group"), "no subscriptionGroup.json of this broker has the group"),
        (pl.col("memory").is_null() & is_open, "the broker's memory or ratio is not known"),
        (~pl.col("slave_read_enable"), "slaveReadEnable is false, so the broker always suggests the master"),
        (
            pl.col("in_container") & pl.col("since_5"),
            "the broker runs in a container, so it always suggests the master",
        ),
        (slow.is_null() & is_open, bounds),
        (is_open, ACTING),
        (slow.is_null(), "the group's settings name the same broker for slow and other reads"),
        (~pl.col("compares"), "the offset is outside the queue: nothing was read, so the read is not slow"),
        (slow, pl.format("slow: {}", bounds)),
        otherwise=pl.format("not slow: {}", bounds),
    )


def _without_skewed(judged: pl.DataFrame, is_skewed: pl.Expr) -> pl.DataFrame:
    """Return the rows; decisions by the end of the commit log are undetermined for skewed clients."""
    by_end = is_skewed & pl.col("diff_min").is_not_null()
    return judged.with_columns(
        pl.when(~is_skewed).then(pl.col("diff_min", "diff_max")),
        pl.when(~by_end).then(pl.col("expected_suggest")),
        **doubted(by_end, SKEWED),
    )


SLAVE_SUGGESTION: Final = Decision(
    table="gold.slave_suggestion",
    instant="request_ts",
    one="slave suggestion",
    many="slave suggestions",
    importance=3,
    phrases=(
        QUEUE_WORDS,
        "{diff_min:,} to {diff_max:,} bytes behind, memory {memory:,} bytes",
        "suggested broker id {recorded_suggest}",
        "expected {expected_suggest}",
    ),
    needs=(Need("pull_log"), Need("broker_runtime"), Need("brokers"), Need("subscription_groups")),
)
