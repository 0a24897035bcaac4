"""The rule behind each kind of finding, in a sentence, and the decisions of core that it rests on."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """``text``: when the finding is told; ``follows``: RocketMQ's class and method that makes it so, if one does."""

    text: str
    follows: str = ""


RULES = {
    "offset_rewind": Rule(
        "A copy of consumerOffset.json holds a lower offset than the copy before it.",
        "ConsumerOffsetManager#commitOffset puts what it is given",
    ),
    "offset_jump": Rule(
        "An offset rose past messages that the group was never given: a reset said so, or the next pull skips them.",
        "ConsumerOffsetManager#commitOffset",
    ),
    "offset_beyond_max": Rule(
        "The master told, after the offset was saved, of a queue that ends before it.",
        "DefaultMessageStore#getMessage: OFFSET_OVERFLOW_BADLY",
    ),
    "offset_reset": Rule(
        "A broker pushed RESET_CONSUMER_CLIENT_OFFSET to clients (4.9), or answered pulls with a moved offset (5.x).",
        "Broker2Client#resetOffset",
    ),
    "stuck_queue": Rule(
        "No commit and no copy of the master's file moved the offset, while messages waited and a member held it.",
        "ProcessQueue#removeMessage: the smallest offset not yet processed",
    ),
    "orphan_queue": Rule(
        "A queue that the group's members saw was held by none of them, longer than lists take to spread.",
        "RebalanceImpl#rebalanceByTopic: each member computes for itself",
    ),
    "double_owned_queue": Rule(
        "Several clients of a group held one queue at once, longer than lists take to spread.",
        "RebalanceImpl#rebalanceByTopic",
    ),
    "idle_consumer": Rule(
        "A member held no queue of its topics for two rebalance intervals.", "AllocateMessageQueueStrategy#allocate"
    ),
    "uneven_allocation": Rule("A member took more queues than a fair share.", "AllocateMessageQueueStrategy#allocate"),
    "strategy_conflict": Rule(
        "Members of one group allocated by different strategies at the same time.",
        "RebalanceImpl#rebalanceByTopic",
    ),
    "subscription_conflict": Rule(
        "Members of one group sent heartbeats with different subscriptions at the same time.",
        "ConsumerGroupInfo#updateSubscription keeps the last one's",
    ),
    "consumer_lost": Rule(
        "A member fell silent without UNREGISTER_CLIENT, and the recording went on without it.",
        "ConsumerManager#doChannelCloseEvent",
    ),
    "broker_down": Rule("Between two answers of a broker lay a silence in which somebody asked and got an error."),
    "failover_pull": Rule(
        "Pulls went to a slave, since the client's route no longer had the master.",
        "MQClientInstance#findBrokerAddressInSubscribe",
    ),
    "slave_pull": Rule(
        "Pulls went to a slave, since the master's answer before had suggested it: what was read lay further back than"
        " the memory that the broker may use.",
        "DefaultMessageStore#getMessage, PullMessageProcessor#processRequest",
    ),
    "stale_slave_offsets": Rule(
        "A slave's copy of an offset stayed below all that its master had held for longer than copying takes.",
        "SlaveSynchronize#syncConsumerOffset",
    ),
    "retry_growth": Rule(
        "Consumers answered RECONSUME_LATER: the messages went to the group's retry topic.",
        "ConsumeMessageConcurrentlyService#processConsumeResult",
    ),
    "dead_letter": Rule(
        "The group's dead letter topic came to be or grew, or a message failed at its last try.",
        "SendMessageProcessor#consumerSendMsgBack",
    ),
    "queue_count_changed": Rule("A master's topics.json holds another number of queues than the copy before."),
    "duplicate_delivery": Rule(
        "One place of a queue was consumed successfully more than once by the group.",
        "RocketMQ delivers at least once",
    ),
    "torn_snapshot": Rule("A copied file was not whole, and was not believed.", "ConfigManager#persist"),
    "orphan_offset_key": Rule(
        "The master's file keeps an offset of a queue that its topics.json no longer has.",
        "ConsumerOffsetManager never drops entries of removed queues",
    ),
    "clock_skew": Rule(
        "A client's commits are in copies of the master's file taken long before or after it sent them."
    ),
}
