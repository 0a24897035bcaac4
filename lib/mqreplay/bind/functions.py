"""The catalogue: every law that SQL can ask, one entry each, by the law's own name and argument names.

`functions.allocate_averagely.arrow_udf(...)` is a column in Spark; `register.register(spark)` makes all of them SQL
functions of a session. docs/sql.md is generated from the catalogue.
"""

from __future__ import annotations

from mqreplay.bind import laws
from mqreplay.bind.function import BoundFunction
from mqreplay.bind.pop_functions import (
    allocate_for_pop,
    check_block,
    is_revive_due,
    next_offset,
    parse_extra_info,
    parse_retry_topic,
    pop_init_offset,
    revive_deadline,
)
from mqreplay.bind.sql_types import QUEUE_TYPE
from mqreplay.core import (
    allocation,
    consumer_offset_manager,
    offset_store,
    pull_answer,
    pull_node,
    send_back,
    send_retry,
)
from mqreplay.core import flow_control as cache_limits
from mqreplay.core import slave_suggestion as memory
from mqreplay.core import status_windows as group_windows
from mqreplay.core.message_queue import MessageQueue

_ALLOCATE = f"consumer_group STRING, current_cid STRING, mq_all ARRAY<{QUEUE_TYPE}>, cid_all ARRAY<STRING>"
_QUEUES = [MessageQueue("pay", "broker-a", 0), MessageQueue("pay", "broker-a", 1), MessageQueue("pay", "broker-a", 2)]
_ALLOCATE_EXAMPLE = ("pay-group", "client-2", _QUEUES, ["client-1", "client-2"])

allocate_averagely = BoundFunction(
    "allocate_averagely",
    allocation.allocate_averagely,
    _ALLOCATE,
    f"ARRAY<{QUEUE_TYPE}>",
    "The queues that a client takes with the strategy AVG, the default. Each client gets neighbouring queues; the "
    "first clients get one more if the division leaves a rest. mq_all and cid_all must be sorted.",
    "AllocateMessageQueueAveragely#allocate",
    _ALLOCATE_EXAMPLE,
)
allocate_averagely_by_circle = BoundFunction(
    "allocate_averagely_by_circle",
    allocation.allocate_averagely_by_circle,
    _ALLOCATE,
    f"ARRAY<{QUEUE_TYPE}>",
    "The queues that a client takes with the strategy AVG_BY_CIRCLE: queues go to the clients in turn. mq_all and "
    "cid_all must be sorted.",
    "AllocateMessageQueueAveragelyByCircle#allocate",
    _ALLOCATE_EXAMPLE,
)
# By getName(). CONFIG, MACHINE_ROOM and MACHINE_ROOM_NEARBY-* need settings that no recording has: core answers as it
# does without them.
allocate = BoundFunction(
    "allocate",
    laws.allocate,
    f"strategy_name STRING NOT NULL, {_ALLOCATE}",
    f"ARRAY<{QUEUE_TYPE}>",
    "The queues that a client takes with the strategy of this name: AVG, AVG_BY_CIRCLE or CONSISTENT_HASH. CONFIG, "
    "MACHINE_ROOM and MACHINE_ROOM_NEARBY need settings of the client's code, and are answered as without them.",
    "AllocateMessageQueueStrategy#allocate",
    ("AVG_BY_CIRCLE", *_ALLOCATE_EXAMPLE),
)

