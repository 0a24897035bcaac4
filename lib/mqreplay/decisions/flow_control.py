"""gold.flow_control: what clients cached, against the flow control of DefaultMQPushConsumerImpl#pullMessage.

Above a threshold a client may not pull: its cache holds at most the threshold and one pull, and nothing is added before
messages finish. Below, it pulls at once. The checks themselves advance lastPullTimestamp, so it shows no pull of a full
cache. Rows of an empty cache that the client pulled for are counted, and not stored.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.flow_control import COUNT, PULL_BATCH_SIZE, SIZE, SPAN, flow_control, largest_cached_count
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.frames import filled, ms, typed, with_law
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.lags.queue_caches import queue_caches
from mqreplay.evidence.members.membership import PUSH
from mqreplay.words.keys import CLIENT_QUEUE

COLUMNS: Final = (
    *("day", *CLIENT_QUEUE, "ts", "source", "cached_msgs", "cached_mib", "head_offset", "last_offset"),
    *("memory_offset", "waiting", "last_pull_ts", "last_consume_ts", "pull_threshold_for_queue"),
    *("pull_threshold_size_for_queue", "consume_max_span", "flow_control", "next_ts", "next_last_offset"),
    *("stalled_by", "stalled_since_ts", "judgement", "reason", "record_id"),
)
CACHE_NUMBERS: Final = (
    *("cached_msgs", "cached_mib", "head_offset", "last_offset", "memory_offset", "waiting"),
    *("pull_threshold_for_queue", "pull_threshold_size_for_queue", "consume_max_span", "next_last_offset"),
)
TYPES: Final[dict[str, pl.DataType]] = {
    name: pl.Int64() if name in CACHE_NUMBERS else INSTANT if name.endswith("ts") else pl.String() for name in COLUMNS
} | {"day": pl.Date(), "queue_id": pl.Int32()}
STALLED_BY_LISTENER, STALLED_BY_BROKER = "listener", "broker"  # stalled_by
PULL_SOURCE, LOG_SOURCE = "pull", "client_log"  # sources
# A client gives up a pull after 30 s, and sends the next one 3 s later (DefaultMQPushConsumerImpl).
PULL_LASTS_S: Final = 35
OUTSTANDING_S: Final = 5  # a refused pull is sent again after 3 s, that of a paused consumer after 1 s
HALF: Final = 0.5
BLOCKED_MS: Final = 60_000  # ConsumerRunningInfo#analyzeProcessQueue
LIMITS: Final = ("count_threshold", "mib_threshold", "span_threshold")
IS_KNOWN: Final = pl.all_horizontal(pl.col(name).is_not_null() for name in LIMITS)
NO_THRESHOLDS: Final = "the thresholds of the client were not recorded; running info has them"
NO_SIZE: Final = "the size of the cached messages was not recorded"
OF_TOPIC: Final = "a rebalance may have lowered the threshold (pullThresholdForTopic)"
ADDED: Final = "and messages were added before the next observation"
PAUSED: Final = "below the thresholds without a pull: the client or its consumer may pause"
RENAMED: Final = {
    "head": "head_offset",
    "cached_last": "last_offset",
    "next_last": "next_last_offset",
    "count_threshold": "pull_threshold_for_queue",
    "mib_threshold": "pull_threshold_size_for_queue",
    "span_threshold": "consume_max_span",
}


def client_flow(assignment: pl.DataFrame, topic_stats: pl.DataFrame, logged: pl.DataFrame, slow_s: int) -> pl.DataFrame:
    """Return the verdict on each observation of a queue in a client; columns of gold.flow_control.

    The frames are rows of silver tables; ``logged`` are those of silver.flow_control. A cache whose head stays, or that
    stays above a threshold, for ``slow_s`` seconds is stalled by the listener; an empty one with messages waiting, by
    the broker.
    """
    observed = _observed_flow(assignment, topic_stats, slow_s)
    lines = logged_flow(logged, slow_s).with_columns(
        pl.lit(value=True).alias("is_full"), pl.lit(value=False).alias("is_new")
    )
    return _with_full_caches(pl.concat([observed, lines]), slow_s).select(COLUMNS)


def _observed_flow(assignment: pl.DataFrame, topic_stats: pl.DataFrame, slow_s: int) -> pl.DataFrame:
    """Return the rows of polls and hooks, with is_full, and is_new: the client was seen before without the queue."""
    caches = queue_caches(assignment, topic_stats)
    cached = pl.col("cached_msgs").fill_null(0) + pl.col("taken_msgs").fill_null(0)
    age_ms = ms("ts") - ms("last_pull_ts")
    counted = caches.with_columns(
        cached.alias("cached_msgs"),
        (pl.col("cached_last") - pl.col("cached_first")).alias("max_span"),
        # The smallest age of all queues is the error of the client's clock.
        ((age_ms - age_ms.min().over("client_id")) / 1000).alias("pull_age_s"),
    )
    flow = _with_stalls(_with_verdict(_with_law(counted)), slow_s)
    schema = TYPES | dict.fromkeys(("is_full", "is_new"), pl.Boolean())
    return typed(flow, schema, **{name: pl.col(of_cache) for of_cache, name in RENAMED.items()})


def pulled_flow(unfinished: pl.DataFrame) -> pl.DataFrame:
    """Return rows of gold.flow_control for messages that pulls show to be unfinished; ``next_ts``: until then.

    ``unfinished`` is the frame of queue_caches.py.
    """
    known = {
        "source": pl.lit(PULL_SOURCE),
        "stalled_by": pl.lit(STALLED_BY_LISTENER),
        "stalled_since_ts": pl.col("ts"),
        "next_ts": pl.col("until_ts"),
        "judgement": pl.lit(UNDETERMINED),
        "reason": pl.lit("only pulls show the cache: the client pulled past a message that it did not finish"),
    }
    return filled(unfinished, TYPES, **known)


def logged_flow(logged: pl.DataFrame, slow_s: int) -> pl.DataFrame:
    """Return rows of gold.flow_control for the lines of clients' logs (silver.flow_control), judged by their numbers.

    Two lines with the same smallest offset, ``slow_s`` seconds apart, show that the listener has not finished it: the
    smallest offset only grows.
    """
    case = ("flow_control", "threshold", "cached_msgs", "cached_mib")
    verdict = dict.fromkeys(("judgement", "reason"), pl.String())
    lines = with_law(logged.sort(*CLIENT_QUEUE, "ts"), case, verdict, _judged_line)
    placed = lines.with_columns(pl.struct(*CLIENT_QUEUE, "min_offset").rle_id().alias("run"))
    since = pl.col("ts").min().over("run")
    is_long = pl.col("ts").max().over("run") - since >= pl.duration(seconds=slow_s)
    threshold, why = pl.col("threshold"), pl.col("flow_control")
    known = {
        "source": pl.lit(LOG_SOURCE),
        "head_offset": pl.col("min_offset"),
        "last_offset": pl.col("max_offset"),
        "pull_threshold_for_queue": pl.when(why == COUNT).then(threshold),
        "pull_threshold_size_for_queue": pl.when(why == SIZE).then(threshold),
        "stalled_by": pl.when(is_long).then(pl.lit(STALLED_BY_LISTENER)),
        "stalled_since_ts": pl.when(is_long).then(since),
    }
    return filled(placed, TYPES, **known)


def _judged_line(why: str, threshold: int | None, count: int | None, mib: int | None) -> tuple[str, str]:
    if threshold is None or count is None or mib is None:
        return "undetermined", f"flow control by {why}: the client does not log its threshold"
    expected = flow_control(count, mib, 0, False, *((threshold, mib) if why == COUNT else (count, threshold)))
    if expected == why:
        return "agree", f"flow control by {why}: the logged numbers are above the threshold"
    return "differ", f"flow control by {why}, but the logged numbers are not above the threshold"


def stored_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are stored: all but those of an empty cache that agree."""
    plain = (pl.col("cached_msgs") == 0) & (pl.col("judgement") == "agree") & pl.col("stalled_by").is_null()
    return rows.filter(~plain).unique([*CLIENT_QUEUE, "ts"], keep="first", maintain_order=True)


