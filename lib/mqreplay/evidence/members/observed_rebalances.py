"""Rebalances of clients without hooks, by the queues that they hold while nothing changes.

A client computes its share of a topic every 20 s, from a broker's list of members and from the queues of the topic's
route, which it polls every 30 s or as its settings say. If members, queues and strategy did not change for that long
before a client's answer, it must hold the result of its strategy. If they changed, the rebalance is undetermined, and
one row has the reason.

Client logs have only the sizes of lists. RebalanceImpl logs a rebalance only if the client's queues changed
("rebalanced result changed"), so a logged result holds until the client's next line about the topic. Polls in that time
show the lists behind the result, if these did not change before: the logged rebalance is then judged by them. Polls
that show other lists, as after a change that left the client its queues, are a rebalance of their own.
"""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.topic_route import LOGICAL_QUEUE_MOCK_BROKER_PREFIX as MOCK
from mqreplay.evidence.frames import ms, valued
from mqreplay.evidence.intervals import with_state
from mqreplay.evidence.members.membership import BROADCASTING
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, answers, hooked, setting
from mqreplay.words.keys import MEMBER, MEMBER_TOPIC

ROUTE_S = 30  # pollNameServerInterval of a client, where it is not known: before 5.1 a client does not report it
LOCK_S = 60  # an orderly client takes over a queue when the lock of its last owner has expired
POLL_S = 10  # two polls of lists and routes
NO_QUEUES_HELD = "the client does not report which queues it holds"
BY_POP = "the client consumes the topic by POP: its queues are shared, and a broker assigns them"
UNSETTLED = "the client was releasing a queue of the topic when it was polled, as it does during a reset of its offsets"
NO_STRATEGY = "the client does not report its allocation strategy"
NO_CLIENTS = "the brokers listed different members of the group when the client was polled"
NO_QUEUES = (
    "the topic's queues are unknown: its name servers gave different routes or none, and no topics.json had "
    "the topic yet"
)
LOGICAL = "the topic is static: the recording lacks its logical queues"
YOUNG_CLIENTS = "the members of the group changed shortly before the client was polled"
YOUNG_QUEUES = "the queues of the topic changed shortly before the client was polled"
YOUNG_STRATEGY = "the client's strategy or subscriptions changed shortly before it was polled"
_LISTS = ["cid_all", "mq_all"]


def observed_rebalances(
    assignment: pl.DataFrame,
    member_lists: pl.DataFrame,
    queue_lists: pl.DataFrame,
    polled_members: pl.DataFrame,
    interval_s: int,
    like: pl.DataFrame,
) -> pl.DataFrame:
    """Return the columns of ``like`` (silver.rebalance), takes_all, lacking: a row per client, topic, stable period.

    ``member_lists`` and ``queue_lists`` are the frames of agreed_lists.py; ``polled_members``: MEMBER of clients that
    only polls show. ``interval_s`` is the rebalance interval. ``lacking`` is why a row cannot be judged, null if it
    can. ``takes_all``: a member of a broadcasting group takes all queues, regardless of its strategy.
    """
    each = _answers_by_topic(answers(assignment).join(polled_members, MEMBER, how="semi"))
    # An answer is valid from ts to until: judge it by the lists at its start, while these are valid, and at its end.
    begin = lists_at(each.with_columns(pl.col("ts").alias("at")), member_lists, queue_lists)
    until = pl.min_horizontal("held_until", "cid_to", "mq_to")
    end = lists_at(each.with_columns(pl.col("held_until").alias("at")), member_lists, queue_lists)
    both = pl.concat([begin.with_columns(pl.max_horizontal("ts", until).alias("at")), end])
    judged = both.with_columns(_lacking(interval_s).alias("lacking")).with_columns(
        pl.max_horizontal("cid_from", "mq_from", "same_from").alias("stable_from")
    )
    stable = judged.filter(pl.col("lacking").is_null()).sort("at", "record_id")
    stable = stable.unique([*MEMBER_TOPIC, "stable_from", "held"], keep="first", maintain_order=True)
    never = judged.join(stable, MEMBER_TOPIC, how="anti").sort("at", "record_id")
    never = never.unique(MEMBER_TOPIC, keep="last", maintain_order=True)
    return _rebalances(pl.concat([stable, never]), like)