recalculate_pull_from_which_node = BoundFunction(
    "recalculate_pull_from_which_node",
    pull_node.recalculate_pull_from_which_node,
    "suggestion BIGINT, connect_broker_by_user BOOLEAN NOT NULL, default_broker_id BIGINT NOT NULL",
    "BIGINT",
    "The broker id that a client asks next for a queue: the last suggestion, 0 (the master) before the first one, or "
    "default_broker_id if the user fixed the broker.",
    "PullAPIWrapper#recalculatePullFromWhichNode",
    (1,),
)
update_pull_from_which_node = BoundFunction(
    "update_pull_from_which_node",
    laws.update_pull_from_which_node,
    f"pull_from_which_node_table MAP<{QUEUE_TYPE}, BIGINT>, mq {QUEUE_TYPE} NOT NULL, broker_id BIGINT NOT NULL",
    f"MAP<{QUEUE_TYPE}, BIGINT>",
    "A client's table of suggestions after an answer suggested broker_id for the queue mq.",
    "PullAPIWrapper#updatePullFromWhichNode",
    ({_QUEUES[0]: 0}, _QUEUES[0], 1),
)
find_broker_address_in_subscribe = BoundFunction(
    "find_broker_address_in_subscribe",
    laws.find_broker_address_in_subscribe,
    "broker_addr_table MAP<STRING, MAP<BIGINT, STRING>>, broker_name STRING, broker_id BIGINT NOT NULL, "
    "only_this_broker BOOLEAN NOT NULL, version STRING NOT NULL",
    "STRUCT<broker_addr: STRING, broker_id: BIGINT, slave: BOOLEAN>",
    "The broker that a client asks, by its route. If the route lacks broker_id, the client takes another broker of "
    "the same name, unless only_this_broker is true. The answer is NULL if there is none. version is the version of "
    "the client, 4.9.8 by default.",
    "MQClientInstance#findBrokerAddressInSubscribe",
    ({"broker-a": {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}}, "broker-a", 1, False),
)

_MEMORY = "total_physical_memory_size BIGINT NOT NULL, access_message_in_memory_max_ratio BIGINT NOT NULL"

memory_threshold = BoundFunction(
    "memory_threshold",
    memory.memory_threshold,
    _MEMORY,
    "BIGINT",
    "The number of bytes behind the end of the commit log that count as in memory. The size is in bytes, the ratio in "
    "percent.",
    "DefaultMessageStore#getMessage",
    (16_000_000_000, 40),
)
effective_ratio = BoundFunction(
    "effective_ratio",
    memory.effective_ratio,
    "access_message_in_memory_max_ratio BIGINT NOT NULL, broker_role STRING, version STRING NOT NULL",
    "BIGINT",
    "The ratio with which a broker works, in percent. Since version 5.0 a slave subtracts 10 from the ratio of its "
    "properties. broker_role is ASYNC_MASTER, SYNC_MASTER or SLAVE; version is 4.9.7 by default.",
    "BrokerStartup#createBrokerController (4.x), #buildBrokerController (5.x)",
    (40, "SLAVE", "5.3.3"),
)
slave_suggestion = BoundFunction(
    "slave_suggestion",
    memory.slave_suggestion,
    f"max_offset_py BIGINT NOT NULL, max_phy_offset_pulling BIGINT NOT NULL, {_MEMORY}",
    "BOOLEAN",
    "Whether the answer of a pull suggests a slave: the last message read begins further behind the end of the commit "
    "log (max_offset_py) than memory reaches. All in bytes, the ratio in percent.",
    "DefaultMessageStore#getMessage, setSuggestPullingFromSlave",
    (1001, 600, 1000, 40),
)
check_in_disk_by_commit_offset = BoundFunction(
    "check_in_disk_by_commit_offset",
    memory.check_in_disk_by_commit_offset,
    f"offset_py BIGINT NOT NULL, max_offset_py BIGINT NOT NULL, {_MEMORY}",
    "BOOLEAN",
    "Whether the message at offset_py counts as on disk only. All in bytes, the ratio in percent.",
    "DefaultMessageStore#checkInDiskByCommitOffset (4.x), #estimateInMemByCommitOffset (5.x, negated)",
    (599, 1000, 1000, 40),
)
can_be_batch = BoundFunction(
    "can_be_batch",
    laws.can_be_batch,
    "message_total BIGINT NOT NULL, buffer_total BIGINT NOT NULL, last_size BIGINT NOT NULL, "
    "is_in_disk BOOLEAN NOT NULL",
    "BOOLEAN",
    "Whether one pull can give message_total messages of buffer_total bytes, the last one of last_size bytes, with the "
    "default limits: 32 messages and 256 KiB from memory, 8 messages and 64 KiB from disk.",
    "DefaultMessageStore#isTheBatchFull",
    (8, 65_536, 8_192, True),
)
suggest_which_broker_id = BoundFunction(
    "suggest_which_broker_id",
    pull_answer.suggest_which_broker_id,
    "suggest_pulling_from_slave BOOLEAN NOT NULL, slave_read_enable BOOLEAN NOT NULL, "
    "group_broker_id BIGINT NOT NULL, which_broker_when_consume_slowly BIGINT NOT NULL, "
    "broker_id BIGINT NOT NULL, min_broker_id_in_group BIGINT NOT NULL, "
    "in_broker_container BOOLEAN NOT NULL, version STRING NOT NULL",
    "BIGINT",
    "The broker id that an answer tells the client to ask next. group_broker_id and which_broker_when_consume_slowly "
    "are settings of the subscription group, slave_read_enable is one of the broker. The last four arguments matter "
    "since version 5.0.",
    "PullMessageProcessor#processRequest (4.x), #composeResponseHeader (5.x)",
    (True, True, 0, 1),
)

