"""Literals of code that are parts of reasons, with finished reasons that they are in; and literals that are none."""

from __future__ import annotations

import re

RETRY = "retry 3, delay level 5"
DOUBT = "messages that no recorded answer to a pull has, and that the group passed, may "
PROXY = "give `mqreplay record --proxy HOST:PORT` the proxies' remoting port"
STORED = "no stored offset, and CONSUME_FROM_TIMESTAMP"
DELIVERED = "by the logs of producers and consumers"
PACKETS = "by packets: answers to sends and pulls, and commits; messages that nobody sent are not known"
FLOW = "flow control by count"

# By literal, with {} for its fields. Each reason has all words of the literal.
EXAMPLES = {
    "flow control by {}{}{}": [f"{FLOW}, and no later observation of the queue"],
    "by packets: {}": [f"by packets: {DOUBT}be in one that was not recorded: capture all brokers without a break"],
    ", and the settings of the broker are not recorded": [
        "it was revived 7 ms after its time, and the settings of the broker are not recorded"
    ],
    "1 queue is": ["1 queue is not held by the member that computed it for itself"],
    "it for itself": ["1 queue is not held by the member that computed it for itself"],
    "{} queues are": ["2 queues are not held by the member that computed them for itself"],
    "them for itself": ["2 queues are not held by the member that computed them for itself"],
    "{} not held by the member that computed {}": ["2 queues are not held by the member that computed them for itself"],
    "messages without a delivery may ": [
        "a SQL92 filter, and properties that are not known: messages without a delivery may have been filtered"
    ],
    "a SQL92 filter, and properties that are not known: {}have been filtered": [
        "a SQL92 filter, and properties that are not known: messages without a delivery may have been filtered"
    ],
    "no heartbeat tells what the group subscribed to: {}not match it": [
        "no heartbeat tells what the group subscribed to: messages without a delivery may not match it"
    ],
    "no commit tells how far the group came: {}be pending": [
        "no commit tells how far the group came: messages without a delivery may be pending"
    ],
    "a client that committed past them left no log of deliveries: {}be in it": [
        "a client that committed past them left no log of deliveries: messages without a delivery may be in it"
    ],
    ", of every {}th offset of a queue, as logged": [
        f"{DELIVERED}, of every 7th offset of a queue, as logged",
        f"{DELIVERED}, of every 7th offset of a queue, as logged; order is promised to orderly listeners only",
    ],
    "; order is promised to orderly listeners only": [f"{DELIVERED}; order is promised to orderly listeners only"],
    "but messages finished before the next observation": [f"{FLOW}, but messages finished before the next observation"],
    "and messages were added before the next observation": [
        f"{FLOW}, and messages were added before the next observation"
    ],
    "and no later observation of the queue": [f"{FLOW}, and no later observation of the queue"],
    "not more than the threshold and one pull": [f"{FLOW}: not more than the threshold and one pull"],
    "nothing was added until the next observation": [f"{FLOW}: nothing was added until the next observation"],
    ", so the lag is not known": ["the end of 1 queue is not known, so the lag is not known"],
    "the end of {} is not known": ["the end of 3 queues is not known, so the lag is not known"],
    "the committed offset of {} is negative": [
        "the committed offset of 1 queue is negative, so the lag is not known",
        "the end of 3 queues is not known, and the committed offset of 1 queue is negative, so the lag is not known",
    ],
    "the worst of {} with known lag": ["the worst of 1 queue with known lag", "the worst of 7 queues with known lag"],
    DOUBT: [f"by packets: {DOUBT}be in one that was not recorded: capture all brokers without a break"],
    "{}be in one that was not recorded: capture all brokers without a break": [
        f"by packets: {DOUBT}be in one that was not recorded: capture all brokers without a break"
    ],
    "pulls have no recorded answer, {}be in it: capture without loss, with -s 0": [
        f"by packets: pulls have no recorded answer, {DOUBT}be in it: capture without loss, with -s 0"
    ],
    "a client committed of which no pull is recorded, {}be its: capture all brokers' ports": [
        f"by packets: a client committed of which no pull is recorded, {DOUBT}be its: capture all brokers' ports"
    ],
    "no commit tells how far the group came: messages may be pending": [
        "by packets: no commit tells how far the group came: messages may be pending"
    ],
    "no heartbeat tells what the group subscribed to: messages may not match it": [
        "by packets: no heartbeat tells what the group subscribed to: messages may not match it"
    ],
    "a SQL92 filter, and properties that are not known: messages may have been filtered": [
        "by packets: a SQL92 filter, and properties that are not known: messages may have been filtered"
    ],
    "the tags of messages are not known: import the capture again": [
        "by packets: the tags of messages are not known: import the capture again"
    ],
    "; whether the retries of messages sent back succeeded is not known": [
        f"{PACKETS}; whether the retries of messages sent back succeeded is not known"
    ],
    "; messages were pulled again: if they were consumed twice is not known": [
        f"{PACKETS}; messages were pulled again: if they were consumed twice is not known"
    ],
    "; delayed messages and those of transactions are not counted": [
        f"{PACKETS}; delayed messages and those of transactions are not counted; batches whose body was cut are not"
        " counted"
    ],
    "; batches whose body was cut are not counted": [f"{PACKETS}; batches whose body was cut are not counted"],
    "{}: the rule gives another {}": [
        "an empty queue: the rule gives another next offset",
        "the end of the queue: the rule gives another code",
    ],
    "{} messages of {} bytes read from {}, which gives at most {} and {} bytes": [
        f"41 messages of 90 bytes read from {where}, which gives at most 32 and 80 bytes"
        for where in ("disk", "memory")
    ],
    "; the client's route was not recorded": ["the broker id last suggested, 1; the client's route was not recorded"],
    "{}, but the broker {} it": [
        "another client has the lock, but the broker granted it",
        "no client has the lock, but the broker refused it",
    ],
    "no stored offset, and {}": [
        f"no stored offset, and CONSUME_FROM_{where}"
        for where in (
            "LAST_OFFSET",
            "FIRST_OFFSET",
            "TIMESTAMP",
            "LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
            "MIN_OFFSET",
            "MAX_OFFSET",
        )
    ],
    "{}, whose {} is {}": [
        f"{STORED}, whose searchOffset is 12",
        f"{STORED}, whose searchOffset is 12: offset 12; the client began at 15",
        f"{STORED}, whose searchOffset is -1: no start; the client began at 15",
    ],
    "{}: {}; the client began at {}": [
        f"{STORED}: offset 3; the client began at 15",
        "the stored offset: offset -1; the client began at 15",
    ],
    "{} (code {}); {}": [
        f"the broker refused to tell the stored offset, which a client before 5.0 takes for none (code 2); {STORED}"
    ],
    "{}, but the answer of {} was not recorded": [f"{STORED}, but the answer of searchOffset was not recorded"],
    ". Next time: {}": ["no record of sent messages. Next time: write produce_log.jsonl in the hooks"],
    "slow: {}": ["slow: diff lies between 5 and 12 bytes, memory is 7"],
    "not slow: {}": ["not slow: diff lies between -5 and ? bytes, memory is 7"],
    "{}, after {} ms": ["retry 2 in its queue, after 300 ms"],
    "{} of the group did not unregister, and the log of {} does not show who came back: the log ends, or the broker"
    " stopped. Next time: import the whole broker.log of each broker, or rocketmq_client.log of each client": [
        f"{members} of the group did not unregister, and the log of broker-a does not show who came back: the log ends,"
        " or the broker stopped. Next time: import the whole broker.log of each broker, or rocketmq_client.log of each"
        " client"
        for members in ("1 member", "4 members")
    ],
    "{}: POP assigns no queue to one client alone": [
        "the queues of 1 member of the group are not known: POP assigns no queue to one client alone"
    ],
    "{}: gRPC clients and DefaultMQPullConsumer do not report them": [
        "the queues of 5 members of the group are not known: gRPC clients and DefaultMQPullConsumer do not report them"
    ],
    "{}: the group sent heartbeats, but no pull of it was recorded, as of groups that consume by POP": [
        "the queues of 5 members of the group are not known: the group sent heartbeats, but no pull of it was recorded,"
        " as of groups that consume by POP"
    ],
    "the queues of {} of the group are not known": ["the queues of 1 member of the group are not known"],
    "{}. Next time: {}": [
        "the queues of 5 members of the group are not known. Next time: run `mqreplay record`, or import"
        " rocketmq_client.log of each client"
    ],
    "no broker lists a member of this group, and no proxy answered: {}": [
        f"no broker lists a member of this group, and no proxy answered: {PROXY}"
    ],
    "no broker lists a member of this group, although its offsets advance: if it uses a proxy, {}": [
        f"no broker lists a member of this group, although its offsets advance: if it uses a proxy, {PROXY}"
    ],
    PROXY: [f"no broker lists a member of this group, and no proxy answered: {PROXY}"],
    "clients of the group lock their queues, and no request for it was recorded. Next time: {}, or import"
    " lock.log of each broker": [
        "clients of the group lock their queues, and no request for it was recorded. Next time: capture the brokers'"
        " ports with tcpdump and run `mqreplay import` on the capture, or import lock.log of each broker"
    ],
    "a name server": ["the recorder did not reach a name server"],
    "broker id {}": ["the recorder did not reach broker id 1"],
    "the recorder did not reach {}": ["the recorder did not reach a proxy"],
    "the clock of the recorder's host was set {} s {}; times of the recording follow the old clock": [
        f"the clock of the recorder's host was set 3 s {which}; times of the recording follow the old clock"
        for which in ("back", "ahead")
    ],
    "not polled: {} ({})": [
        "not polled: consumer offsets (the reason is unknown)",
        "not polled: all (more polls were due than the request budget or the response times allowed)",
    ],
}
# Schemas, patterns, and what RocketMQ says.
NOT_REASONS = re.compile(
    r"[a-z_]+:? (?:TIMESTAMP|STRING|BIGINT)|STRUCT<|\(\?i\)|\\\[|^\{\} (?:at|of) \{\}$|^ at $|^ to \{\}$|^, and $"
    r"|^by packets: $|^subscription group(?: \[| no permission)|^the consumer group\[|^the consumer's .*(?: not|data$)"
    r"|^CASE WHEN | IS NULL$|^two decisions have one table$|^no type follows from the name"
    r"|exist$|^parse the consumer|^The broker|^service not available now$|^create mapped file failed$"
    r"|^broker unable to service$"
    r"|^the message (?:is illegal|body)$|^Offset has been previously reset$|^the topic\[|^the broker\["
)
# Of suppositions (`mqreplay whatif`), and parts of summaries of findings.
OTHER_MODULES = frozenset({"suppositions.py", "slave_configs.py", "address_changes.py"})