def _with_law(caches: pl.DataFrame) -> pl.DataFrame:
    """Add flow_control: why the client may not pull; null if it may, or if the thresholds are not known."""
    of_law = ("cached_msgs", "cached_mib", "max_span", "consume_orderly", "pull_batch", *LIMITS)
    numbered = caches.with_row_index("number")
    full = numbered.filter((pl.col("cached_msgs") > 0) & IS_KNOWN).with_columns(
        pl.col("cached_mib").fill_null(0),
        pl.col("max_span").fill_null(0),
        pl.col("consume_orderly").fill_null(value=False),
        pl.col("pull_batch").fill_null(PULL_BATCH_SIZE),
    )
    why = [
        (number, flow_control(cached, mib, span, orderly, *limits), largest_cached_count(limits[0], batch))
        for number, cached, mib, span, orderly, batch, *limits in full.select("number", *of_law).iter_rows()
    ]
    schema = {"number": pl.UInt32(), "flow_control": pl.String(), "most": pl.Int64()}
    decided = pl.DataFrame(why, schema, orient="row")
    return numbered.join(decided, "number", how="left", maintain_order="left")


def _with_verdict(rows: pl.DataFrame) -> pl.DataFrame:
    """Add judgement and reason."""
    why, cached = pl.col("flow_control"), pl.col("cached_msgs")
    has_next = pl.col("next_ts").is_not_null()
    kept = pl.col("next_last") == pl.col("cached_last")
    pulled = pl.col("next_pull_ts") > pl.col("last_pull_ts")
    elapsed_s = (ms("next_ts") - ms("ts")) // 1000
    is_recent = pl.when(has_next).then(elapsed_s <= PULL_LASTS_S).otherwise(pl.col("pull_age_s") <= PULL_LASTS_S)

    def control(words: str, mark: str = ", ") -> pl.Expr:
        return pl.format("flow control by {}{}{}", why, pl.lit(mark), pl.lit(words))

    above = pl.format("{} messages cached: the client pulled above the threshold of {}", cached, "count_threshold")
    too_many, is_full, is_filled = (why == COUNT) & (cached > pl.col("most")), why.is_not_null(), cached > 0
    no_time = pl.col("last_pull_ts").is_null() | (has_next & pl.col("next_pull_ts").is_null())
    return rows.with_columns(
        **decided(
            (is_filled & ~IS_KNOWN, UNDETERMINED, NO_THRESHOLDS),
            (is_filled & ~is_full & pl.col("cached_mib").is_null(), UNDETERMINED, NO_SIZE),
            (too_many & (pl.col("topic_threshold") > 0), UNDETERMINED, OF_TOPIC),
            (too_many, DIFFER, above),
            (is_full & kept, AGREE, control("nothing was added until the next observation", ": ")),
            (why == COUNT, AGREE, control("not more than the threshold and one pull", ": ")),
            (is_full & ~has_next, UNDETERMINED, control("and no later observation of the queue")),
            ((why == SPAN) & (pl.col("next_head") == pl.col("head")), DIFFER, control(ADDED)),
            (is_full, UNDETERMINED, control("but messages finished before the next observation")),
            (pulled, AGREE, "below the thresholds, and the client pulled"),
            (no_time, UNDETERMINED, "the time of the last pull was not recorded"),
            (is_recent, AGREE, "below the thresholds, and a pull may be outstanding"),
            otherwise=(UNDETERMINED, PAUSED),
        )
    )


