"""Members that disappeared without unregistering."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence_rows, finding, row_key, seconds
from mqreplay.words.keys import MEMBER, QUEUE


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the consumers that disappeared without unregistering."""
    sessions, polled = evidence.members, evidence.polled
    until = heard_until(sessions, evidence.recorded_until)
    lost = lost_consumers(sessions, evidence.queue_owner, until, limits.lost_s, polled.vanished, polled.unwatched)
    return lost_findings(lost, evidence.cluster)


CONSUMER_LOST = FindingKind(
    name="consumer_lost",
    find=find,
    confidence=0.9,
    needs=(Need("heartbeats", or_polled=("consumer_lists",)),),
    thresholds=("findings.lost_s", "findings.silent_s"),
)
POLL_INTERVAL_S = 21  # a client is polled every 20 s


def heard_until(members: pl.DataFrame, recorded_until: dt.datetime | None) -> dt.datetime | None:
    """Return until when clients were recorded; None if no client was and ``recorded_until`` is None.

    ``members`` is the frame of membership. ``recorded_until`` is the last instant by the recorder's own clock
    (None: no row has one). One client alone does not extend the recording beyond it: the clock of that client may be
    ahead, and then all others would seem to be gone.
    """
    last = members.group_by("client_id").agg(pl.col("to_ts").max())["to_ts"].sort(descending=True).to_list()
    if recorded_until is None:
        return last[0] if last else None
    return min([*last[:1], max([*last[1:2], recorded_until])])


