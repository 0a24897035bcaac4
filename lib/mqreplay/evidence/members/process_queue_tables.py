"""The process queue tables that clients show, topic by topic, and the shares that they computed before.

A hook shows a table at each change and every 15 s, running info when it is polled, a client's log at each change.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.evidence.arrays.distinct import distinct_values
from mqreplay.evidence.intervals import with_run, with_state
from mqreplay.evidence.members.membership import PUSH
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, RUNNING_INFO
from mqreplay.words.keys import MEMBER, MEMBER_TOPIC

MEMBER_TOPIC_SOURCE: Final = (*MEMBER_TOPIC, "source")
SLACK: Final = 5_000  # ms: clocks of the client and the recorder


def computed_shares(rebalance: pl.DataFrame) -> pl.DataFrame:
    """Return ROW, rebalance_ts, last_share, share_key, run, lasts: equal shares in turn have one ``run``.

    ``lasts``: a client's log has only shares that changed something, so each is valid until the next one.
    """
    # CONFIG gives its whole list for each topic, and no log names the topics of its queues.
    is_of_topic = ~pl.col("strategy").str.contains("CONFIG", literal=True).fill_null(value=False)
    taken = rebalance.filter(pl.col("mq_divided").is_not_null() & is_of_topic).sort("ts", "record_id")
    lists, list_of = distinct_values(taken, ["mq_divided"])
    keys = lists.select(_key(pl.col("mq_divided")).alias("share_key"))["share_key"]
    shares = taken.select(
        *MEMBER_TOPIC,
        pl.col("ts").alias("rebalance_ts"),
        pl.col("mq_divided").alias("last_share"),
        keys.gather(list_of),
        pl.col("source").eq_missing(CLIENT_LOG).alias("lasts"),
    )
    begins = pl.col("share_key").ne_missing(pl.col("share_key").shift(1).over(MEMBER_TOPIC))
    return with_run(shares, begins, MEMBER_TOPIC).with_columns(pl.col("run").cast(pl.Int64))


def with_shares(shown: pl.DataFrame, shares: pl.DataFrame, lag_ms: int) -> pl.DataFrame:
    """Add the last share before each table, and run_settled, the run of the last one whose step was over."""
    at, ended = pl.col("ts") + pl.duration(milliseconds=SLACK), pl.col("ts") - pl.duration(milliseconds=lag_ms)
    known = shares.with_columns(pl.col("rebalance_ts").alias("known_ts")).sort("known_ts")
    runs = known.select(*MEMBER_TOPIC, "known_ts", pl.col("run").alias("run_settled"))
    found = shown.with_columns(at.alias("at"), ended.alias("ended"))
    for lists, left in ((known, "at"), (runs, "ended")):
        found = with_state(found, lists, MEMBER_TOPIC, left, "known_ts").drop("known_ts", strict=False)
    return found.drop("at", "ended")


def shown_tables(answered: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    """Return the tables: one row an answer of a client and topic that it holds, or had a share of before.

    Columns: number, MEMBER_TOPIC_SOURCE, ts, clock_ts, record_id, source_digest, queues, key (of the queues), dropping,
    pulled_ts, foreign, and before_ts, key_before and number_before of the table before.
    """
    field = pl.element().struct.field
    answers = answered.sort("ts", "record_id").with_row_index("answer").with_columns(pl.col("source").fill_null(""))
    # The recorder's clock may differ from the client's: its latest pull shows how late it was there at least.
    latest = pl.min_horizontal("ts", pl.col("queues").list.eval(field("last_pull_ts")).list.max())
    of_client = pl.when(pl.col("source") == RUNNING_INFO).then(latest).otherwise("ts")
    answers = answers.with_columns(of_client.alias("clock_ts"))
    place = ("answer", *MEMBER, "source", "ts", "clock_ts", "record_id", "source_digest")
    each = answers.select(*place, "queues").filter(pl.col("queues").list.len() > 0).explode("queues")
    queue = [pl.col("queues").struct.field(name) for name in ("broker_name", "queue_id", "dropped", "last_pull_ts")]
    held = (
        each.with_columns(pl.col("queues").struct.field("topic"))
        .group_by("answer", "topic")
        .agg(pl.struct(queue).alias("queues"))
    )
    had = shares.group_by(MEMBER_TOPIC).agg(pl.col("rebalance_ts").min().alias("first_ts"))
    due = answers.join(had, MEMBER).filter(pl.col("first_ts") <= pl.col("ts")).select("answer", "topic")
    both = pl.concat([held.select("answer", "topic"), due]).unique()
    none = pl.lit([], held.schema["queues"])
    tables = both.join(held, ["answer", "topic"], how="left").with_columns(pl.col("queues").fill_null(none))
    placed = tables.join(answers.select(*place, _topics()), "answer").sort("ts", "record_id", *MEMBER_TOPIC)
    shown = placed.with_row_index("number").with_columns(
        _key(pl.col("queues")).alias("key"),
        pl.col("queues").list.eval(field("dropped").fill_null(value=False)).list.any().alias("dropping"),
        pl.col("queues").list.eval(field("last_pull_ts")).list.min().alias("pulled_ts"),
        (~pl.col("subscribed").list.contains(pl.col("topic"))).fill_null(value=False).alias("foreign"),
    )
    was_foreign = pl.col("foreign").shift(1).over(MEMBER_TOPIC_SOURCE).fill_null(value=False)
    shown = shown.with_columns(pl.col("foreign") & was_foreign)
    before = {"before_ts": "ts", "key_before": "key", "number_before": "number"}
    return shown.with_columns(
        pl.col(name).shift(1).over(MEMBER_TOPIC_SOURCE).alias(alias) for alias, name in before.items()
    )


def _topics() -> pl.Expr:
    """Return ``subscribed``, the topics of a push consumer's subscriptions; null: not known, or a pull consumer."""
    pushes = pl.col("consume_type") == PUSH
    topics = pl.col("subscriptions").list.eval(pl.element().struct.field("topic"))
    return pl.when(pushes & (topics.list.len() > 0)).then(topics).alias("subscribed")


def _key(queues: pl.Expr) -> pl.Expr:
    """Return a list of queues as text, in one order."""
    field = pl.element().struct.field
    return queues.list.eval(pl.format("{}/{}", field("broker_name"), field("queue_id")).sort()).list.join(" ")
