"""Clients without hooks, by polls of the recorder and by clients' logs.

`mqreplay record` asks each client at most every 20 s for its queues, subscriptions and settings (running info), and
writes a row when the answer differs from the one before. ``previous_ts`` of a row is the last instant at which the row
before it was still valid, so a change was between ``previous_ts`` and ``ts``: the middle is used.
"""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.frames import columns, first_of, ms, typed, valued
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.evidence.members.membership import SIGNS, consumer_groups
from mqreplay.words.keys import MEMBER

RUNNING_INFO, CLIENT_LOG, CONNECTION = "running_info", "client_log", "consumer_connection"
ASKED_S = 20  # poll interval of a client
REPEATED_S = 65  # an answer that does not change is written once a minute
POLLED_S = 60  # the longest time between two polls of a client over which its answers are joined
HEARD = "HEART_BEAT"
BY_POP, MUTE, UNPULLED = "pop", "mute", "unpulled"  # why a client's queues are not known, see unread_logs.py
UNWATCHED: dict[str, pl.DataType] = columns("consumer_group", "client_id", "from_ts", "to_ts", "why")
SETTINGS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))


def hooked(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that a hook recorded. Rows of tests may have no source."""
    return rows.filter(~pl.col("source").is_in([RUNNING_INFO, CLIENT_LOG, "broker_log"]).fill_null(False))


def polled(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return the rows of a source."""
    return rows.filter((pl.col("source") == source).fill_null(False))


def answers(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the running info of clients in order of time, with before_ts, until, next_ts and seen_until.

    ``before_ts``: the last instant before the answer at which the previous row was still valid, null for a client's
    first row. ``seen_until``: the last instant at which the answer was certainly valid. ``until`` is the same, but null
    if the client gave no later answer; ``next_ts`` is the instant of that answer.

    The recorder asks through any broker, and writes ``previous_ts`` by broker, so it may be older than the previous
    row. A row within REPEATED_S of that one is then the first poll that shows the change.

    ``by_pop``: the client consumes by POP. ``whole``: the answer names all queues of the client.
    """
    rows = polled(assignment, RUNNING_INFO).sort("ts", "record_id")
    last = pl.col("ts").shift(1).over(MEMBER)
    in_turn = (ms("ts") - last.dt.epoch("ms")) <= REPEATED_S * 1000
    asked = pl.when(in_turn).then(pl.col("ts") - pl.duration(seconds=ASKED_S))
    confirmed = pl.when(pl.col("previous_ts") >= last).then("previous_ts")
    before = pl.max_horizontal(last, pl.coalesce(confirmed, asked))
    placed = rows.with_columns(before.alias("before_ts"))
    followed = placed.with_columns(pl.col("before_ts").shift(-1).over(MEMBER).alias("until"))
    answered = followed.filter(pl.col("error").is_null())
    following = pl.col("ts").shift(-1).over(MEMBER).alias("next_ts")
    seen = pl.max_horizontal("ts", "until").alias("seen_until")
    by_pop = _consumes_by_pop(answered)
    whole = pl.col("queues").is_not_null() & ~by_pop
    known = answered.with_columns(following, seen, by_pop.alias("by_pop"), whole.alias("whole"))
    return known.with_columns(pl.when(pl.col("next_ts").is_not_null()).then("until").alias("until"))


def _consumes_by_pop(answered: pl.DataFrame) -> pl.Expr:
    """Return whether a client consumes by POP.

    A broker assigns queues to a client with clientRebalance=false, by POP or by PULL, as its group's mode for the topic
    says (QueryAssignmentProcessor). Such a client without queues is one of POP if another member of the group is.
    """
    has_shared = (pl.col("pop_queues").list.len() > 0).fill_null(False)
    groups = answered.filter(has_shared)["consumer_group"].unique()
    own = ~pl.element().struct.field("topic").str.starts_with(RETRY)
    holds_own = pl.col("queues").list.eval(own).list.any().fill_null(False)
    assigned = (setting("clientRebalance") == "false").fill_null(False)
    return has_shared | (assigned & pl.col("consumer_group").is_in(groups.implode()) & ~holds_own)


def setting(name: str) -> pl.Expr:
    """Return a setting of clients, by its name in RocketMQ; null: not known."""
    item = pl.element().struct
    named = pl.col("properties").cast(SETTINGS).list.eval(item.field("value").filter(item.field("key") == name))
    return named.list.first()


def owner_views(assignment: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the queues of clients by their running info, from ``ts`` to ``until``.

    Columns: consumer_group, client_id, ts, until, earliest_ts, latest_ts, queues, whole.

    ``until`` is null for a client's last answer: it is valid until the session ends. A change between two polls at most
    POLLED_S apart counts at their middle: it was not before ``earliest_ts``, and its end not after ``latest_ts``.
    Between more distant polls nothing is known. The first answer of a session counts from the middle between the start
    of the session and the answer. Answers without queues (as from DefaultLitePullConsumer) only end the views before
    them. ``whole``: see `answers`.
    """
    rows = answers(assignment)
    near = _seconds("before_ts", "ts") <= POLLED_S
    begun = members.select(*MEMBER, pl.col("from_ts").alias("begun_ts")).sort("begun_ts")
    known = with_state(rows, begun, MEMBER, "ts", "begun_ts")
    before = pl.col("before_ts")
    is_first = pl.col("begun_ts").is_not_null() & (before.is_null() | (before < pl.col("begun_ts")))
    young = _seconds("begun_ts", "ts") <= POLLED_S
    earliest = (
        pl.when(is_first & young).then("begun_ts").when(~is_first & near & before.is_not_null()).then(before)
    ).otherwise("ts")
    timed = known.with_columns(earliest.alias("earliest_ts"))
    placed = timed.with_columns(_middle("earliest_ts", "ts").cast(INSTANT).alias("since")).sort("ts")
    following = pl.col("since").shift(-1).over(MEMBER)
    joined = _seconds("until", "next_ts") <= POLLED_S
    goes_on = joined & following.is_not_null()
    until = pl.when(goes_on).then(following).otherwise("until").alias("until")
    latest = pl.when(goes_on).then("next_ts").otherwise("until").alias("latest_ts")
    views = placed.select(*MEMBER, pl.col("since").alias("ts"), until, "earliest_ts", latest, held_queues(), "whole")
    return views.filter(pl.col("queues").is_not_null())


def held_queues() -> pl.Expr:
    """Return ``queues`` as structs of topic, broker_name and queue_id, without dropped ones."""
    field = pl.element().struct.field
    queue = pl.struct(field("broker_name"), field("topic"), field("queue_id"))
    return pl.col("queues").list.eval(queue.filter(~field("dropped").fill_null(False))).alias("queues")


def unwatched(members: pl.DataFrame, assignment: pl.DataFrame, holes: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which the queues of a member that only lists or polls show are unknown.

    Columns: consumer_group, client_id, from_ts, to_ts, why.

    From the start of its session to its first answer, between answers more than POLLED_S apart, while it consumes by
    POP, and in ``holes`` of the recorder. ``members`` are the sessions of such members.
    """
    whole = owner_views(assignment, members).filter("whole")
    views = whole.select(*MEMBER, pl.col("ts").alias("seen_ts"), "until").sort("seen_ts")
    sessions = members.select(*MEMBER, "from_ts", "to_ts")
    met = sessions.join(views, MEMBER, how="left").filter(
        pl.col("seen_ts").is_null() | (pl.col("seen_ts") <= pl.col("to_ts"))
    )
    own = met.filter(pl.col("seen_ts") >= pl.col("from_ts") - pl.duration(seconds=1))
    silent = sessions.join(own, [*MEMBER, "from_ts"], how="anti")
    ordered = own.sort("seen_ts")
    key = [*MEMBER, "from_ts"]
    following = pl.coalesce(pl.col("seen_ts").shift(-1).over(key), pl.col("to_ts"))
    gaps = ordered.with_columns(following.alias("following")).filter(
        pl.col("until").is_not_null() & (pl.col("following") > pl.col("until"))
    )
    first = own.group_by(key).agg(pl.col("seen_ts").min().alias("to_ts"))
    within = members.select(MEMBER).unique().join(holes.select("from_ts", "to_ts"), how="cross")
    found = [
        silent,
        first.select(*MEMBER, "from_ts", "to_ts"),
        gaps.select(*MEMBER, pl.col("until").alias("from_ts"), pl.col("following").alias("to_ts")),
        within,
    ]
    spans = pl.concat(found)
    return unwatched_spans(spans.join(unreported(assignment), MEMBER, how="left"), pl.col("why"))


def unwatched_spans(spans: pl.DataFrame, why: str | pl.Expr | None) -> pl.DataFrame:
    """Return the spans that have a length, with the reason ``why`` the queues are unknown.

    Columns: consumer_group, client_id, from_ts, to_ts, why.
    """
    reason = why if isinstance(why, pl.Expr) else pl.lit(why)
    named = spans.filter(pl.col("to_ts") > pl.col("from_ts")).with_columns(reason.alias("why"))
    return typed(named, UNWATCHED)


def unreported(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the polled clients that consume by POP, or never named their queues.

    Columns: consumer_group, client_id, why (BY_POP or MUTE).
    """
    asked = polled(assignment, RUNNING_INFO).select(MEMBER).unique()
    answered = answers(assignment)
    whole = answered.filter("whole").select(MEMBER).unique()
    by_pop = answered.filter("by_pop").select(*MEMBER, pl.lit(BY_POP).alias("why")).unique()
    mute = asked.join(whole, MEMBER, how="anti").join(by_pop, MEMBER, how="anti")
    return pl.concat([by_pop, mute.with_columns(pl.lit(MUTE).alias("why"))])


def observed_heartbeats(
    heartbeat: pl.DataFrame, assignment: pl.DataFrame, consumer_connection: pl.DataFrame
) -> pl.DataFrame:
    """Return equivalent heartbeats of clients without hooks, in silver.heartbeat's columns.

    Running info is each client's own statement. In a broker's list of connections all clients of the group have the
    subscriptions that the broker knows; it counts only for clients without other evidence. ``heartbeat`` are the real
    heartbeats: clients that sent one have no rows. record_id and source are those of the evidence.
    """
    sent = consumer_groups(hooked(heartbeat)).select(MEMBER).unique()
    of_client = polled(assignment, RUNNING_INFO).filter(pl.col("error").is_null()).join(sent, MEMBER, how="anti")
    stated = _as_heartbeats(of_client, RUNNING_INFO, heartbeat)
    known = pl.concat([sent, of_client.select(MEMBER).unique()])
    each = consumer_connection.filter(pl.col("connections").list.len() > 0).explode("connections")
    by_broker = each.with_columns(pl.col("connections").struct.field("client_id").alias("client_id"))
    return pl.concat([stated, _as_heartbeats(by_broker.join(known, MEMBER, how="anti"), CONNECTION, heartbeat)])


def _as_heartbeats(rows: pl.DataFrame, source: str, like: pl.DataFrame) -> pl.DataFrame:
    """Return rows with client, group, model and subscriptions in the columns of ``like``."""
    group = {"group_name": "consumer_group", "consume_type": "consume_type", "message_model": "message_model"}
    group |= {"consume_from_where": "consume_from_where", "subscriptions": "subscriptions"}
    kind = like.schema["consumer_data_set"]
    fields = kind.inner.fields  # type: ignore[attr-defined]
    data = pl.struct(
        (pl.col(group[field.name]) if field.name in group else pl.lit(None)).cast(field.dtype).alias(field.name)
        for field in fields
    )
    own = {
        "kind": pl.lit(HEARD),
        "source": pl.lit(source),
        "consumer_data_set": pl.concat_list(data),
    } | {name: pl.col(name) for name in ("day", "ts", "client_id", "record_id", "source_digest")}
    return valued(rows, like.schema, **own)


def strategy_sides(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the strategy of each client for each topic, with its time span.

    Columns: consumer_group, client_id, topic, ts, until, side, record_id.

    Retry topics are left out: each client adds that of its own group.
    """
    rows = answers(assignment).filter(pl.col("strategy").is_not_null() & clustering())
    each = rows.select(
        *MEMBER, "ts", pl.coalesce("until", "ts").alias("until"), "strategy", "record_id", "subscriptions"
    )
    listed = each.filter(pl.col("subscriptions").list.len() > 0).explode("subscriptions")
    topic = pl.col("subscriptions").struct.field("topic")
    return listed.filter(~topic.str.starts_with(RETRY)).select(
        *MEMBER, topic.alias("topic"), "ts", "until", pl.col("strategy").alias("side"), "record_id"
    )


def clustering() -> pl.Expr:
    """Return whether the client reports that its group shares queues."""
    return (pl.col("message_model") == "CLUSTERING").fill_null(False)


def polled_signs(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return the signs of life of clients that answered polls, and of those whose logs were imported.

    Columns: consumer_group, client_id, from_ts, to_ts, sign.

    A client is alive from the first to the last line about it in its log.
    """
    sign = first_of((pl.col("queues").is_not_null(), RUNNING_INFO), otherwise="listed")
    answered = answers(assignment).select(*MEMBER, from_ts="ts", to_ts="seen_until", sign=sign)
    logged = polled(assignment, CLIENT_LOG).group_by(MEMBER)
    by_log = logged.agg(from_ts=pl.col("ts").min(), to_ts=pl.col("ts").max(), sign=pl.lit(CLIENT_LOG))
    return typed(pl.concat([answered, by_log]), SIGNS)


def _middle(from_ts: str, to_ts: str) -> pl.Expr:
    return pl.col(from_ts) + (pl.col(to_ts) - pl.col(from_ts)) / 2


def _seconds(from_ts: str, to_ts: str) -> pl.Expr:
    return (ms(to_ts) - ms(from_ts)) / 1000
