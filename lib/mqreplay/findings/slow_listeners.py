"""Queues whose messages the client holds and does not finish, and queues whose pulls the broker answers too slowly."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.flow_control import BROKER, LISTENER, PULL
from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence_rows, finding, one_or_none, row_key, whole_seconds

TABLE = "gold.flow_control"
STALL = ("consumer_group", "topic", "broker_name", "queue_id", "client_id", "stalled_by", "stalled_since_ts")


def stalls(flow: pl.DataFrame) -> pl.DataFrame:
    """Return the stalls in rows of gold.flow_control: one row for each queue and client, from first to last sight.

    Columns: STALL, from_ts, to_ts, cached, waiting, control, is_blocked, head_offset, keys. A queue that one client
    holds messages of is not the broker's fault meanwhile.
    """
    found = flow.filter(pl.col("stalled_by").is_not_null()).sort("ts")
    each = found.group_by(STALL, maintain_order=True).agg(
        # A pull shows the stall until the end of the standstill.
        pl.when(pl.col("source") == PULL).then("next_ts").otherwise("ts").max().alias("to_ts"),
        pl.col("last_offset").max(),
        pl.col("cached_msgs").max().alias("cached"),
        pl.col("waiting").max(),
        pl.col("flow_control").drop_nulls().first().alias("control"),
        # One observation of a full cache shows no head that stays; a pull that is past a message does.
        ((pl.col("head_offset").n_unique() == 1) & ((pl.len() > 1) | (pl.col("source") == PULL).any())).alias(
            "is_blocked"
        ),
        one_or_none("head_offset"),
        row_key("client_id", *KEY, "ts").alias("keys"),
    )
    spans = each.with_columns(pl.col("stalled_since_ts").alias("from_ts")).with_row_index("number")
    by_listener = spans.filter(pl.col("stalled_by") == LISTENER).select(*KEY, "from_ts", "to_ts")
    both = spans.filter(pl.col("stalled_by") == BROKER).join(by_listener, KEY, suffix="_held")
    held = both.filter((pl.col("from_ts") <= pl.col("to_ts_held")) & (pl.col("from_ts_held") <= pl.col("to_ts")))
    return spans.join(held, "number", how="anti").drop("number")


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the listeners and the brokers that stalled a queue."""
    found, cluster, gap_s = stalls(evidence.stalled_flow), evidence.cluster, limits.same_cause_gap_s
    return pl.concat([slow_listeners(found, cluster, gap_s), slow_brokers(found, cluster, gap_s)])


SLOW_LISTENER = FindingKind(
    name="slow_listener",
    find=find,
    meaning="A client holds messages of a queue that its listener does not finish. The client commits the smallest"
    " offset that is not finished, so nothing after it is committed, and all of it is delivered again after a restart."
    " A full cache also stops the pulls (flow control). The broker is not the cause.",
    rule="In all observations of a client for stuck_s seconds, the smallest offset that it has not finished is"
    " the same, or its cache is above a threshold (pullThresholdForQueue, pullThresholdSizeForQueue,"
    " consumeConcurrentlyMaxSpan) and was not emptied between them: running info and the client's log count together."
    " An orderly client that lacks the lock of the queue does not count.",
    follows="DefaultMQPushConsumerImpl#pullMessage; ProcessQueue#removeMessage",
    advice="Look at the threads of the client: `jstack PID`, or `mqadmin consumerStatus -g GROUP -i CLIENT_ID -s -n"
    " NAMESRV`. Threads named ConsumeMessageThread_ show what the listener waits for. If they are busy, add threads"
    " (consumeThreadMax) or consumers; if they wait, give the calls of the listener a timeout. An orderly listener that"
    " fails is called again for the same message.",
    confidence=0.95,
    needs=(Need("assignments"),),
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
    example="The listener of group stuck-group did not finish the message at offset 30 of stuck-topic in broker-a/0 for"
    " 95 s; the client cached up to 102 messages.",
)
SLOW_BROKER = FindingKind(
    name="slow_broker",
    find=find,
    meaning="Messages wait in a queue, its client has nothing to process, and its pulls get no answer: the broker or"
    " the network is slow, and the listener is not.",
    rule="In all observations of a push client for stuck_s seconds, it caches no message of the queue, its"
    " offset is the same and messages wait after it; in at least half of them its last pull is 5 to 35 s old.",
    follows="PullMessageProcessor#processRequest: waiting messages are returned at once",
    advice="Look at the load of the broker and its disk: broker.log and store.log, `mqadmin brokerStatus -b BROKER_ADDR"
    " -n NAMESRV` (pullThreadPoolQueueSize, pageCacheLockTimeMills), `iostat -x 1`; and at the network between the"
    " client and the broker.",
    confidence=0.8,
    needs=(Need("assignments"), Need("topic_stats", or_polled=("consume_stats",))),
    thresholds=("findings.stuck_s", "findings.same_cause_gap_s"),
    example="Pulls of group pay-group from pay-topic in broker-a/0 got no answer for 80 s, with up to 410 messages"
    " waiting and none in the client.",
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120),
        Cause("pull_refused", same=("broker_name",)),
        Cause("slave_pull", same=("broker_name",), after_s=120),
    ),
)


