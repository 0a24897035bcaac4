"""The laws of POP that SQL can ask."""

from __future__ import annotations

from mqreplay.bind import laws
from mqreplay.bind.function import BoundFunction
from mqreplay.bind.sql_types import QUEUE_TYPE
from mqreplay.core import pop_assignment, pop_receipt, pop_revive, pop_start, retry_topic
from mqreplay.core.message_queue import MessageQueue

_QUEUES = [MessageQueue("pay", "broker-a", queue_id) for queue_id in range(4)]
_ORDER = "offset_list ARRAY<BIGINT>, commit_offset_bit BIGINT NOT NULL"

allocate_for_pop = BoundFunction(
    "allocate_for_pop",
    pop_assignment.allocate_for_pop,
    f"strategy_name STRING NOT NULL, consumer_group STRING, client_id STRING, mq_all ARRAY<{QUEUE_TYPE}> NOT NULL, "
    "cid_all ARRAY<STRING> NOT NULL, pop_share_queue_num INT NOT NULL",
    f"ARRAY<{QUEUE_TYPE}>",
    "The queues that a broker assigns to a client in mode POP, as the broker lists them. queue_id -1 means all queues "
    "of a broker. strategy_name is AVG or AVG_BY_CIRCLE; mq_all and cid_all must be sorted.",
    "QueryAssignmentProcessor#allocate4Pop",
    ("AVG", "pay-group", "client-4", _QUEUES, ["client-1", "client-2", "client-3", "client-4"], 1),
)
pop_init_offset = BoundFunction(
    "pop_init_offset",
    pop_start.pop_init_offset,
    "topic STRING NOT NULL, init_mode INT NOT NULL, min_offset_in_queue BIGINT NOT NULL, "
    "max_offset_in_queue BIGINT NOT NULL, first_message_in_memory BOOLEAN NOT NULL, "
    "init_pop_offset_by_check_msg_in_mem BOOLEAN NOT NULL, version STRING NOT NULL",
    "BIGINT",
    "The offset at which a POP group without an offset starts. init_mode is 0 for the first message, 1 for the last. A "
    "queue whose first message is still in memory starts at 0. version is the version of the broker, 5.3.3 by default.",
    "PopMessageProcessor#getInitOffset",
    ("pay", 1, 0, 90, False),
)
parse_retry_topic = BoundFunction(
    "parse_retry_topic",
    retry_topic.parse_retry_topic,
    "retry_topic STRING NOT NULL, groups ARRAY<STRING> NOT NULL, topics ARRAY<STRING> NOT NULL",
    "STRUCT<consumer_group: STRING, topic: STRING, version: INT>",
    "The group that reads a retry topic and the topic whose messages it holds, by all groups and topics. version is "
    "1 or 2 for POP; 0 for the group's own retry topic, which has no single topic. The answer is NULL if no group and "
    "topic fit the name, or if several do.",
    "none; KeyBuilder joins group and topic",
    ("%RETRY%pay-group_pay", ["pay-group"], ["pay"]),
)
parse_extra_info = BoundFunction(
    "parse_extra_info",
    pop_receipt.parse_extra_info,
    "extra_info STRING",
    "STRUCT<start_offset: BIGINT, retrieve_time: BIGINT, invisible_time: BIGINT, revive_queue_id: INT, "
    "topic_type: STRING, broker_name: STRING, queue_id: INT, offset: BIGINT, commit_log_offset: BIGINT>",
    "The parts of a receipt, which a consumer returns to acknowledge a message from POP. retrieve_time is in epoch "
    "milliseconds, invisible_time in milliseconds. revive_queue_id 999 means ordered. topic_type is 0 for the topic "
    "itself, 1 and 2 for its retry topics.",
    "ExtraInfoUtil#split",
    ("5 1700000000000 60000 3 0 broker-a 2 6",),
)
is_revive_due = BoundFunction(
    "is_revive_due",
    pop_revive.is_revive_due,
    "revive_time BIGINT NOT NULL, end_time BIGINT NOT NULL",
    "BOOLEAN",
    "Whether a pass of the revive service that has read up to end_time stores the messages due at revive_time again. "
    "Both are epoch milliseconds.",
    "PopReviveService#mergeAndRevive",
    (1_700_000_060_000, 1_700_000_062_001),
)
revive_deadline = BoundFunction(
    "revive_deadline",
    pop_revive.revive_deadline,
    "revive_time BIGINT NOT NULL, revive_interval BIGINT NOT NULL, revive_max_slow BIGINT NOT NULL, "
    "revive_scan_time BIGINT NOT NULL, timer_precision_ms BIGINT NOT NULL",
    "BIGINT",
    "The instant after which a message due at revive_time is revived too late, by the waits of a healthy broker. Times "
    "are epoch milliseconds. The other arguments are settings of the broker, in milliseconds but revive_max_slow.",
    "none; PopReviveService#run waits this long",
    (1_700_000_060_000,),
)
check_block = BoundFunction(
    "check_block",
    laws.check_block,
    f"{_ORDER}, attempt_id STRING, pop_time BIGINT NOT NULL, stored_invisible_time BIGINT, "
    "offset_next_visible_time MAP<BIGINT, BIGINT>, request_attempt_id STRING, "
    "request_invisible_time BIGINT NOT NULL, now BIGINT NOT NULL",
    "BOOLEAN",
    "Whether an ordered POP gets nothing from a queue at the instant now, because earlier messages are neither "
    "acknowledged nor visible again. The first six arguments are o, cm, a, popTime, i and ot of an entry of "
    "consumerOrderInfo.json. Times are epoch milliseconds.",
    "ConsumerOrderInfoManager#checkBlock",
    ([5, 1], 0, "a", 1_700_000_000_000, 60_000, {}, "b", 60_000, 1_700_000_059_999),
)
next_offset = BoundFunction(
    "next_offset",
    laws.next_offset,
    _ORDER,
    "BIGINT",
    "The offset that an ordered POP group commits: the first message that is not acknowledged, or the one after the "
    "last. The arguments are o and cm of an entry of consumerOrderInfo.json. -2 means that there is no message.",
    "ConsumerOrderInfoManager.OrderInfo#getNextOffset",
    ([5, 1], 1),
)