def _with_stalls(rows: pl.DataFrame, slow_s: int) -> pl.DataFrame:
    """Add is_full, is_new, stalled_by and stalled_since_ts: for a head that stays, and for pulls without an answer."""
    # An orderly client may lack the lock of the queue. Newer clients set locked for all queues (RebalanceImpl).
    locked = pl.col("locked").fill_null(value=False) | (~pl.col("consume_orderly")).fill_null(value=False)
    is_empty = (pl.col("cached_msgs") == 0) & pl.col("taken_msgs").is_not_null() & (pl.col("consume_type") == PUSH)
    shared = {
        "blocked": pl.when(locked).then("head"),
        "empty": pl.when(is_empty & (pl.col("waiting") > 0)).then("memory_offset"),
    }
    placed = rows.with_columns(value.cast(pl.Int64).alias(name) for name, value in shared.items())
    next_round = (pl.col("held") == pl.col("held").shift(1)) & (pl.col("round") == pl.col("round").shift(1) + 1)
    goes_on = {name: next_round & (pl.col(name) == pl.col(name).shift(1)) for name in shared}
    runs = placed.with_columns(
        (~each.fill_null(value=False)).cum_sum().alias(f"{name}_run") for name, each in goes_on.items()
    )
    since = {name: pl.col("ts").min().over(f"{name}_run") for name in shared}
    long = {
        name: pl.col(name).is_not_null()
        & (pl.col("ts").max().over(f"{name}_run") - since[name] >= pl.duration(seconds=slow_s))
        for name in shared
    }
    waits = pl.col("pull_age_s").is_between(OUTSTANDING_S, PULL_LASTS_S).mean().over("empty_run") >= HALF
    stalled = (
        pl.when(long["blocked"])
        .then(_stall(STALLED_BY_LISTENER, since["blocked"]))
        .when(_is_blocked_alone())
        .then(_stall(STALLED_BY_LISTENER, pl.col("last_consume_ts")))
        .when(long["empty"] & waits)
        .then(_stall(STALLED_BY_BROKER, since["empty"]))
    )
    return runs.with_columns(
        stalled.alias("stall"),
        # Unknown thresholds show neither a full cache nor one with room.
        pl.when(IS_KNOWN | (pl.col("cached_msgs") == 0))
        .then(locked & pl.col("flow_control").is_not_null())
        .alias("is_full"),
        ((pl.col("round") > 1) & ~next_round.fill_null(value=False)).alias("is_new"),
    ).unnest("stall")


