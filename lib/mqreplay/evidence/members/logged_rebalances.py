"""Rebalances of client logs, which have only the sizes of lists, together with those that polls show.

RebalanceImpl logs a rebalance only if the client's queues changed ("rebalanced result changed"), so a logged result
holds until the client's next line about the topic. Polls in that time show the lists behind the result, if these did
not change before (observed_rebalances.py): the logged rebalance is then judged by them. Polls that show other lists, as
after a change that left the client its queues, are a rebalance of their own.
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.members.membership import MEMBER
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, hooked
from mqreplay.evidence.members.observed_rebalances import ROUTE_S, lists_at

_TOPIC = [*MEMBER, "topic"]
_LISTS = ["cid_all", "mq_all"]


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
    apart = others.filter(unjudged).join(logged, _TOPIC, how="anti")
    rest = logged.join(confirmed, "record_id", how="anti")
    at_once = _with_lists_at_once(rest, member_lists, queue_lists, clock_skew_s).select(observed.columns)
    completed = [*confirmed["record_id"], *at_once["record_id"]]
    return pl.concat([confirmed, at_once, others.filter(~unjudged), apart]), completed


def _confirmed(observed: pl.DataFrame, logged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the logged rebalances with the lists that polls show while they hold, and the other observed ones."""
    sized = logged.select(
        *_TOPIC,
        pl.col("ts").alias("logged_ts"),
        *(pl.col(name).alias(f"logged_{name}") for name in ("day", "strategy", "record_id", "source_digest")),
        *(_size(name).alias(f"logged_{name}") for name in _LISTS),
        _queues("mq_divided").alias("logged_queues"),
    )
    judged = observed.filter(pl.col("lacking").is_null()).with_row_index("place")
    placed = judged.sort("ts", "place").join_asof(
        sized.sort("logged_ts", "logged_record_id"),
        left_on="ts",
        right_on="logged_ts",
        by=_TOPIC,
        strategy="backward",
        check_sortedness=False,
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
