"""gold.pull_batch: the size of each answer to a pull, against DefaultMessageStore#isTheBatchFull.

One answer has at most 32 messages and 256 KiB from memory, 8 messages and 64 KiB from disk, unless it is one message. A
message is on disk if it lies further from the end of the commit log than the share of memory that also decides the
suggestion of a slave: reads that are slow for certain in gold.slave_suggestion are reads from disk. Batches within
their limits are only counted, in gold.judgement.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.core.slave_suggestion import TransferLimits, can_be_batch, transfer_limits
from mqreplay.core.version import BROKER_4
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision
from mqreplay.decisions.slave_suggestion import FOUND
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.brokers.broker_descriptions import (
    STORE_PLUG_IN,
    descriptions,
    has_store_plug_in,
    valid_at,
    version_of,
)
from mqreplay.evidence.frames import columns, with_flag, with_law
from mqreplay.evidence.intervals import with_session
from mqreplay.words.keys import GROUP_QUEUE

BATCH_TABLE: Final = "gold.pull_batch"
COLUMNS: Final = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "client_id", "request_ts", "broker_id"),
    *("msg_count", "body_bytes", "from_disk", "most_messages", "most_bytes", "judgement", "reason", "record_id"),
)
FROM_DISK: Final = "read from disk, and within its limits"
WITHIN: Final = "within the limits of reads from memory; whether it was read from disk is not certain"
LEAST_PULLS: Final = 2  # one read has no speed
READS_KEPT: Final = 50  # reads from disk that are kept as evidence of a run, the first
CASE: Final = (
    *("msg_count", "body_bytes", "last_store_size", "from_disk", "version"),
    *("memory_messages", "memory_bytes", "disk_messages", "disk_bytes"),
)
LIMITS: Final[dict[str, pl.DataType]] = {
    **columns("ts", "broker_name", "broker_id", "memory_messages", "memory_bytes", "disk_messages", "disk_bytes"),
    "version": pl.String(),
    "has_store_plug_in": pl.Boolean(),
}


class Batches(NamedTuple):
    """The batches of a shard.

    differing: the rows of gold.pull_batch
    counts: how many were judged (columns of judgements_of_shard)
    disk_runs: the reads from disk, one row a queue and time (see `_runs`)
    """

    differing: pl.DataFrame
    counts: pl.DataFrame
    disk_runs: pl.DataFrame


def pull_batches(
    pull: pl.DataFrame, suggestions: pl.DataFrame, broker: pl.DataFrame, of_day: pl.Expr, gap_s: int
) -> Batches:
    """Judge the answers of a shard that have messages. ``suggestions`` is the frame of `suggestion_cases`.

    Only reads from disk, and batches above the least limits of any broker, are looked at one by one. Reads from disk
    of a queue that are ``gap_s`` seconds apart or less are one run.
    """
    count, size = pl.col("msg_count"), pl.col("body_bytes")
    limits = _limits(broker)
    found = (pl.col("response_code") == FOUND) & (count > 0)
    is_large = (count > _least(limits, 0)) | ((size > _least(limits, 1)) & (count > 1))
    slow = suggestions.filter((pl.col("diff_min") > pl.col("memory")) & (pl.col("response_code") == FOUND))
    slow = slow.select("record_id", "memory", "effective_ratio")
    disk = pull.filter(found).join(slow, "record_id") if len(slow) else _none_of(pull, slow)
    large = pull.filter(found & is_large)
    if len(disk):
        large = large.join(disk.select("record_id"), "record_id", how="anti")
    suspects = pl.concat([disk.with_columns(from_disk=True), large.with_columns(from_disk=False)], how="diagonal")
    judged = _judge(suspects, limits).filter(of_day)
    seen = pull.filter(found & of_day).group_by("day").agg(pl.len().cast(pl.Int64).alias("judged"))
    return Batches(
        judged.filter(pl.col("judgement") == "differ").select(COLUMNS),
        _counts(seen, judged),
        _runs(disk, pull.filter(found) if len(disk) else disk, limits, gap_s),
    )


def _limits(broker: pl.DataFrame) -> pl.DataFrame:
    """Return the limits of each description of a broker, of the columns LIMITS."""
    rows = []
    for each, named in descriptions(broker.sort("ts").with_columns(has_store_plug_in())):
        of = transfer_limits(named)
        memory = (of.max_transfer_count_on_message_in_memory, of.max_transfer_bytes_on_message_in_memory)
        disk = (of.max_transfer_count_on_message_in_disk, of.max_transfer_bytes_on_message_in_disk)
        of_broker = (version_of(each), each["has_store_plug_in"])
        rows.append((each["ts"], each["broker_name"], each["broker_id"], *memory, *disk, *of_broker))
    return pl.DataFrame(rows, LIMITS, orient="row")


def _least(limits: pl.DataFrame, which: int) -> int:
    """Return the least limit of reads from memory: of messages (0) or bytes (1)."""
    default = TransferLimits()
    of_default = (default.max_transfer_count_on_message_in_memory, default.max_transfer_bytes_on_message_in_memory)
    known: Iterable[int] = limits[("memory_messages", "memory_bytes")[which]]
    return min([of_default[which], *known])


def _none_of(pull: pl.DataFrame, slow: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([pull.clear(), slow.drop("record_id").clear()], how="horizontal")


def _judge(suspects: pl.DataFrame, limits: pl.DataFrame) -> pl.DataFrame:
    """Return the batches with their limits, judgement and reason; the rule is asked where a limit is passed."""
    known = valid_at(suspects, limits, "request_ts")
    default = TransferLimits()
    limit = {
        "memory_messages": default.max_transfer_count_on_message_in_memory,
        "memory_bytes": default.max_transfer_bytes_on_message_in_memory,
        "disk_messages": default.max_transfer_count_on_message_in_disk,
        "disk_bytes": default.max_transfer_bytes_on_message_in_disk,
    }
    known = known.with_columns(pl.col(name).fill_null(value) for name, value in limit.items())
    of_place = [
        pl.when("from_disk").then(f"disk_{what}").otherwise(f"memory_{what}").alias(f"most_{what}")
        for what in ("messages", "bytes")
    ]
    named = known.with_columns(of_place)
    passes = (pl.col("msg_count") > pl.col("most_messages")) | (pl.col("body_bytes") > pl.col("most_bytes"))
    # Each distinct batch is judged once, however many pulls share it.
    large = with_law(named.filter(passes), CASE, {"is_possible": pl.Boolean()}, _is_possible)
    judged = with_flag(named, large.filter(~pl.col("is_possible")), CASE, "is_broken", nulls_equal=True)
    is_broken = pl.col("is_broken")
    by_plug_in = is_broken & pl.col("has_store_plug_in").fill_null(value=False)
    reason = pl.format(
        "{} messages of {} bytes read from {}, which gives at most {} and {} bytes",
        "msg_count",
        "body_bytes",
        pl.when("from_disk").then(pl.lit("disk")).otherwise(pl.lit("memory")),
        "most_messages",
        "most_bytes",
    )
    return judged.with_columns(
        **decided(
            (by_plug_in, UNDETERMINED, STORE_PLUG_IN),
            (is_broken, DIFFER, reason),
            ("from_disk", AGREE, FROM_DISK),
            otherwise=(AGREE, WITHIN),
        )
    )


def _is_possible(*case: Any) -> bool:
    """Return whether a broker may answer with a batch: a row of the columns CASE."""
    count, size, last, from_disk, version, memory_messages, memory_bytes, disk_messages, disk_bytes = case
    limits = TransferLimits(memory_bytes, memory_messages, disk_bytes, disk_messages)
    return can_be_batch(count or 0, size or 0, last or 0, bool(from_disk), limits, version or BROKER_4)


def _counts(seen: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return how many batches were judged: those looked at by their reasons, and all others."""
    by_reason = judged.group_by("day", "judgement", pl.col("reason").str.replace_all("[0-9]+", "N")).agg(
        pl.len().cast(pl.Int64).alias("decisions")
    )
    looked_at = by_reason.group_by("day").agg(pl.col("decisions").sum())
    rest = seen.join(looked_at, "day", how="left").select(
        "day",
        pl.lit("agree").alias("judgement"),
        pl.lit(WITHIN).alias("reason"),
        (pl.col("judged") - pl.col("decisions").fill_null(0)).alias("decisions"),
    )
    counted = pl.concat([by_reason, rest.filter(pl.col("decisions") > 0)])
    return counted.select("day", pl.lit(BATCH_TABLE).alias("decision"), "judgement", "reason", "decisions")


