"""Sends that failed, messages that were acknowledged without safety, and producers that avoided a broker."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS
from mqreplay.evidence.messages.avoided_brokers import NOT_IN_ROUTE
from mqreplay.evidence.messages.failed_sends import (
    BROKER,
    BUSY,
    DOWN,
    MASTERS_DOWN,
    MENDS,
    MESSAGE,
    ROUTE,
    SILENT,
    STORE,
    TOPIC,
)
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.forbidden_topics import forbidden_writes
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, whole_seconds
from mqreplay.findings.silent_masters import ROUTELESS, routeless_topic, with_silent_master

TRIES, MESSAGES = "silver.send", "silver.produce"
BY: Final = ("broker_name", "broker_id", "response_code", "failure", "send_status")
NARROW: Final = ("topic", "client_id")  # a finding names them if all its sends share them
MEND: Final = {
    BUSY: "Check the load of the broker's disk and memory: pageCacheLockTimeMills and"
    " sendThreadPoolQueueHeadWaitTimeMills of `mqadmin brokerStatus -b BROKER_ADDR -n NAMESRV`. A producer of 5.3.0 or"
    " later retries on another broker; an older one throws. Spread the load, or use faster disks.",
    STORE: "Check the broker's disk (`mqadmin brokerStatus -b BROKER_ADDR -n NAMESRV`: commitLogDiskRatio): above 90 %"
    " (diskSpaceWarningLevelRatio) it takes no message. Make room or lower fileReservedTime. Check that producers send"
    " to masters only.",
    BROKER: "Let the broker be written again: `mqadmin updateBrokerConfig -b BROKER_ADDR -k brokerPermission -v 6 -n"
    " NAMESRV`, unless somebody took it out of use (`mqadmin wipeWritePerm`; `mqadmin addWritePerm` ends that).",
    TOPIC: "Correct or make the topic on this broker: `mqadmin updateTopic -t TOPIC -b BROKER_ADDR -r QUEUES -w QUEUES"
    " -p 6 -n NAMESRV`. To remove queues, lower writeQueueNums first, and readQueueNums when all producers have the new"
    " route, 30 s later, and the queues are consumed.",
    MESSAGE: "Make the message smaller, or raise maxMessageSize of producers and brokers; properties may have 32 KiB.",
    ROUTE: "Check that the topic exists and has a master: `mqadmin topicRoute -t TOPIC -n NAMESRV`, and that producers"
    " have the right name servers.",
    DOWN: "Find out why the master was down. A topic on several masters can be written while one of them is down:"
    " `mqadmin updateTopic -t TOPIC -c CLUSTER -n NAMESRV`. Send again in the application what failed meanwhile.",
    SILENT: "Check whether the broker answered at that time: broker.log, store.log and the kernel's log (dmesg). A send"
    " of 3 s (sendMsgTimeout) that waits for one broker has no time left for a retry on another: send again in the"
    " application.",
}
ADVICE: Final = "Read the remark of the answers in the evidence, and broker.log of the broker at that time."
WRITE_AGAIN: Final = (
    "Let producers write the topic again: `mqadmin updateTopicPerm -t TOPIC -b BROKER_ADDR -p 6 -n NAMESRV`, unless"
    " somebody takes it out of use. Producers drop such queues from their routes and do not ask the broker: without"
    " another one they fail with `No route info of this topic`, in their own logs alone."
)
REPORTED_EACH_S: Final = 10  # the recorder asks masters for their slaves so often
UNSAFE_WHY: Final = {
    SEND_STATUS[10]: "the disk did not have them in time",
    SEND_STATUS[11]: "no slave was close enough to the master",
    SEND_STATUS[12]: "no slave had them in time",
}
UNSAFE_MEND: Final = {
    SEND_STATUS[10]: "With flushDiskType=SYNC_FLUSH, the disk did not flush within syncFlushTimeout (5 s). Check the"
    " disk (iostat) at that time, and store.log. Send important messages again: consumers must be idempotent.",
    SEND_STATUS[11]: "With brokerRole=SYNC_MASTER, start the slave of this broker, and check its distance: `mqadmin"
    " brokerStatus -b BROKER_ADDR -n NAMESRV` and `mqadmin haStatus -b BROKER_ADDR -n NAMESRV`; a slave further behind"
    " than haMaxGapNotInSync (256 MiB; haSlaveFallbehindMax in 4.x) does not count.",
    SEND_STATUS[
        12
    ]: "With brokerRole=SYNC_MASTER, the slave did not answer within syncFlushTimeout (5.x: slaveTimeout)."
    " Check the network between both and the slave's disk. Send important messages again: consumers must be"
    " idempotent.",
}


def send_runs(sends: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of sends of one BY, each at most ``gap_s`` seconds after the one before.

    Columns: BY, ROUTELESS, those of `pull_runs`, of NARROW, and the numbers of messages without another try (unsent)
    or perhaps without (open_ends). ``sends`` has failed_sends.SENDS.
    """
    unsent = pl.col("is_last").sum().cast(pl.Int64).alias("unsent")
    open_ends = pl.col("is_last").is_null().sum().cast(pl.Int64).alias("open_ends")
    by = (*BY, ROUTELESS)
    return pull_runs(
        sends.with_columns(routeless_topic()), by, {name: name for name in NARROW}, gap_s, unsent, open_ends
    )


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return failed sends, messages that are not safe, and avoided brokers."""
    gap_s, least, cluster = limits.same_cause_gap_s, limits.failed_sends, evidence.cluster
    tries, messages = (
        with_silent_master(runs, BY, evidence.outages, evidence.topic_config, gap_s)
        for runs in (evidence.failed_tries, evidence.failed_messages)
    )
    logged = _not_in_tries(_joined(messages, gap_s, MESSAGES), evidence.failed_tries)
    found = pl.concat([_joined(tries, gap_s, TRIES), logged])
    unwriteable = forbidden_writes(
        evidence.topic_config, evidence.topic_stats, evidence.recorded_until, limits.refused_s
    )
    return pl.concat(
        [
            send_failed(found.filter(pl.col("send_status").is_null()), cluster, least),
            not_stored(found.filter(pl.col("send_status").is_not_null()), evidence.replication.reports, cluster, least),
            avoided(_not_forbidden(evidence.avoided_brokers, unwriteable), cluster, gap_s),
            finding(
                unwriteable,
                SENDS_AVOID_BROKER,
                cluster,
                severity=pl.when("everywhere").then(pl.lit("warning")).otherwise(pl.lit("info")),
                summary=pl.col("summary"),
                advice=WRITE_AGAIN,
            ),
        ]
    )


_NEEDS = (Need("sends", or_recorded=("produce_log",)),)
SEND_FAILED = FindingKind(
    name="send_failed",
    find=find,
    meaning="Brokers refused messages of producers, or did not answer in time. A message without a later try is stored"
    " nowhere, or, after a lost answer, stored without the producer's knowledge.",
    rule="A broker answered a send with a code that no SendStatus has, the producer tried again after no answer, or its"
    " log (produce_log) or rocketmq_client.log has an error; an interrupted thread does not count. Fewer than"
    " failed_sends messages without a later try, or perhaps without, are info.",
    follows="DefaultMQProducerImpl#sendDefaultImpl, MQClientAPIImpl#processSendResponse",
    advice=ADVICE,
    confidence=1.0,
    needs=_NEEDS,
    thresholds=("findings.same_cause_gap_s", "findings.failed_sends"),
    example="143 sends to several topics failed on the master of broker-b within 100 s: no answer within the time of"
    " the send; no later try sent 143 messages.",
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120, of_master=True),
        Cause("disk_full", same=("broker_name",), after_s=60, of_master=True),
        Cause("queue_count_changed", same=("topic",), after_s=300),
        Cause("slave_config_drift", same=("broker_name", "topic"), after_s=120),
    ),
)
NOT_STORED = FindingKind(
    name="not_stored",
    find=find,
    meaning="A broker acknowledged messages that only the memory of the master had: if it fails now, they are lost,"
    " although the producer has an answer.",
    rule="An answer to a send had the code FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE, or a"
    " producer's log (produce_log) has such a status. Fewer than failed_sends messages are info.",
    follows="MQClientAPIImpl#processSendResponse, CommitLog#asyncPutMessage",
    advice="Check the slave and the disk of the broker: `mqadmin brokerStatus -b BROKER_ADDR -n NAMESRV`. Set"
    " retryAnotherBrokerWhenNotStoreOK in producers whose messages must not be lost.",
    confidence=1.0,
    needs=_NEEDS,
    thresholds=("findings.same_cause_gap_s", "findings.failed_sends"),
    example="The master of broker-a acknowledged 412 messages of pay-topic as SLAVE_NOT_AVAILABLE within 60 s: no slave"
    " was close enough to the master.",
    causes=(Cause("broker_down", same=("broker_name",), after_s=120),),
)
SENDS_AVOID_BROKER = FindingKind(
    name="sends_avoid_broker",
    find=find,
    meaning="Producers sent nothing to one broker of a topic, while they sent to the others. The others had its load;"
    " if a topic may not be written on any master, its sends failed in the producers.",
    rule="A producer passed a broker in two or more turns of a topic's queues, for avoided_s seconds or longer: after a"
    " send to it had failed, for as long as MQFaultStrategy isolates a broker at most, or while the producers' route"
    " lacked the broker. Without such sends, a topic counts that a master's copy of topics.json forbade to write for"
    " refused_s seconds, if topic statistics show that it grew in the two minutes before, and then no more.",
    follows="MQFaultStrategy#selectOneMessageQueue, MQClientInstance#topicRouteData2TopicPublishInfo",
    advice="Find out why sends to the broker failed, or why it left the route (namesrv.log, brokerPermission). After a"
    " short failure, sendLatencyFaultEnable in 4.x keeps a broker unused for up to 10 minutes, in 5.1.4 and later for"
    " 30 s: turn it off if the brokers' load matters more.",
    confidence=0.9,
    needs=(Need("sends"), Need("routes")),
    thresholds=("findings.avoided_s", "findings.same_cause_gap_s", "findings.refused_s"),
    example="2 producers sent nothing to broker-a for 88 s, and 412 messages to other brokers: their route lacked it.",
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120, of_master=True),
        Cause("send_failed", same=("broker_name",), after_s=120),
    ),
)


def _joined(runs: pl.DataFrame, gap_s: int, table: str) -> pl.DataFrame:
    joined = joined_runs(runs, BY, NARROW, gap_s, table, pl.col("unsent", "open_ends").sum())
    return joined.with_columns(pl.lit(table).alias("table_name"))


def _not_in_tries(messages: pl.DataFrame, tries: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of producers' logs without those that recorded tries of the same time and kind show already."""
    same = ("response_code", "send_status")
    shown = messages.with_row_index("_run").join(
        tries.select(*same, pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until")), same, nulls_equal=True
    )
    meets = shown.filter((pl.col("from_ts") <= pl.col("until")) & (pl.col("to_ts") >= pl.col("since")))["_run"]
    return messages.with_row_index("_run").filter(~pl.col("_run").is_in(meets.implode())).drop("_run")


def _broker() -> pl.Expr:
    """Return the broker of each row in words; null if it is not known."""
    is_master = pl.col("broker_id") == 0
    role = pl.when(is_master).then(pl.lit("the master of ")).otherwise(pl.format("slave {} of ", "broker_id"))
    return role.fill_null("") + pl.col("broker_name")


def _within() -> pl.Expr:
    """Return the time of each row in words; null for one instant."""
    lasts = pl.col("to_ts") > pl.col("from_ts")
    return pl.when(lasts).then(pl.format(" within {}", whole_seconds("from_ts", "to_ts")))


def _capital(text: pl.Expr) -> pl.Expr:
    return text.str.slice(0, 1).str.to_uppercase() + text.str.slice(1)


def send_failed(found: pl.DataFrame, cluster: str, least: int) -> pl.DataFrame:
    """Return SEND_FAILED of joined runs; fewer than ``least`` messages without a later try are info."""
    topic = pl.format(" to {}", "topic").fill_null(" to several topics")
    unsent = counted("unsent", "message")
    summary = pl.concat_str(
        counted("pulls", "send"),
        topic,
        pl.lit(" failed"),
        pl.when(pl.col("failure") != MASTERS_DOWN.words).then(pl.format(" on {}", _broker())),
        _within(),
        pl.format(" (code {})", "response_code"),
        pl.format(": {}", "failure"),
        pl.when(pl.col("unsent") > 0).then(pl.format("; no later try sent {}", unsent)),
        pl.when(pl.col("open_ends") > 0).then(pl.lit("; whether later tries succeeded is not recorded")),
        pl.lit("."),
        ignore_nulls=True,
    )
    mends = {words: MEND[mend] for words, mend in MENDS.items() if mend in MEND}
    advice = pl.col("failure").replace_strict(mends, default=ADVICE, return_dtype=pl.String)
    severity = (
        pl.when(pl.col("unsent") + pl.col("open_ends") >= least).then(pl.lit("warning")).otherwise(pl.lit("info"))
    )
    return finding(found, SEND_FAILED, cluster, severity=severity, summary=summary, advice=advice)


def not_stored(found: pl.DataFrame, reports: pl.DataFrame, cluster: str, least: int) -> pl.DataFrame:
    """Return NOT_STORED of joined runs; fewer than ``least`` messages are info.

    ``reports`` has what masters report of their slaves (of slave_reports).
    """
    found = _with_slaves(found, reports)
    summary = pl.concat_str(
        _capital(_broker().fill_null("a broker")),
        pl.format(" acknowledged {}", counted("pulls", "message")),
        pl.format(" of {}", "topic").fill_null(" of several topics"),
        pl.format(" as {}", "send_status"),
        _within().fill_null(""),
        pl.lit(": "),
        pl.col("send_status").replace_strict(UNSAFE_WHY, default="", return_dtype=pl.String),
        pl.lit("."),
        pl.format(
            " Meanwhile the master reported as few as {}, {} in sync.",
            counted("connections", "connected slave"),
            "in_sync",
        ).fill_null(""),
        pl.format(" A slave lacked up to {}.", counted("behind_bytes", "byte")).fill_null(""),
    )
    advice = pl.col("send_status").replace_strict(UNSAFE_MEND, default=NOT_STORED.advice, return_dtype=pl.String)
    severity = pl.when(pl.col("pulls") >= least).then(pl.lit("warning")).otherwise(pl.lit("info"))
    return finding(found, NOT_STORED, cluster, severity=severity, summary=summary, advice=advice)


def _with_slaves(found: pl.DataFrame, reports: pl.DataFrame) -> pl.DataFrame:
    """Add the fewest connections of slaves, the fewest in sync, and the most that one lacked, while sends waited."""
    numbered = found.with_row_index("run")
    waits = numbered.filter(pl.col("send_status").is_in([SEND_STATUS[11], SEND_STATUS[12]]))
    meanwhile = pl.col("ts").is_between(
        pl.col("from_ts") - pl.duration(seconds=REPORTED_EACH_S), pl.col("to_ts") + pl.duration(seconds=REPORTED_EACH_S)
    )
    of_run = waits.select("run", "broker_name", "from_ts", "to_ts").join(reports, "broker_name").filter(meanwhile)
    states = of_run.group_by("run").agg(
        pl.col("connections").min(), pl.col("in_sync").min(), pl.col("behind_bytes").max()
    )
    return numbered.join(states, "run", how="left", maintain_order="left").drop("run")


def _not_forbidden(spans: pl.DataFrame, unwriteable: pl.DataFrame) -> pl.DataFrame:
    """Return the avoided brokers without those of a topic that could not be written there meanwhile."""
    forbidden = unwriteable.select(
        "topic", "broker_name", pl.col("from_ts").alias("since"), pl.col("to_ts").alias("end")
    )
    both = spans.join(forbidden, ["topic", "broker_name"]).filter(pl.col("cause") == NOT_IN_ROUTE)
    known = both.filter((pl.col("from_ts") <= pl.col("end")) & (pl.col("to_ts") >= pl.col("since")))
    return spans.join(known, ["record_id", "broker_name"], how="anti")


def avoided(spans: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SENDS_AVOID_BROKER; spans of one broker and cause that are ``gap_s`` seconds apart are one finding."""
    by = ("broker_name", "cause")
    found = (
        with_session(spans, by, "from_ts", "to_ts", gap_s)
        .group_by(*by, "session")
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("client_id").n_unique().alias("producers"),
            pl.col("passed").sum(),
            *[one_or_none(name) for name in NARROW],
            evidence(TRIES, "record_id"),
        )
    )
    is_gone = pl.col("cause") == NOT_IN_ROUTE
    is_one = pl.col("producers") == 1
    summary = pl.concat_str(
        counted("producers", "producer"),
        pl.format(" sent nothing to {} for {}", "broker_name", whole_seconds("from_ts", "to_ts")),
        pl.format(", and {} to other brokers: ", counted("passed", "message")),
        pl.when(is_gone & is_one)
        .then(pl.lit("its route lacked it."))
        .when(is_gone)
        .then(pl.lit("their route lacked it."))
        .otherwise(pl.lit("a send to it had failed (MQFaultStrategy).")),
    )
    return finding(found, SENDS_AVOID_BROKER, cluster, severity="info", summary=summary)
