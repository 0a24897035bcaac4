"""gold.slave_suggestion: each suggestion against DefaultMessageStore#getMessage and PullMessageProcessor.

The broker compares diff = end of its commit log - place of the last message looked at, with a share of its memory. Both
ends are known within bounds only: the commit log's end from polls before and after, the place from messages whose
offsets were seen. Where both bounds fall on one side the suggestion is determined; where they do not, it is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.bind import columns as twins
from mqreplay.bind import functions as rocketmq
from mqreplay.core.version import BROKER_4
from mqreplay.replay.far import less
from mqreplay.replay.log_marks import with_marks
from mqreplay.replay.spans import join_span

FOUND, NOT_FOUND, RETRY_IMMEDIATELY = 0, 19, 20  # ResponseCode of PULL_MESSAGE
BROKER = ["broker_name", "broker_id"]


NEEDED = [
    *("cluster", "day", "consumer_group", "topic", "broker_name", "queue_id", "broker_id", "client_id", "record_id"),
    *("request_ts", "response_ts", "queue_offset", "response_code", "remark", "next_begin_offset"),
    *("min_offset", "max_offset", "suggest_which_broker_id", "last_store_size"),
    *("first_queue_offset", "first_commitlog_offset", "last_queue_offset", "last_commitlog_offset"),
]


def slave_suggestion(
    pull: DataFrame,
    broker: DataFrame,
    broker_runtime: DataFrame,
    subscription_group: DataFrame,
    consume: DataFrame,
    produce: DataFrame,
    poll_slack_ms: int,
    skewed: Sequence[str] = (),
) -> DataFrame:
    """One row a row of silver.pull whose answer has a suggestion.

    ``poll_slack_ms`` is how far a poll's time may be off the moment the broker looked at its commit log. ``skewed``:
    clients whose clock is off: when the broker looked for them is not known.
    """
    has_one = F.col("suggest_which_broker_id").isNotNull() & F.col("response_ts").isNotNull()
    narrow = pull.select(*NEEDED)  # rows travel to workers and back: they had better be narrow
    marked = with_marks(narrow.where(has_one), narrow.where(~has_one), broker_runtime, consume, produce, poll_slack_ms)
    described = with_group(with_broker(marked, broker), subscription_group)
    placed = with_place(with_log_end(described))
    judged = judge(placed)
    if skewed:
        judged = _unknown_when(judged, F.col("client_id").isin(*skewed))
    return judged.select(
        "cluster",
        "day",
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
        "request_ts",
        "broker_id",
        "response_code",
        "diff_min",
        "diff_max",
        "memory",
        F.col("b.ratio").alias("effective_ratio"),
        "expected_suggest",
        F.col("suggest_which_broker_id").alias("recorded_suggest"),
        "judgement",
        "reason",
        "record_id",
    )


def _unknown_when(judged: DataFrame, off: Column) -> DataFrame:
    """What the commit log's end decided is not known for these rows."""
    decided = off & F.col("diff_min").isNotNull()
    unknown = {
        "diff_min": F.when(~off, F.col("diff_min")),
        "diff_max": F.when(~off, F.col("diff_max")),
        "expected_suggest": F.when(~decided, F.col("expected_suggest")),
        "judgement": F.when(decided, "undetermined").otherwise(F.col("judgement")),
        "reason": F.when(decided, "the client's clock is off: when the broker looked is not known").otherwise(
            F.col("reason")
        ),
    }
    return judged.select(*[unknown.get(name, F.col(name)).alias(name) for name in judged.columns])


def with_broker(pull: DataFrame, broker: DataFrame) -> DataFrame:
    """Adds ``b``: the broker as last described before the pull, with the ratio it works with."""
    # Where the recorder did not ask the running broker, its version's rule says what becomes of the configured ratio.
    by_rule = rocketmq.effective_ratio.arrow_udf(
        "access_message_in_memory_max_ratio", "broker_role", "rocketmq_version"
    ).value
    described = broker.withColumn("ratio", F.coalesce("effective_access_message_in_memory_max_ratio", by_rule))
    value = F.struct(
        _since_5("rocketmq_version").alias("since_5"),
        "slave_read_enable",
        "ratio",
        twins.memory_threshold(F.col("physical_memory_bytes"), F.col("ratio")).alias("memory"),
    )
    return join_span(pull, "request_ts", described, "ts", BROKER, value, "b")


def with_group(pull: DataFrame, subscription_group: DataFrame) -> DataFrame:
    """Adds ``g``: where the group reads when not slow and when slow, by the broker's own table at that time.

    A group made by its first client is in the file only after the broker's next save.
    """
    known = subscription_group.where(F.col("change") != "removed")
    value = F.struct("group_broker_id", "which_broker_when_consume_slowly")
    return join_span(pull, "request_ts", known, "ts", [*BROKER, "consumer_group"], value, "g")


def with_log_end(pull: DataFrame) -> DataFrame:
    """Adds ``log_end_min`` and ``log_end_max`` (bytes): what the end of the commit log was at least and at most.

    The log only grows, so the last poll before the request bounds it from below, and the first after the answer from
    above; the answer's own last message lies below the end too.
    """
    own = F.try_add("last_commitlog_offset", "last_store_size")
    return pull.withColumns({"log_end_min": F.greatest("end_before", own), "log_end_max": F.col("end_after")})


