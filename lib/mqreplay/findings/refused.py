"""Pulls that brokers refused for longer than a start takes."""

from __future__ import annotations

import polars as pl

from mqreplay.core.pull_check import (
    SUBSCRIPTION_GROUP_NOT_EXIST,
    SUBSCRIPTION_NOT_EXIST,
    SUBSCRIPTION_NOT_LATEST,
    SYSTEM_BUSY,
    TOPIC_NOT_EXIST,
)
from mqreplay.core.pull_refusal import BROKER, FORBIDDEN, GROUP, INFO, LOAD, REFUSALS, TOPIC
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.forbidden_topics import forbidden_reads
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.shape import counted, finding, whole_seconds

TABLE = "gold.pull_answer"
BY = ("broker_name", "broker_id", "refusal", "subject", "response_code")
NARROW = ("consumer_group", "topic", "client_id")  # a finding names them if all its pulls share them
DECIDED_BY = {each.words: each.decided_by for each in REFUSALS.values()}
STARTS = (SUBSCRIPTION_NOT_EXIST, SUBSCRIPTION_NOT_LATEST)
# So is a topic or group that a slave has not copied yet (SlaveSynchronize).
NOT_COPIED = pl.col("response_code").is_in([TOPIC_NOT_EXIST, SUBSCRIPTION_GROUP_NOT_EXIST]) & (pl.col("broker_id") > 0)
IS_START = pl.col("response_code").is_in(STARTS) | NOT_COPIED.fill_null(value=False)
# A refused client tries again after 3 s (DefaultMQPushConsumerImpl#pullTimeDelayMillsWhenException). Longer pauses are
# between several starts.
AGAIN_S = 10
MENDS = {
    BROKER: "Read and correct the setting of the broker: `mqadmin getBrokerConfig -b BROKER_ADDR -n NAMESRV`, `mqadmin"
    " updateBrokerConfig -b BROKER_ADDR -k KEY -v VALUE -n NAMESRV`; brokerPermission is 6 for a broker in use.",
    TOPIC: "Correct the topic on this broker: `mqadmin updateTopicPerm -t TOPIC -b BROKER_ADDR -p 6 -n NAMESRV` for its"
    " permission, `mqadmin updateTopic -t TOPIC -b BROKER_ADDR -r QUEUES -w QUEUES -n NAMESRV` for its queues, or if it"
    " is missing. Messages in queues above readQueueNums are not delivered until it is raised again.",
    GROUP: "Correct or make the group: `mqadmin updateSubGroup -g GROUP -c CLUSTER -s true -d true -n NAMESRV`.",
    FORBIDDEN: "forbiddenTable in subscriptionGroup.json of the broker forbids the topic to the group. Find who set it:"
    " only the admin API does (updateAndGetGroupReadForbidden), no command of mqadmin.",
    LOAD: "See how many pulls wait, and how long: `mqadmin brokerStatus -b BROKER_ADDR -n NAMESRV`"
    " (pullThreadPoolQueue). Clients try again by themselves. If it lasts, add brokers, or find the group that reads"
    " old messages.",
    INFO: "Check that all consumers of the group subscribe to the same topics with the same expressions (`mqadmin"
    " consumerConnection -g GROUP -n NAMESRV`), and that their heartbeats reach the broker (rocketmq_client.log). Two"
    " heartbeats at the same time can leave an older subscription in the broker until the next one, 30 s later.",
}
ADVICE = "Read the remark of the answers in the evidence, and broker.log of the broker at that time."


