"""gold.queue_lock: each lock of a queue that a client asked for, against RebalanceLockManager#tryLockBatch.

A broker gives the lock of a queue unless another client of the group has it, and renewed it within 60 s (a property of
its process, which nothing records: where another value explains an answer, the answer is undetermined). Who has it
follows from the answers before: a grant makes a holder, its own UNLOCK_BATCH_MQ and a start of the broker remove it.
With lockInStrictMode, other brokers of the name must agree to a grant, and a refusal may leave a lock.
Locks granted as expected are only counted, in gold.judgement.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Final

import polars as pl

from mqreplay.core.rebalance_lock_manager import (
    REBALANCE_LOCK_INTERVAL,
    REBALANCE_LOCK_MAX_LIVE_TIME,
    LockEntry,
    lock_quorum,
    try_lock,
)
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision
from mqreplay.decisions.verdict import judged
from mqreplay.evidence.frames import first_of
from mqreplay.evidence.intervals import INSTANT, with_epoch, with_state
from mqreplay.evidence.members.observed_clients import setting
from mqreplay.words.keys import BROKER, GROUP_QUEUE, MEMBER

LOCK, UNLOCK = "LOCK_BATCH_MQ", "UNLOCK_BATCH_MQ"
GRANTED, REFUSED = "granted", "refused"
LOCK_KEY: Final = (*GROUP_QUEUE, "asked_broker")  # the locks of a queue are in the memory of the broker that was asked
COLUMNS: Final = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "client_id", "ts", "response_ts", "broker_addr"),
    *("holder", "holder_ts", "expected", "actual", "judgement", "reason", "record_id"),
)
LIVE: Final = dt.timedelta(milliseconds=REBALANCE_LOCK_MAX_LIVE_TIME)
RENEWED: Final = dt.timedelta(milliseconds=REBALANCE_LOCK_INTERVAL)  # a lock that lives no longer is of no use
CLOCK_TOLERANCE: Final = dt.timedelta(seconds=1)  # clocks of clients differ a little, and an unlock has no answer
# What the state of a lock is to a client that asks for it.
FREE_LOCK, OWN_LOCK, OTHER_CLIENT, EXPIRED_LOCK = "free", "own", "other", "expired"
_STATES: Final = {
    FREE_LOCK: (None, 0),
    OWN_LOCK: (LockEntry("asking", 0), 0),
    OTHER_CLIENT: (LockEntry("other", 0), REBALANCE_LOCK_MAX_LIVE_TIME),
    EXPIRED_LOCK: (LockEntry("other", 0), REBALANCE_LOCK_MAX_LIVE_TIME + 1),
}
EXPECTED: Final = {
    state: REFUSED if try_lock(entry, "asking", now) is None else GRANTED for state, (entry, now) in _STATES.items()
}
LOCK_REASONS: Final = {
    FREE_LOCK: "no client has the lock",
    OWN_LOCK: "the client has the lock",
    OTHER_CLIENT: "another client has the lock",
    EXPIRED_LOCK: "the lock of another client has expired",
}
BY_LOG: Final = "lock.log does not show how long a client has a lock"
NO_ANSWER: Final = "the broker did not answer, or its answer was not recorded"
AT_START: Final = "the locks at the start of the recording are not known"
AT_EXPIRY: Final = "the lock of another client expired at about this time"
CONCURRENT_REQUESTS: Final = "requests of two clients were sent at about the same time"
UNANSWERED: Final = "a request without a recorded answer may have changed the lock"
UNRECORDED: Final = "the locks of a client of the group were not recorded"
NO_UNLOCKS: Final = "releases of locks were not recorded"
OTHER_BROKERS_COUNT: Final = (
    "the locks of the other brokers of the name count too (lockInStrictMode), and are not recorded"
)
LIFE: Final = "how long a lock lives is not recorded: see rocketmq.broker.rebalance.lockMaxLiveTime of the broker's JVM"
MAY_RESTART: Final = "a restart of the broker since then cannot be excluded"


def queue_lock(
    lock: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    broker: pl.DataFrame,
    members: pl.DataFrame,
    starts: Collection[dt.datetime],
    since: dt.datetime,
    has_unlocks: bool,
) -> pl.DataFrame:
    """Return one row for each queue of each lock request: gold.queue_lock's columns, and ``grants``.

    ``grants`` is the number of locks of this queue that the client got before. The first three are rows of silver
    tables, ``lock`` of whole groups. ``members`` is the frame of `membership`. ``starts`` are the instants at which a
    recording starts after a gap, ``since`` is that of the first row. ``has_unlocks``: a release was recorded, of any
    group. Rows with the judgement agree and actual granted are not stored: see `stored_rows`.
    """
    events = _with_states(_events(lock))
    known = _with_restarts(with_epoch(events.filter(pl.col("kind") == LOCK), "ts", starts), broker_runtime)
    lockers = lock.filter(pl.col("kind") == LOCK).select(MEMBER).unique()
    unrecorded = members.select(MEMBER).join(lockers, MEMBER, how="anti").select("consumer_group").unique()
    has_unrecorded = pl.col("consumer_group").is_in(unrecorded["consumer_group"].implode())
    is_strict = pl.col("broker_name").is_in(_strict_brokers(broker))
    cases = known.with_columns(has_unrecorded.alias("unknown_member"), is_strict.alias("is_strict"))
    return _judged(_with_state(cases, since), has_unlocks).select(*COLUMNS, "grants")


def stored_rows(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.queue_lock keeps: all but granted locks that agree."""
    plain = (pl.col("judgement") == "agree") & (pl.col("actual") == GRANTED)
    return judged.filter(~plain.fill_null(value=False)).select(COLUMNS)