def _runs(disk: pl.DataFrame, found: pl.DataFrame, limits: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return the reads from disk that left messages in the queue, of each queue and group, joined over time.

    Columns: those of QUEUE, from_ts, to_ts, pulls, messages, bytes, arrived (messages that came to the queue
    meanwhile), waiting (messages after the last read), never_in_memory (the broker's memory is 0 bytes or fewer, so
    that it takes all messages to be on disk), disk_messages, disk_bytes (the largest limits), record_ids (the first),
    went_on (the group later read from memory, or the rest). ``found`` are all answers with messages.
    """
    behind = disk.filter(pl.col("next_begin_offset") < pl.col("max_offset"))
    known = valid_at(behind, limits, "request_ts")
    ends = (pl.col("request_ts").alias("from_ts"), pl.coalesce("response_ts", "request_ts").alias("to_ts"))
    spans = with_session(known.with_columns(ends), GROUP_QUEUE, "from_ts", "to_ts", gap_s)
    runs = spans.group_by(*GROUP_QUEUE, "session", maintain_order=True).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.len().cast(pl.Int64).alias("pulls"),
        pl.col("msg_count").cast(pl.Int64).sum().alias("messages"),
        pl.col("body_bytes").cast(pl.Int64).sum().alias("bytes"),
        (pl.col("max_offset").max() - pl.col("max_offset").min()).alias("arrived"),
        (pl.col("max_offset") - pl.col("next_begin_offset")).last().alias("waiting"),
        (pl.col("memory") <= 0).any().alias("never_in_memory"),
        pl.col("disk_messages").max(),
        pl.col("disk_bytes").max(),
        pl.col("record_id").head(READS_KEPT).alias("record_ids"),
        pl.col("request_ts").max().alias("read_ts"),
    )
    runs = runs.filter(pl.col("pulls") >= LEAST_PULLS)
    reads = found.join(runs.select(GROUP_QUEUE).unique(), GROUP_QUEUE, how="semi").group_by(GROUP_QUEUE)
    with_last = runs.join(reads.agg(pl.col("request_ts").max().alias("last_ts")), GROUP_QUEUE, how="left")
    went_on = (pl.col("last_ts") > pl.col("read_ts")).fill_null(value=False).alias("went_on")
    return with_last.with_columns(went_on).drop("last_ts", "read_ts")


PULL_BATCH: Final = Decision(
    table="gold.pull_batch",
    instant="request_ts",
    one="batch of a pull",
    many="batches of pulls",
    importance=14,
    phrases=(QUEUE_WORDS, "{msg_count} messages, {body_bytes:,} bytes", VERDICT_WORDS),
    needs=(Need("pull_log"), Need("broker_runtime"), Need("brokers")),
)