compare_and_increase_only = BoundFunction(
    "compare_and_increase_only",
    laws.compare_and_increase_only,
    "target BIGINT NOT NULL, value BIGINT NOT NULL",
    "STRUCT<moved: BOOLEAN, offset: BIGINT>",
    "Whether value is greater than target, and the greater of the two.",
    "MixAll#compareAndIncreaseOnly",
    (5, 9),
)
update_offset = BoundFunction(
    "update_offset",
    offset_store.update_offset,
    "offset_old BIGINT, offset BIGINT NOT NULL, increase_only BOOLEAN NOT NULL",
    "BIGINT",
    "The offset that a client keeps for a queue after an update. offset_old is NULL before the first one. With "
    "increase_only, a smaller offset is ignored.",
    "RemoteBrokerOffsetStore#updateOffset",
    (5, 3, True),
)
_OFFSET_TABLE = "MAP<STRING, MAP<INT, BIGINT>>"
commit_offset = BoundFunction(
    "commit_offset",
    laws.commit_offset,
    f"offset_table {_OFFSET_TABLE}, group STRING NOT NULL, topic STRING NOT NULL, "
    "queue_id INT NOT NULL, offset BIGINT NOT NULL",
    f"STRUCT<previous_offset: BIGINT, offset_table: {_OFFSET_TABLE}>",
    "A broker's table of offsets after a commit, and the offset that the commit replaced (NULL if there was none).",
    "ConsumerOffsetManager#commitOffset",
    ({"pay@pay-group": {0: 5}}, "pay-group", "pay", 0, 9),
)

query_consumer_offset = BoundFunction(
    "query_consumer_offset",
    consumer_offset_manager.query_consumer_offset,
    "offset BIGINT NOT NULL, min_offset BIGINT NOT NULL, first_is_in_memory BOOLEAN NOT NULL, "
    "set_zero_if_not_found BOOLEAN",
    "BIGINT",
    "The stored offset that a broker answers to a client; NULL for QUERY_NOT_FOUND. offset is -1 if the broker has "
    "none: a queue whose first message is still in memory is then answered 0.",
    "ConsumerManageProcessor#queryConsumerOffset",
    (-1, 0, True),
)
compute_pull_from_where = BoundFunction(
    "compute_pull_from_where",
    laws.compute_pull_from_where,
    "consume_from_where STRING NOT NULL, last_offset BIGINT NOT NULL, topic STRING NOT NULL, admin_answer BIGINT",
    "BIGINT",
    "The offset at which a client starts a queue, below 0 for none. last_offset is the stored offset: -1 if the broker "
    "has none, lower if it could not be read. admin_answer is the broker's answer to the request for the end of the "
    "queue, or for the offset of a time.",
    "RebalancePushImpl#computePullFromWhere",
    ("CONSUME_FROM_LAST_OFFSET", -1, "pay", 90),
)
send_status = BoundFunction(
    "send_status",
    send_retry.send_status,
    "response_code INT NOT NULL",
    "STRING",
    "The SendStatus that a broker's answer to a send means to the producer; NULL for a code that is an exception.",
    "MQClientAPIImpl#processSendResponse",
    (10,),
)