def _answers_by_topic(rows: pl.DataFrame) -> pl.DataFrame:
    """Return MEMBER_TOPIC, ts, held_until, same_from, strategy, mq_divided and more: each answer once per topic.

    ``same_from``: since when the client's strategy, model and subscriptions are the same; ``held`` is mq_divided as
    text.
    """
    names = pl.col("subscriptions").list.eval(pl.element().struct.field("topic")).list.sort()
    settings = pl.concat_str(
        pl.col("strategy").fill_null(""), pl.col("message_model").fill_null(""), names.list.join("\n"), separator="\n"
    )
    differs = settings.ne_missing(settings.shift(1).over(MEMBER))
    field = pl.element().struct.field
    is_dropped = field("dropped").fill_null(False)
    queue = pl.struct(field("topic"), field("broker_name"), field("queue_id"))
    timed = rows.with_columns(
        pl.when(differs).then("ts").forward_fill().over(MEMBER).alias("same_from"),
        pl.col("seen_until").alias("held_until"),
        pl.col("queues").list.eval(queue.filter(~is_dropped)).alias("queues"),
        pl.col("queues").list.eval(field("topic").filter(is_dropped)).alias("dropped"),
        pl.col("pop_queues").list.eval(field("topic")).alias("shared"),
        names.alias("topic"),
        _is_orderly().alias("orderly"),
        _route_s().alias("route_s"),
    )
    each = timed.filter(pl.col("topic").list.len() > 0).with_row_index("answer").explode("topic")
    own = (
        each.select("answer", "topic", "queues")
        .filter(pl.col("queues").list.len() > 0)
        .explode("queues")
        .unnest("queues", separator="_")
        .filter(pl.col("queues_topic") == pl.col("topic"))
        .sort("queues_broker_name", "queues_queue_id")
        .group_by("answer", "topic", maintain_order=True)
        .agg(
            pl.struct(
                pl.col("queues_broker_name").alias("broker_name"), pl.col("queues_queue_id").alias("queue_id")
            ).alias("mq_divided")
        )
    )
    none = pl.lit([], own.schema["mq_divided"])
    known = each.join(own, ["answer", "topic"], how="left")
    waits = pl.col("by_pop") & pl.col("mq_divided").is_null() & ~pl.col("topic").str.starts_with(RETRY)
    by_pop = pl.col("shared").list.contains(pl.col("topic")) | waits
    taken = pl.when(pl.col("queues").is_not_null()).then(pl.coalesce("mq_divided", none)).alias("mq_divided")
    held = pl.col("mq_divided").list.eval(
        pl.format("{}/{}", pl.element().struct.field("broker_name"), pl.element().struct.field("queue_id"))
    )
    columns = ["day", "ts", "held_until", "same_from", "strategy", "message_model", "orderly", "route_s", "record_id"]
    dropping = pl.col("dropped").list.contains(pl.col("topic")).alias("dropping")
    return known.with_columns(taken, dropping, by_pop.fill_null(waits).alias("by_pop")).select(
        *MEMBER_TOPIC, *columns, "dropping", "by_pop", "source_digest", "mq_divided", held.list.join(" ").alias("held")
    )


def _is_orderly() -> pl.Expr:
    """Return whether the client consumes in order, by its settings: it locks each queue before it takes it."""
    return (setting("PROP_CONSUMEORDERLY") == "true").fill_null(False)


def _route_s() -> pl.Expr:
    """Return for how many seconds the client may use a route after it changed, as its settings say."""
    return pl.coalesce(setting("pollNameServerInterval").cast(pl.Int64, strict=False) / 1000, float(ROUTE_S))


def lists_at(rows: pl.DataFrame, member_lists: pl.DataFrame, queue_lists: pl.DataFrame) -> pl.DataFrame:
    """Add cid_all, cid_from, cid_to and mq_all, mq_from, mq_to: the lists that are valid at the instant ``at``.

    ``member_lists`` and ``queue_lists`` are the frames of agreed_lists.py. A list that is over has its end, no start.
    """
    found = rows.sort("at")
    for lists, by, name, prefix in (
        (member_lists, "consumer_group", "cid_all", "cid"),
        (queue_lists, "topic", "mq_all", "mq"),
    ):
        held = lists.rename({"from_ts": f"{prefix}_from", "to_ts": f"{prefix}_to"}).sort(f"{prefix}_from")
        found = with_state(found, held, by, "at", f"{prefix}_from")
        over = (pl.col(f"{prefix}_to") < pl.col("at")).fill_null(False)
        found = found.with_columns(pl.when(~over).then(pl.col(each)).alias(each) for each in (name, f"{prefix}_from"))
    return found


