"""gold.slave_suggestion: each suggestion against DefaultMessageStore#getMessage and PullMessageProcessor.

The broker compares diff = end of its commit log - place of the last message read, with a share of its memory. Both are
known only within bounds: the end from polls before and after, the place from recorded messages. If both bounds of diff
give the same suggestion, it is determined; otherwise it is undetermined.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.evidence.arrays.saturating import less
from mqreplay.evidence.brokers.broker_descriptions import STORE_PLUG_IN, with_descriptions
from mqreplay.evidence.brokers.log_marks import with_marks

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
SKEWED = "the client's clock is wrong, so the time of the broker's decision is unknown"
CONTAINER = "a broker in a container always suggests the master, and whether this one is in one is not recorded"
ACTING = "a slave that may act as master suggests by whether its master lives, which is not recorded"
UNBOUNDED = "?"


def slave_suggestion(
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
    is_answered = pl.col("suggest_which_broker_id").is_not_null() & pl.col("response_ts").is_not_null()
    marked = with_marks(pull.select(NEEDED), is_answered, broker_runtime, consume, produce, poll_slack_ms)
    judged = judge(with_bounds(with_descriptions(marked, broker, subscription_group)))
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


def judge(bounded: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls with the bounds of diff, the suggestion by the rule at both, judgement and reason."""
    memory, slow, expected = pl.col("memory"), pl.col("slow"), pl.col("expected_suggest")
    has_read, compares_all = pl.col("has_read"), pl.col("compares_all")
    diff_min = pl.when(has_read).then(less("log_end_min", "place_max")).when(compares_all).then(pl.col("log_end_min"))
    diff_max = (
        pl.when(has_read)
        .then(less("log_end_max", pl.col("place_min").fill_null(0)))
        .when(compares_all)
        .then(pl.col("log_end_max"))
    )
    is_slow = (
        pl.when(~pl.col("compares"))
        .then(False)
        .when(pl.col("diff_min") > memory)
        .then(True)
        .when(pl.col("diff_max") <= memory)
        .then(False)
    )
    suggestion = (
        pl.when(slow)
        .then(pl.col("if_slow"))
        .when(~slow)
        .then(pl.col("if_not"))
        .when(pl.col("if_slow") == pl.col("if_not"))
        .then(pl.col("if_slow"))
    )
    agreement = (
        pl.when(expected.is_null())
        .then(pl.lit("undetermined"))
        .when(expected == pl.col("suggest_which_broker_id"))
        .then(pl.lit("agree"))
        .when(pl.col("has_store_plug_in") | _may_be_in_container())
        .then(pl.lit("undetermined"))
        .otherwise(pl.lit("differ"))
    )
    return (
        bounded.with_columns(_has_read().alias("has_read"), _compares_all().alias("compares_all"))
        .with_columns(
            (has_read | compares_all).alias("compares"), diff_min.alias("diff_min"), diff_max.alias("diff_max")
        )
        .with_columns(is_slow.alias("slow"))
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
    return (
        pl.when(read)
        .then(True)
        .when(none_read)
        .then(False)
        .when(code == RETRY_IMMEDIATELY)
        .then(_in_range())
        .otherwise(False)
    )


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
    return (
        pl.when(by_plug_in)
        .then(pl.lit(STORE_PLUG_IN))
        .when(_may_be_in_container() & (expected != MASTER_ID))
        .then(pl.lit(CONTAINER))
        .when(~pl.col("has_broker"))
        .then(pl.lit("brokers.json does not describe this broker"))
        .when(pl.col("slave_read_enable").is_null())
        .then(pl.lit("brokers.json lacks slaveReadEnable of this broker"))
        .when(~pl.col("has_group"))
        .then(pl.lit("no subscriptionGroup.json of this broker has the group"))
        .when(pl.col("memory").is_null() & is_open)
        .then(pl.lit("the broker's memory or ratio is not known"))
        .when(~pl.col("slave_read_enable"))
        .then(pl.lit("slaveReadEnable is false, so the broker always suggests the master"))
        .when(pl.col("in_container") & pl.col("since_5"))
        .then(pl.lit("the broker runs in a container, so it always suggests the master"))
        .when(slow.is_null() & is_open)
        .then(bounds)
        .when(is_open)
        .then(pl.lit(ACTING))
        .when(slow.is_null())
        .then(pl.lit("the group's settings name the same broker for slow and other reads"))
        .when(~pl.col("compares"))
        .then(pl.lit("the offset is outside the queue: nothing was read, so the read is not slow"))
        .when(slow)
        .then(pl.format("slow: {}", bounds))
        .otherwise(pl.format("not slow: {}", bounds))
    )


def _without_skewed(judged: pl.DataFrame, is_skewed: pl.Expr) -> pl.DataFrame:
    """Return the rows; decisions by the end of the commit log are undetermined for skewed clients."""
    decided = is_skewed & pl.col("diff_min").is_not_null()
    return judged.with_columns(
        pl.when(~is_skewed).then(pl.col("diff_min", "diff_max")),
        pl.when(~decided).then(pl.col("expected_suggest")),
        pl.when(decided).then(pl.lit("undetermined")).otherwise(pl.col("judgement")).alias("judgement"),
        pl.when(decided).then(pl.lit(SKEWED)).otherwise(pl.col("reason")).alias("reason"),
    )