def refused_runs_of_shard(answers: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of a shard's refused pulls, each at most ``gap_s`` seconds after the one before.

    Columns: BY and those of `pull_runs`, of NARROW. ``answers`` are rows of gold.pull_answer. A slave that may not be
    read is a slave_pull.
    """
    by_slave = (pl.col("response_code") == SYSTEM_BUSY) & (pl.col("broker_id") > 0)
    decided_by = pl.col("refusal").replace_strict(DECIDED_BY, default="", return_dtype=pl.String)
    subject = (
        pl.when(decided_by == BROKER)
        .then(pl.lit(""))
        .when(decided_by == TOPIC)
        .then("topic")
        .when(decided_by.is_in([GROUP, INFO]))
        .then("consumer_group")
        .otherwise(pl.concat_str("consumer_group", pl.lit(" "), "topic"))
    )
    refused = answers.filter(pl.col("refusal").is_not_null() & ~by_slave.fill_null(value=False))
    named = refused.with_columns(subject.alias("subject"))
    columns = {name: name for name in NARROW}
    runs = [
        pull_runs(named.filter(which), BY, columns, gap) for which, gap in ((IS_START, AGAIN_S), (~IS_START, gap_s))
    ]
    return pl.concat(runs)


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the refusals that are no start of a consumer, and topics that may not be read."""
    pulls = refused_pulls(evidence.refused_runs, evidence.cluster, limits.same_cause_gap_s, limits.refused_s)
    topics = forbidden_reads(
        evidence.topic_config, evidence.queue_owner, pulls, evidence.recorded_until, limits.refused_s
    )
    by_copies = finding(
        topics, PULL_REFUSED, evidence.cluster, severity="warning", summary=pl.col("summary"), advice=MENDS[TOPIC]
    )
    return pl.concat([pulls, by_copies])


PULL_REFUSED = FindingKind(
    name="pull_refused",
    find=find,
    meaning="A broker refused the pulls of a group, and delivered nothing to it meanwhile. Clients log it, and try"
    " again for ever; no metric of RocketMQ counts it.",
    rule="A broker answered pulls with a code that is no result of its store: 1, 2, 16, 17, 23 to 29 or 501. Codes 24"
    " and 25 count if they lasted for refused_s seconds: a consumer's first pulls may come before its first heartbeat,"
    " and two heartbeats at the same time may leave an older subscription until the next one. Codes 17 and 26 of a"
    " slave count then, too: it copies topics and groups from its master. Without refused pulls, a topic counts whose"
    " permission on a master refused readers for refused_s seconds while a group held its queues.",
    follows="PullMessageProcessor#processRequest",
    advice=ADVICE,
    confidence=1.0,
    needs=(Need("pull_log", or_polled=("topics",)),),
    thresholds=("findings.same_cause_gap_s", "findings.refused_s"),
    example="The master of broker-a refused 412 pulls of group pay-group from pay-topic for 118 s (code 16): the topic"
    " may not be read (perm).",
    causes=(
        Cause("subscription_conflict", same=("consumer_group",)),
        Cause("slave_config_drift", same=("broker_name", "topic"), after_s=120),
        Cause("queue_count_changed", same=("topic",), after_s=300),
        Cause("broker_down", same=("broker_name", "broker_id"), after_s=120),
        Cause("rebalance_storm", same=("consumer_group",), after_s=120),
    ),
)


def refused_pulls(runs: pl.DataFrame, cluster: str, gap_s: int, refused_s: int) -> pl.DataFrame:
    """Return PULL_REFUSED. ``runs`` has the rows of `refused_runs_of_shard` of all shards."""
    lasting = (pl.col("to_ts") - pl.col("from_ts")) >= pl.duration(seconds=refused_s)
    starts = joined_runs(runs.filter(IS_START), BY, NARROW, AGAIN_S, TABLE).filter(lasting)
    found = pl.concat([starts, joined_runs(runs.filter(~IS_START), BY, NARROW, gap_s, TABLE)], rechunk=True)
    is_master = pl.col("broker_id").fill_null(0) == 0
    broker = pl.when(is_master).then(pl.lit("The master")).otherwise(pl.format("Slave {}", "broker_id"))
    group = pl.format(" of group {}", "consumer_group").fill_null(" of several groups")
    topic = pl.format(" from {}", "topic").fill_null(" from several topics")
    summary = pl.concat_str(
        broker,
        pl.format(" of {} refused ", "broker_name"),
        counted("pulls", "pull"),
        group,
        topic,
        pl.lit(" for "),
        whole_seconds("from_ts", "to_ts"),
        pl.format(" (code {}): {}.", "response_code", "refusal"),
    )
    mends = {words: MENDS[decided_by] for words, decided_by in DECIDED_BY.items() if decided_by in MENDS}
    advice = pl.col("refusal").replace_strict(mends, default=ADVICE, return_dtype=pl.String)
    return finding(found, PULL_REFUSED, cluster, severity="warning", summary=summary, advice=advice)