def _is_blocked_alone() -> pl.Expr:
    """Return whether the only observation of a client shows a listener that may hang.

    Follows ConsumerRunningInfo#analyzeProcessQueue. Several observations show it better: a queue may be idle for an
    hour before a message comes.
    """
    is_alone = pl.col("round").max().over("consumer_group", "client_id") == 1
    concurrent = (pl.col("consume_type") == PUSH) & ~pl.col("consume_orderly")
    silent_ms = ms("ts") - ms("last_consume_ts")
    blocked = is_alone & concurrent & (pl.col("cached_msgs") > 0) & (silent_ms > BLOCKED_MS)
    return blocked.fill_null(value=False)


def _with_full_caches(flow: pl.DataFrame, slow_s: int) -> pl.DataFrame:
    """Add the stalls of caches that all observations of ``slow_s`` seconds, of any source, show above a threshold.

    A busy listener may empty its cache between two of them. It did not if the later head was in the cache before.
    """
    queue = CLIENT_QUEUE
    numbered = flow.with_row_index("row")
    shown = numbered.filter(pl.col("is_full").is_not_null() | pl.col("is_new"))
    seen = shown.join(numbered.filter("is_full").select(queue).unique(), queue, how="semi").sort(*queue, "ts")
    is_kept = pl.col("head_offset") <= pl.col("last_offset").shift()
    same = pl.struct(queue) == pl.struct(queue).shift()
    goes_on = same & pl.col("is_full") & pl.col("is_full").shift() & ~pl.col("is_new") & is_kept
    runs = seen.with_columns((~goes_on.fill_null(value=False)).cum_sum().alias("run"))
    since = pl.col("ts").min().over("run")
    is_long = pl.col("ts").max().over("run") - since >= pl.duration(seconds=slow_s)
    found = runs.filter(is_long & pl.col("stalled_by").is_null()).select(
        "row", _stall(STALLED_BY_LISTENER, since).alias("full")
    )
    stalled = numbered.join(found, "row", how="left", maintain_order="left")
    return stalled.with_columns(
        pl.coalesce(name, pl.col("full").struct.field(name)).alias(name) for name in ("stalled_by", "stalled_since_ts")
    )


def _stall(by: str, since_ts: pl.Expr) -> pl.Expr:
    return pl.struct(pl.lit(by).alias("stalled_by"), since_ts.alias("stalled_since_ts"))


FLOW_CONTROL: Final = Decision(
    table="gold.flow_control",
    instant="ts",
    one="cache of a queue",
    many="caches of queues",
    importance=7,
    phrases=(
        QUEUE_WORDS,
        "{cached_msgs:,} messages cached",
        "from offset {head_offset:,}",
        "{waiting:,} waiting",
        "flow control by {flow_control}",
        VERDICT_WORDS,
    ),
    needs=(Need("assignments"),),
    rows=by_name(stored_rows, rows="judged_caches"),
    steps={
        "client_flow": by_name(client_flow, logged="flow_control", slow_s="stuck_s"),
        "pulled_flow": by_name(pulled_flow, unfinished="long_unfinished"),
        "judged_caches": ("client_flow", "pulled_flow"),
    },
    counted="judged_caches",
)