def lost_consumers(
    members: pl.DataFrame,
    owners: pl.DataFrame,
    until: dt.datetime | None,
    lost_s: int,
    vanished: pl.DataFrame | None = None,
    unwatched: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return members that disappeared: MEMBER, session, from_ts (last sign of life), to_ts, queues and more.

    ``queues`` counts those that it held until then; those of retry topics are apart (``retry_queues``). ``seen``: its
    queues were known, by ``unwatched``, the frame of observed_clients.unwatched. ``dropped``: see `membership`.

    ``to_ts`` is when its queues had new owners, or ``until`` (see `heard_until`) where nobody took one; at the latest
    when the client is a member again. ``members`` is the frame of membership.py, ``owners`` is gold.queue_owner. A
    client is lost if it is silent for ``lost_s`` seconds and never unregistered. The recording must outlast its
    silence by as much. A client without heartbeats is
    left out, as nothing shows whether it unregistered, unless it vanished, or a broker's log shows that it dropped the
    client and went on (``dropped``): ``vanished`` is the frame of listed_members. ``silent`` says of a client
    that vanished whether it did not answer before its brokers dropped it; of others it is null.
    """
    dropped = pl.col("dropped").is_not_null()
    at = pl.lit(until, dtype=INSTANT)
    back = pl.col("from_ts").shift(-1).over(MEMBER, order_by="from_ts").alias("back_ts")
    ended = members.with_columns(
        pl.when(dropped).then(pl.max_horizontal("to_ts", at)).otherwise(at).alias("until_ts"), back
    )
    if vanished is None:
        ended = ended.with_columns(pl.lit(None, pl.Boolean).alias("silent"))
    else:
        polled = vanished.unique([*MEMBER, "gone_ts"], keep="first").rename({"gone_ts": "to_ts"})
        ended = ended.join(polled, [*MEMBER, "to_ts"], how="left")
    known = pl.col("beat") | pl.col("silent").is_not_null()
    gone = ended.filter(~pl.col("left") & (dropped | (known & (seconds("to_ts", "until_ts") > lost_s))))
    held = owners.select(*MEMBER, *QUEUE, pl.col("to_ts").alias("held_to"))
    last_held = gone.join(held, on=MEMBER, how="left").filter(
        pl.col("held_to").is_null() | (seconds("held_to", "to_ts").abs() <= lost_s)
    )
    after = owners.select(
        "consumer_group",
        *QUEUE,
        pl.col("client_id").alias("next_client_id"),
        pl.col("from_ts").alias("since_ts"),
        pl.col("to_ts").alias("next_to_ts"),
    )
    # Where a polled client's interval begins lies between two polls: it may overlap the one before it.
    polled_early = pl.col("silent").is_not_null() & (seconds("since_ts", "to_ts") <= POLL_INTERVAL_S)
    follows = (pl.col("since_ts") >= pl.col("to_ts")) | (polled_early & (pl.col("next_to_ts") > pl.col("to_ts")))
    by_another = (pl.col("next_client_id") != pl.col("client_id")) & follows
    taken = (
        last_held.join(after, on=["consumer_group", *QUEUE], how="left")
        .group_by(*MEMBER, "session", "to_ts", "until_ts", "back_ts", "silent", "dropped", *QUEUE)
        .agg(pl.when(by_another).then(pl.max_horizontal("since_ts", "to_ts")).min().alias("taken_ts"))
    )
    of_retry = pl.col("topic").str.starts_with(RETRY).fill_null(False)
    counted_queues = taken.group_by(*MEMBER, "session").agg(
        pl.col("to_ts").first().alias("from_ts"),
        pl.min_horizontal(
            pl.coalesce(pl.col("taken_ts").max(), pl.col("until_ts").first()), pl.col("back_ts").first()
        ).alias("to_ts"),
        (pl.col("broker_name").is_not_null() & ~of_retry).sum().cast(pl.Int64).alias("queues"),
        (pl.col("broker_name").is_not_null() & of_retry).sum().cast(pl.Int64).alias("retry_queues"),
        pl.col("silent", "dropped").first(),
    )
    return counted_queues.with_columns(seen=True) if unwatched is None else _with_seen(counted_queues, unwatched)


def _with_seen(lost: pl.DataFrame, unwatched: pl.DataFrame) -> pl.DataFrame:
    """Add ``seen``: whether the queues of a member were known when it disappeared."""
    spans = unwatched.select(*MEMBER, pl.col("from_ts").alias("blind_ts"), pl.col("to_ts").alias("sight_ts"))
    at_end = (pl.col("blind_ts") < pl.col("from_ts")) & (pl.col("sight_ts") >= pl.col("from_ts"))
    blind = lost.join(spans, MEMBER).filter(at_end).select(*MEMBER, "session").unique()
    known = lost.join(blind.with_columns(seen=False), [*MEMBER, "session"], how="left")
    return known.with_columns(pl.col("seen").fill_null(True))


def lost_findings(lost: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return consumer_lost, of the frame of `lost_consumers`.

    A client that brokers no longer list may have been stopped in order: that is info.
    """
    key = pl.concat_list(row_key("client_id"))
    beats = (
        pl.when(pl.col("silent").is_null() | pl.col("dropped").is_not_null())
        .then(evidence_rows("silver.heartbeat", key))
        .when("silent")
        .then(evidence_rows("silver.assignment", key))
        .otherwise(evidence_rows("silver.consumer_list", pl.concat_list(row_key("consumer_group"))))
    )
    held = evidence_rows("gold.queue_owner", pl.concat_list(row_key(*MEMBER)))
    rows = lost.unique(
        [*MEMBER, "from_ts", "to_ts", "queues", "retry_queues", "silent", "seen", "dropped"]
    ).with_columns(pl.when(_had_queues()).then(pl.concat_list(beats, held)).otherwise(beats).alias("evidence"))
    unlisted = ~pl.col("silent").fill_null(True) & pl.col("dropped").is_null()
    return pl.concat([_killed(rows.filter(~unlisted), cluster), _unlisted(rows.filter(unlisted), cluster)])


def _unlisted(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    kind = CONSUMER_LOST
    return finding(rows, kind, cluster, severity="info", confidence=0.5, form="unlisted", advice_form="unlisted")


def _killed(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    severity = pl.when(_had_queues() | ~pl.col("seen")).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(rows, CONSUMER_LOST, cluster, severity=severity)


def _had_queues() -> pl.Expr:
    return pl.col("queues") + pl.col("retry_queues") > 0