def _lacking(interval_s: int) -> pl.Expr:
    """Return why a row cannot be judged at its instant ``at``; null if it can."""
    wait_s = pl.when("orderly").then(interval_s + LOCK_S + POLL_S).otherwise(interval_s + POLL_S)
    alone = (pl.col("message_model") == BROADCASTING).fill_null(False)
    reasons = (
        (pl.col("by_pop"), BY_POP),
        (pl.col("mq_divided").is_null(), NO_QUEUES_HELD),
        (pl.col("dropping").fill_null(False), UNSETTLED),
        (pl.col("strategy").is_null() & ~alone, NO_STRATEGY),
        (pl.col("mq_all").is_null(), NO_QUEUES),
        (pl.col("held").str.contains(MOCK, literal=True) & ~_has_logical("mq_all"), LOGICAL),
        (pl.col("cid_all").is_null() & ~alone, NO_CLIENTS),
        (_age_s("same_from") < wait_s, YOUNG_STRATEGY),
        ((_age_s("cid_from") < wait_s) & ~alone, YOUNG_CLIENTS),
        (_age_s("mq_from") < wait_s + pl.col("route_s"), YOUNG_QUEUES),
    )
    return pl.coalesce(pl.when(lacks.fill_null(True)).then(pl.lit(text)) for lacks, text in reasons)


def _has_logical(queues: str) -> pl.Expr:
    names = pl.element().struct.field("broker_name")
    return pl.col(queues).list.eval(names.str.starts_with(MOCK)).list.any()


def _age_s(since: str) -> pl.Expr:
    return (ms("at") - ms(since)) / 1000


def _rebalances(rows: pl.DataFrame, like: pl.DataFrame) -> pl.DataFrame:
    alone = (pl.col("message_model") == BROADCASTING).fill_null(False)
    own = {
        "ts": pl.col("at"),
        "day": pl.col("at").dt.date(),
        "source": pl.lit("running_info"),
        "cid_all": pl.when(alone).then(pl.concat_list("client_id")).otherwise("cid_all"),
        # One answer has several topics, and may cover several periods.
        "record_id": pl.format("{}/{}/{}", "record_id", "topic", ms("at")),
    } | {name: pl.col(name) for name in (*MEMBER_TOPIC, "strategy", "mq_all", "mq_divided", "source_digest")}
    return valued(rows, like.schema, **own).hstack(rows.select(alone.alias("takes_all"), "lacking"))


def polled_members(assignment: pl.DataFrame, rebalance: pl.DataFrame) -> pl.DataFrame:
    """Return MEMBER of the polled clients whose rebalances no hook recorded: their own have all lists."""
    return assignment.select(MEMBER).unique().join(hooked(rebalance), MEMBER, how="anti")


def with_logged(
    observed: pl.DataFrame,
    rebalance: pl.DataFrame,
    member_lists: pl.DataFrame,
    queue_lists: pl.DataFrame,
    clock_skew_s: int,
) -> tuple[pl.DataFrame, list[str]]:
    """Return the rebalances to judge with polls, and the record ids of the logged ones among them.

    ``observed`` are the rows of observed_rebalances.py, ``rebalance`` any rows of silver.rebalance, the lists are the
    frames of agreed_lists.py; a client's clock may be wrong by ``clock_skew_s``. A logged rebalance and the observed
    ones of the same lists and queues are one row, which has the instant and the record of the log. An observed
    rebalance that cannot be judged is left out if the log has one of the client and topic.
    """
    logged = rebalance.filter(pl.col("source").eq_missing(CLIENT_LOG))
    if logged.is_empty():
        return observed, []
    confirmed, others = _confirmed(observed, logged)
    unjudged = pl.col("lacking").is_not_null()
    apart = others.filter(unjudged).join(logged, MEMBER_TOPIC, how="anti")
    rest = logged.join(confirmed, "record_id", how="anti")
    at_once = _with_lists_at_once(rest, member_lists, queue_lists, clock_skew_s).select(observed.columns)
    completed = [*confirmed["record_id"], *at_once["record_id"]]
    return pl.concat([confirmed, at_once, others.filter(~unjudged), apart]), completed


