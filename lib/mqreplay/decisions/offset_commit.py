"""gold.offset_commit: each commit of an offset against MixAll#compareAndIncreaseOnly.

What a client finished raises the offset in its memory, and never lowers it (RemoteBrokerOffsetStore#updateOffset with
increaseOnly). It commits what is there: so a commit is at least the one before it, or the stored offset that the client
read since. Only resets and corrections replace the offset (MQClientInstance#resetOffset, OFFSET_ILLEGAL of
DefaultMQPushConsumerImpl). The broker stores any offset that it gets, also a lower one
(ConsumerOffsetManager#commitOffset).
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.offset_store import update_offset
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import with_flag
from mqreplay.evidence.members.membership import push_consumers
from mqreplay.evidence.offsets.queue_events import REFUSED_COMMIT
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_QUEUE, MEMBER

# The offset in a client's memory before a commit, as SQL over silver.offset_commit: its last commit, or the stored
# offset that it read since. Only packets have a mode; lines of a client's log have another clock.
MEMORY: Final = "previous_offset"
KEPT_OFFSET: Final = "COALESCE(commit_offset, answer_offset)"
KEPT_AT: Final = "CASE WHEN kind = 'QUERY' THEN COALESCE(response_ts, ts) ELSE ts END"
IN_MEMORY_OF: Final = (*CLIENT_QUEUE, "mode IS NULL")
INCREASED: dict[str, pl.DataType] = {"expected_offset": pl.Int64()}
COLUMNS: Final = (
    *("day", *CLIENT_QUEUE, "ts", MEMORY, "commit_offset", "expected_offset", "outcome", "judgement", "reason"),
    "record_id",
)
SET_BACK: Final = ("reset", "corrected")  # causes that lower the offset in the memory of a client
RESET: Final = "lower than {}, the offset in the client's memory, after a reset of the group"
CORRECTED: Final = "lower than {}, the offset in the client's memory, after a correction to the end of the queue"
SET_BY_APPLICATION: Final = "lower than {}, the offset in the client's memory: a pull consumer may set any"
READ_UNKNOWN: Final = "lower than {}, the offset in the client's memory; what it read since was not recorded"
UNEXPLAINED: Final = "lower than {}, the offset in the client's memory, and no reset or correction was recorded"


def compare_and_increase(commits: pl.DataFrame, _: None = None) -> pl.DataFrame:
    """Return the offset that MixAll#compareAndIncreaseOnly keeps at each commit, as INCREASED.

    Null in rows without a commit_offset. All in messages.
    """
    pairs = zip(commits[MEMORY], commits["commit_offset"], strict=True)
    kept = [None if new is None else update_offset(old, new, increase_only=True) for old, new in pairs]
    return pl.DataFrame({"expected_offset": pl.Series(kept, dtype=pl.Int64)})


def offset_commits(
    offset_commit: pl.DataFrame,
    new_clients: pl.DataFrame,
    consumers: pl.DataFrame,
    breaks: pl.DataFrame,
    resets: pl.DataFrame,
    reset_reach_s: int,
) -> pl.DataFrame:
    """Return one row of gold.offset_commit for each UPDATE_CONSUMER_OFFSET of ``offset_commit``.

    ``offset_commit`` has previous_offset and INCREASED, too. ``new_clients`` are the clients that began in the
    recording (client_id), ``consumers`` the frame of queue_start.consumers. Within ``reset_reach_s`` seconds, a lower
    commit is explained by ``breaks``, rows of gold.offset_continuity, with a cause of SET_BACK, and by ``resets`` as
    clients received them (offset_causes.offset_resets).
    """
    updates = offset_commit.filter((pl.col("kind") == "UPDATE") & pl.col("commit_offset").is_not_null())
    known_breaks = breaks.filter(pl.col("cause").is_in(SET_BACK)).select(*GROUP_QUEUE, "cause", "to_ts")
    received = resets.select(*GROUP_QUEUE, pl.lit("reset").alias("cause"), pl.col("ts").alias("to_ts"))
    causes = pl.concat([known_breaks, received])
    reach = pl.duration(seconds=reset_reach_s)
    known = with_flag(updates, push_consumers(consumers), MEMBER, "is_push")
    known = with_flag(known, new_clients, ["client_id"], "is_new").with_columns((pl.col("ts") + reach).alias("_latest"))
    known = as_of(known, causes, GROUP_QUEUE, "_latest", {"_cause": "cause", "_at": "to_ts"}, right_at="to_ts")
    cause = pl.when(pl.col("_at") >= pl.col("ts") - reach).then(pl.col("_cause"))
    before, new, kept = pl.col(MEMORY), pl.col("commit_offset"), pl.col("expected_offset")
    outcome = pl.when(REFUSED_COMMIT).then(pl.lit("refused")).when(new < before).then(pl.lit("lowered"))
    verdict = decided(
        (before.is_null() & pl.col("is_new"), AGREE, "the first offset of a new client: any is kept"),
        (before.is_null(), UNDETERMINED, "the client is older than the recording: the offset in its memory is unknown"),
        (new == kept, AGREE, "at least the offset in the client's memory"),
        (cause == "reset", AGREE, pl.format(RESET, before)),
        (cause == "corrected", AGREE, pl.format(CORRECTED, before)),
        (~pl.col("is_push"), UNDETERMINED, pl.format(SET_BY_APPLICATION, before)),
        # A log's line has no QUERY_CONSUMER_OFFSET: what the client read since is not known.
        (pl.col("mode").is_null(), UNDETERMINED, pl.format(READ_UNKNOWN, before)),
        otherwise=(DIFFER, pl.format(UNEXPLAINED, before)),
    )
    # A request without an answer may not have arrived; most are sent one way, and the client sees no error.
    unsent = pl.col("error").is_not_null() & pl.col("response_code").is_null()
    return known.with_columns(
        pl.when(~unsent).then(outcome.otherwise(pl.lit("stored"))).alias("outcome"), **verdict
    ).select(COLUMNS)


OFFSET_COMMIT: Final = Decision(
    table="gold.offset_commit",
    instant="ts",
    one="commit",
    many="commits",
    importance=23,
    phrases=(QUEUE_WORDS, "offset {commit_offset:,}", "before it {previous_offset:,}", "{outcome}", VERDICT_WORDS),
    needs=(Need("offset_commits"),),
)