def _merged(found: pl.DataFrame, by: str, gap_s: int) -> pl.DataFrame:
    """Return the stalls of a group and topic with at most ``gap_s`` seconds between them as one."""
    place = pl.concat_str("broker_name", pl.col("queue_id").cast(pl.String), separator="/")
    group_topic = ["consumer_group", "topic"]
    sessions = with_session(found.filter(pl.col("stalled_by") == by), group_topic, "from_ts", "to_ts", gap_s)
    return sessions.group_by(*group_topic, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        place.unique().sort().implode().list.join(", ").alias("places"),
        place.n_unique().alias("queues"),
        pl.col("cached").max(),
        pl.col("last_offset").max(),
        pl.col("waiting").max(),
        pl.col("control").drop_nulls().unique().sort().implode().list.join(", ").alias("controls"),
        pl.col("is_blocked").any(),
        *(one_or_none(name) for name in ("broker_name", "queue_id", "client_id", "head_offset")),
        evidence_rows(TABLE, pl.col("keys").explode().unique().sort().implode()),
    )


def slow_listeners(found: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SLOW_LISTENER, of the frame of `stalls`."""
    merged = _merged(found, LISTENER, gap_s)
    one = pl.when(pl.col("queues") == 1).then(pl.format("the message at offset {}", "head_offset"))
    at_offset = one.fill_null("the first messages")
    what = (
        pl.when("is_blocked")
        .then(pl.lit("did not finish ") + at_offset + " of ")
        .otherwise(pl.lit("was too slow for "))
    )
    control = pl.when(pl.col("controls") != "").then(pl.format("; flow control ({}) held its pulls back", "controls"))
    of_queue = pl.when(pl.col("queues") > 1).then(pl.lit(" of a queue")).otherwise(pl.lit(""))
    pulled = pl.format("; the client pulled the messages up to offset {} too", "last_offset")
    summary = pl.concat_str(
        pl.format("The listener of group {} ", "consumer_group"),
        what,
        pl.format("{} in {} for ", "topic", "places"),
        whole_seconds("from_ts", "to_ts"),
        (pl.lit("; the client cached up to ") + counted("cached", "message") + of_queue).fill_null(pulled),
        control.fill_null(""),
        pl.lit("."),
    )
    return finding(merged, SLOW_LISTENER, cluster, severity="warning", summary=summary)


def slow_brokers(found: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SLOW_BROKER, of the frame of `stalls`."""
    summary = pl.concat_str(
        pl.format("Pulls of group {} from {} in {} got no answer for ", "consumer_group", "topic", "places"),
        whole_seconds("from_ts", "to_ts"),
        pl.lit(", with up to "),
        counted("waiting", "message"),
        pl.lit(" waiting and none in the client."),
    )
    return finding(_merged(found, BROKER, gap_s), SLOW_BROKER, cluster, severity="warning", summary=summary)