def _confirmed(observed: pl.DataFrame, logged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the logged rebalances with the lists that polls show while they hold, and the other observed ones."""
    sized = logged.select(
        *MEMBER_TOPIC,
        pl.col("ts").alias("logged_ts"),
        *(pl.col(name).alias(f"logged_{name}") for name in ("day", "strategy", "record_id", "source_digest")),
        *(_size(name).alias(f"logged_{name}") for name in _LISTS),
        _queues("mq_divided").alias("logged_queues"),
    )
    judged = observed.filter(pl.col("lacking").is_null()).with_row_index("place")
    placed = with_state(
        judged.sort("ts", "place"), sized.sort("logged_ts", "logged_record_id"), MEMBER_TOPIC, "ts", "logged_ts"
    )
    is_same = pl.all_horizontal(
        *(pl.col(name).list.len() == pl.col(f"logged_{name}") for name in _LISTS),
        _queues("mq_divided") == pl.col("logged_queues"),
        pl.coalesce("logged_strategy", "strategy").eq_missing(pl.col("strategy")),
    ).fill_null(False)
    same = placed.filter(is_same)
    first = same.unique("logged_record_id", keep="first", maintain_order=True)
    again = same.join(first, ["logged_record_id", *_LISTS], how="semi", nulls_equal=True)
    of_log = [pl.col(f"logged_{name}").alias(name) for name in ("ts", "day", "record_id", "source_digest")]
    confirmed = first.with_columns(*of_log, pl.lit(CLIENT_LOG).alias("source")).select(observed.columns)
    others = placed.join(again, "place", how="anti").select(observed.columns)
    return confirmed, pl.concat([others, observed.filter(pl.col("lacking").is_not_null())])


def _with_lists_at_once(
    logged: pl.DataFrame, member_lists: pl.DataFrame, queue_lists: pl.DataFrame, clock_skew_s: int
) -> pl.DataFrame:
    """Return the logged rebalances whose lists are certain at their instant, with takes_all and lacking.

    A client asks a broker for the members when it rebalances, and uses a route of up to ROUTE_S ago. The lists must not
    change for ``clock_skew_s`` around the rebalance, and must have the logged sizes. A list of one member has the
    client itself: AbstractAllocateMessageQueueStrategy#check gives no queues to a client outside the list.
    """
    margin = pl.duration(seconds=clock_skew_s)
    sizes = [_size(name).alias(f"logged_{name}") for name in _LISTS]
    listed = lists_at(logged.with_columns(*sizes, pl.col("ts").alias("at")).drop(_LISTS), member_lists, queue_lists)
    is_member = _holds("cid", margin, margin)
    is_alone = (pl.col("logged_cid_all") == 1) & (pl.col("mq_divided").list.len() > 0)
    members = pl.when(is_member).then("cid_all").when(is_alone).then(pl.concat_list("client_id"))
    queues = pl.when(_holds("mq", margin + pl.duration(seconds=ROUTE_S), margin)).then("mq_all")
    known = listed.with_columns(members.alias("cid_all"), queues.alias("mq_all"))
    fits = pl.all_horizontal(pl.col(name).list.len() == pl.col(f"logged_{name}") for name in _LISTS)
    found = known.filter(fits.fill_null(False))
    return found.with_columns(pl.lit(False).alias("takes_all"), pl.lit(None, pl.String).alias("lacking"))


def _holds(prefix: str, before: pl.Expr, after: pl.Expr) -> pl.Expr:
    """Return whether a list has the logged size, and is valid from ``before`` to ``after`` the rebalance."""
    until = pl.col(f"{prefix}_to")
    spans = (pl.col(f"{prefix}_from") <= pl.col("ts") - before) & (until.is_null() | (until >= pl.col("ts") + after))
    fits = pl.col(f"{prefix}_all").list.len() == pl.col(f"logged_{prefix}_all")
    return (spans & fits).fill_null(False)


def _size(name: str) -> pl.Expr:
    return pl.coalesce(pl.col(name).list.len().cast(pl.Int32), f"{name}_size").cast(pl.UInt32)


def _queues(name: str) -> pl.Expr:
    """Return queues as sorted text."""
    field = pl.element().struct.field
    each = pl.col(name).list.eval(pl.format("{}/{}", field("broker_name"), field("queue_id")).sort())
    return each.list.join(" ")