def _strict_brokers(broker: pl.DataFrame) -> list[str]:
    """Return the names of the brokers that were described with a quorum of locks."""
    described = broker.select(
        *("broker_name", setting("lockInStrictMode").str.to_lowercase().alias("strict")),
        setting("totalReplicas").cast(pl.Int64, strict=False).fill_null(1).alias("replicas"),
    ).unique()
    return [name for name, strict, replicas in described.iter_rows() if lock_quorum(strict == "true", replicas) > 1]


def _events(lock: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each queue of each request; granted is null without an answer."""
    names = [pl.col("queue").struct.field(name).alias(name) for name in GROUP_QUEUE[1:]]
    common = lock.filter(pl.col("mq_set").list.len() > 0).select(
        *("day", "consumer_group", "client_id", "ts", "response_ts", "kind", "broker_addr", "record_id"),
        pl.coalesce("broker_addr", "broker_name").alias("asked_broker"),
        pl.col("broker_id").fill_null(0),  # clients send these requests to masters only (RebalanceImpl#lock)
        pl.col("other_client_id"),
        pl.col("lock_ok_mq_set").is_not_null().alias("answered"),
        pl.col("mq_set").alias("queue"),
    )
    each = common.explode("queue").with_columns(names).drop("queue")
    granted = (
        lock.filter(pl.col("lock_ok_mq_set").list.len() > 0)
        .select("record_id", pl.col("lock_ok_mq_set").alias("queue"))
        .explode("queue")
        .select("record_id", *names, pl.lit(True).alias("granted"))
        .unique()
    )
    joined = each.join(granted, ["record_id", *GROUP_QUEUE[1:]], how="left", nulls_equal=True)
    is_granted = pl.when("answered").then(pl.col("granted").fill_null(value=False))
    at = pl.when(pl.col("kind") == LOCK).then(pl.coalesce("response_ts", "ts")).otherwise("ts")
    return joined.with_columns(is_granted.alias("granted"), at.alias("at"))


def _with_states(events: pl.DataFrame) -> pl.DataFrame:
    """Add the last change of the lock before each row, in the order of answers, and the next one.

    changed_by is the client that got, renewed or released it, holder the one that had it then (null: none).
    """
    in_order = events.sort("at", "ts", "record_id")
    granted, client = pl.col("granted").fill_null(value=False), pl.col("client_id")
    last_holder = pl.when(granted).then(client).forward_fill().over(LOCK_KEY)
    released = (pl.col("kind") == UNLOCK) & (last_holder == client)
    changes = granted | released.fill_null(value=False)
    at_change = {
        "changed_by": client,
        "releases": ~granted,
        "changed_from": pl.col("ts"),
        "changed_at": pl.col("at"),
    }
    marked = in_order.with_columns(
        *(pl.when(changes).then(value).alias(f"_{name}") for name, value in at_change.items()),
        pl.when((pl.col("kind") == LOCK) & ~pl.col("answered")).then("ts").alias("_unanswered"),
        granted.cast(pl.Int64).cum_sum().over(*LOCK_KEY, "client_id").alias("grants"),
    )
    before = [
        pl.col(f"_{name}").forward_fill().shift(1).over(LOCK_KEY).alias(name) for name in (*at_change, "unanswered")
    ]
    after = [
        pl.col(f"_{name}").backward_fill().shift(-1).over(LOCK_KEY).alias(f"next_{name}")
        for name in ("changed_by", "changed_from")
    ]
    return marked.with_columns(*before, *after).drop(f"_{name}" for name in (*at_change, "unanswered"))


def _with_restarts(asked: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Add boot_ts, the last known start of the broker, and boot_after, the one that the next poll shows."""
    polled = broker_runtime.filter(pl.col("boot_ts").is_not_null())
    booted = polled.select(*BROKER, "boot_ts").unique().sort("boot_ts")
    polls = polled.select(*BROKER, pl.col("ts").alias("polled_ts"), pl.col("boot_ts").alias("boot_after"))
    with_boot = with_state(asked, booted, BROKER, "at", "boot_ts")
    return with_state(with_boot, polls, BROKER, "at", "polled_ts", after=True)


def _with_state(cases: pl.DataFrame, since: dt.datetime) -> pl.DataFrame:
    """Add ``state``: what the lock is to the client; null if not known. And holder and holder_ts."""
    start = pl.max_horizontal("epoch", pl.lit(since, INSTANT))
    changed_at = pl.col("changed_at")
    booted = (pl.col("boot_ts") >= start) & (changed_at.is_null() | (pl.col("boot_ts") > changed_at))
    # A lock from before a gap in the recording is no evidence.
    known = (pl.col("changed_at") >= start).fill_null(value=False) & ~booted.fill_null(value=False)
    other = known & ~pl.col("releases") & (pl.col("changed_by") != pl.col("client_id"))
    youngest = pl.col("ts") - pl.col("changed_at") - CLOCK_TOLERANCE
    oldest = pl.col("at") - pl.col("changed_from") + CLOCK_TOLERANCE
    # Every client renews its locks: one that had the queue would have shown by now.
    is_silent = pl.col("ts") - start > LIVE + CLOCK_TOLERANCE
    state = first_of(
        (booted, FREE_LOCK),
        (~known & is_silent, FREE_LOCK),
        (~known, None),
        ("releases", FREE_LOCK),
        (~other, OWN_LOCK),
        (oldest <= LIVE, OTHER_CLIENT),
        (youngest > LIVE, EXPIRED_LOCK),
    )
    holds = known & ~pl.col("releases")
    return cases.with_columns(
        state.alias("state"),
        (state.is_null() & known).alias("at_expiry"),
        (oldest <= LIVE).fill_null(value=False).alias("is_live"),
        (youngest > RENEWED).fill_null(value=True).alias("was_due"),
        pl.coalesce("other_client_id", pl.when(holds).then("changed_by")).alias("holder"),
        pl.when(holds & pl.col("other_client_id").is_null()).then("changed_at").alias("holder_ts"),
    )


def _judged(cases: pl.DataFrame, has_unlocks: bool) -> pl.DataFrame:
    """Add expected, actual, judgement and reason."""
    expected = pl.col("state").replace_strict(EXPECTED, default=None, return_dtype=pl.String)
    actual = first_of(("granted", GRANTED), (~pl.col("granted"), REFUSED))
    is_refused, is_granted, mine = actual == REFUSED, actual == GRANTED, pl.col("client_id")
    crossed = (
        ((pl.col("changed_by") != mine) & (pl.col("changed_at") + CLOCK_TOLERANCE >= pl.col("ts")))
        | ((pl.col("next_changed_by") != mine) & (pl.col("next_changed_from") - CLOCK_TOLERANCE <= pl.col("at")))
    ).fill_null(value=False)
    changed_since = pl.col("unanswered") >= pl.col("changed_from")
    unanswered = pl.col("unanswered").is_not_null() & changed_since.fill_null(value=True)
    not_restarted = (pl.col("boot_after") <= pl.col("changed_from")).fill_null(value=False)
    kept = (pl.col("state") == OWN_LOCK) & pl.col("is_live") & not_restarted  # nobody else can have got it
    by_silence = (pl.col("state") == FREE_LOCK) & pl.col("changed_by").is_null() & pl.col("boot_ts").is_null()
    because = pl.col("state").replace_strict(LOCK_REASONS, default="", return_dtype=pl.String)
    differs = expected != actual
    # Why a lock that differs from what is expected may still be right.
    excuses = (
        (crossed, CONCURRENT_REQUESTS),
        (pl.col("is_strict"), OTHER_BROKERS_COUNT),
        (unanswered, UNANSWERED),
        (is_refused & pl.col("unknown_member") & ~kept, UNRECORDED),
        # With another life, an old lock may refuse others, and one that was not renewed in time may not.
        (is_refused & ((pl.col("state") == EXPIRED_LOCK) | by_silence), LIFE),
        (is_granted & pl.lit(not has_unlocks), NO_UNLOCKS),
        (is_granted & ~not_restarted, MAY_RESTART),
        (is_granted & (pl.col("state") == OTHER_CLIENT) & pl.col("was_due"), LIFE),
    )
    verdict = judged(
        expected,
        actual,
        open=[
            (~pl.col("answered"), NO_ANSWER),
            (pl.col("response_ts").is_null(), BY_LOG),
            ("at_expiry", AT_EXPIRY),
            (pl.col("state").is_null(), AT_START),
            # A member that was not recorded may have had the lock, though nobody is known to.
            (by_silence & pl.col("unknown_member"), UNRECORDED),
            *((differs & may_be, reason) for may_be, reason in excuses),
        ],
        agree=because,
        differ=pl.format("{}, but the broker {} it", because, actual),
    )
    shown = pl.when(pl.col("response_ts").is_not_null()).then(expected)
    return cases.with_columns(**(verdict | {"expected": shown}))


QUEUE_LOCK: Final = Decision(
    table="gold.queue_lock",
    instant="ts",
    one="lock of a queue",
    many="locks of queues",
    importance=9,
    phrases=(
        "lock of " + QUEUE_WORDS,
        ("{actual}; {holder} has it since {holder_ts}", "{actual}; {holder} has it", "{actual}"),
        VERDICT_WORDS,
    ),
)