def with_place(pull: DataFrame) -> DataFrame:
    """Adds ``place_min`` and ``place_max`` (bytes) of the last message that the broker looked at.

    Places rise with offsets within a queue, so a message not seen lies between its neighbours that were. The last one
    looked at is the one before next_begin_offset. 4.9 notes the place before it asks whether the batch is full, and so
    may have noted the next one; 5.3 notes it after.
    """
    older = ~F.col("b.since_5")
    full = (F.col("response_code") == FOUND) & (F.col("next_begin_offset") < F.col("max_offset"))
    place_max = F.when(older & full, F.col("next_place")).otherwise(F.col("place_after"))
    return pull.withColumns({"place_min": F.col("place_before"), "place_max": place_max})


def _since_5(version: str) -> Column:
    return F.element_at(F.split(version, r"\."), 1).try_cast("int") >= 5


def judge(placed: DataFrame) -> DataFrame:
    """Adds the bounds of diff, the suggestion by the law at both, and the judgement."""
    in_range = (F.col("queue_offset") >= F.col("min_offset")) & (F.col("queue_offset") < F.col("max_offset"))
    code, remark = F.col("response_code"), F.col("remark")
    # The remark is GetMessageStatus's name; where a recorder left it out, the code and the offsets tell nearly as much.
    # Nothing was looked at where the offset lies outside the queue: the suggestion flag keeps its false.
    looked = (
        F.when(remark.isin("FOUND", "NO_MATCHED_MESSAGE", "MESSAGE_WAS_REMOVING") | (code == FOUND), True)
        .when(
            remark.startswith("OFFSET_") | remark.startswith("NO_ME") | remark.startswith("NO_MATCHED_L"),
            False,
        )
        .when(code == RETRY_IMMEDIATELY, in_range)
        .otherwise(False)
    )
    # OFFSET_FOUND_NULL: 4.9 leaves the flag, 5.3 compares with place 0.
    unsaid = remark.isNull() & (code == NOT_FOUND) & in_range
    null_found = F.coalesce(F.col("b.since_5") & ((remark == "OFFSET_FOUND_NULL") | unsaid), F.lit(False))
    diff_min = F.when(looked, less("log_end_min", "place_max")).when(null_found, F.col("log_end_min"))
    diff_max = F.when(looked, less("log_end_max", F.coalesce("place_min", F.lit(0)))).when(
        null_found, F.col("log_end_max")
    )
    slow = (
        F.when(~(looked | null_found), False)
        .when(F.col("diff_min") > F.col("b.memory"), True)
        .when(F.col("diff_max") <= F.col("b.memory"), False)
    )
    return (
        placed.withColumns({"diff_min": diff_min, "diff_max": diff_max, "memory": F.col("b.memory")})
        .withColumns({"slow": slow, "looked": looked | null_found})
        .withColumns({"if_slow": _suggested(F.lit(True)), "if_not": _suggested(F.lit(False))})
        .withColumn(
            "expected_suggest",
            F.when(F.col("slow"), F.col("if_slow"))
            .when(~F.col("slow"), F.col("if_not"))
            .when(F.col("if_slow") == F.col("if_not"), F.col("if_slow")),
        )
        .withColumns({"judgement": _judgement(), "reason": _reason()})
    )


def _suggested(slow: Column) -> Column:
    """The suggestion, were the pull slow or not; null where the broker or the group is not described."""

    def by(version: str) -> Column:
        return twins.suggest_which_broker_id(
            slow,
            F.col("b.slave_read_enable"),
            F.col("g.group_broker_id"),
            F.col("g.which_broker_when_consume_slowly"),
            F.col("broker_id"),
            F.lit(0).cast("bigint"),
            F.lit(False),
            version,
        )

    return F.when(F.col("b.since_5"), by("5.3.3")).otherwise(by(BROKER_4))


def _judgement() -> Column:
    expected = F.col("expected_suggest")
    return (
        F.when(expected.isNull(), "undetermined")
        .when(expected == F.col("suggest_which_broker_id"), "agree")
        .otherwise("differ")
    )


def _reason() -> Column:
    bounds = F.concat(
        F.lit("diff lies between "),
        F.coalesce(F.col("diff_min").cast("string"), F.lit("?")),
        F.lit(" and "),
        F.coalesce(F.col("diff_max").cast("string"), F.lit("?")),
        F.lit(" bytes, memory is "),
        F.col("memory"),
    )
    return (
        F.when(F.col("b").isNull(), "brokers.json does not describe this broker")
        .when(F.col("b.slave_read_enable").isNull(), "brokers.json lacks slaveReadEnable of this broker")
        .when(F.col("g").isNull(), "no subscriptionGroup.json of this broker has the group")
        .when(
            F.col("memory").isNull() & F.col("expected_suggest").isNull(),
            "the broker's memory or ratio is not known",
        )
        .when(~F.col("b.slave_read_enable"), "slaveReadEnable is false: always the master")
        .when(F.col("slow").isNull() & F.col("expected_suggest").isNull(), bounds)
        .when(F.col("slow").isNull(), "slow or not, the group reads from the same broker")
        .when(~F.col("looked"), "the offset lies outside the queue: nothing was read, so not slow")
        .when(F.col("slow"), F.concat(F.lit("slow: "), bounds))
        .otherwise(F.concat(F.lit("not slow: "), bounds))
    )