try_lock = BoundFunction(
    "try_lock",
    laws.try_lock,
    "holder STRING, last_update_timestamp BIGINT, client_id STRING NOT NULL, now BIGINT NOT NULL",
    "BOOLEAN",
    "Whether a broker grants the lock of a queue to a client. holder is the client that has it, NULL for none, and "
    "last_update_timestamp when it got or renewed it. Times are in epoch ms.",
    "RebalanceLockManager#tryLock",
    ("10.0.0.1@1", 0, "10.0.0.2@2", 60_001),
)

flow_control = BoundFunction(
    "flow_control",
    cache_limits.flow_control,
    "cached_count BIGINT NOT NULL, cached_size_in_mib BIGINT NOT NULL, max_span BIGINT NOT NULL, "
    "consume_orderly BOOLEAN NOT NULL, pull_threshold_for_queue BIGINT NOT NULL, "
    "pull_threshold_size_for_queue BIGINT NOT NULL, consume_concurrently_max_span BIGINT NOT NULL",
    "STRING",
    "Why a client does not pull from a queue: count, size or span of the messages that it has not finished is above "
    "its threshold; NULL if it pulls. An orderly consumer has no limit of the span.",
    "DefaultMQPushConsumerImpl#pullMessage",
    (1001, 3, 1000),
)

retry_delay_level = BoundFunction(
    "retry_delay_level",
    send_back.retry_delay_level,
    "delay_level INT NOT NULL, reconsume_times INT NOT NULL",
    "INT",
    "The delay level of the next retry of a message that a consumer sends back. delay_level is the requested one, 0 if "
    "the broker decides; reconsume_times counts the retries before. A broker uses its highest level for any above it.",
    "SendMessageProcessor#consumerSendMsgBack",
    (0, 2),
)
is_dead_letter = BoundFunction(
    "is_dead_letter",
    laws.is_dead_letter,
    "delay_level INT NOT NULL, reconsume_times INT NOT NULL, retry_max_times INT NOT NULL, max_reconsume_times INT",
    "BOOLEAN",
    "Whether a message that a consumer sends back becomes a dead letter. retry_max_times is the setting of the group, "
    "max_reconsume_times that of the request, which counts first; NULL: the client does not say.",
    "SendMessageProcessor#consumerSendMsgBack",
    (0, 16, 16, 16),
)

status_windows = BoundFunction(
    "status_windows",
    group_windows.status_windows,
    "commit_ts ARRAY<BIGINT> NOT NULL, commit_offset ARRAY<BIGINT> NOT NULL, head_ts ARRAY<BIGINT> NOT NULL, "
    "head_offset ARRAY<BIGINT> NOT NULL, window_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL",
    "ARRAY<STRUCT<window_end_ms: BIGINT, status: STRING, lag: BIGINT, time_lag_ms: DOUBLE, commits: INT, "
    "committed_offset: BIGINT>>",
    "The status of a group on one queue in each window, by Burrow's rules. commit_ts and commit_offset are the "
    "commits, head_ts and head_offset the end of the queue, oldest first. Times are epoch milliseconds.",
    "none; Burrow evaluates on demand, here at the end of each window",
    ([1_000, 61_000], [5, 9], [500, 60_500], [5, 9], 60_000, 130_000),
)

_POP = (
    allocate_for_pop,
    pop_init_offset,
    parse_retry_topic,
    parse_extra_info,
    check_block,
    next_offset,
    is_revive_due,
    revive_deadline,
)

FUNCTIONS: dict[str, BoundFunction] = {
    bound.name: bound
    for bound in (*(v for v in list(globals().values()) if isinstance(v, BoundFunction) and v not in _POP), *_POP)
}
