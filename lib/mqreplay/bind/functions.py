"""The catalogue: every law that Spark can ask, one entry each, by the law's own name and argument names.

`functions.allocate_averagely.arrow_udf(...)` is a column; `register.register(spark)` makes all of them SQL
functions of a session.
"""

from __future__ import annotations

from mqreplay.bind import laws
from mqreplay.bind.function import BoundFunction
from mqreplay.core import allocation, offset_store, pull_answer, pull_node
from mqreplay.core import slave_suggestion as memory
from mqreplay.core import status_windows as group_windows

QUEUE = "STRUCT<topic: STRING, broker_name: STRING, queue_id: INT>"
_ALLOCATE = f"consumer_group STRING, current_cid STRING, mq_all ARRAY<{QUEUE}>, cid_all ARRAY<STRING>"

allocate_averagely = BoundFunction("allocate_averagely", allocation.allocate_averagely, _ALLOCATE, f"ARRAY<{QUEUE}>")
allocate_averagely_by_circle = BoundFunction(
    "allocate_averagely_by_circle", allocation.allocate_averagely_by_circle, _ALLOCATE, f"ARRAY<{QUEUE}>"
)
# By getName(). CONFIG, MACHINE_ROOM and MACHINE_ROOM_NEARBY-* need settings that no recording has: core answers as it
# does without them.
allocate = BoundFunction("allocate", laws.allocate, f"strategy_name STRING NOT NULL, {_ALLOCATE}", f"ARRAY<{QUEUE}>")

recalculate_pull_from_which_node = BoundFunction(
    "recalculate_pull_from_which_node",
    pull_node.recalculate_pull_from_which_node,
    "suggestion BIGINT, connect_broker_by_user BOOLEAN NOT NULL, default_broker_id BIGINT NOT NULL",
    "BIGINT",
)
update_pull_from_which_node = BoundFunction(
    "update_pull_from_which_node",
    laws.update_pull_from_which_node,
    f"pull_from_which_node_table MAP<{QUEUE}, BIGINT>, mq {QUEUE} NOT NULL, broker_id BIGINT NOT NULL",
    f"MAP<{QUEUE}, BIGINT>",
)
find_broker_address_in_subscribe = BoundFunction(
    "find_broker_address_in_subscribe",
    laws.find_broker_address_in_subscribe,
    "broker_addr_table MAP<STRING, MAP<BIGINT, STRING>>, broker_name STRING, broker_id BIGINT NOT NULL, "
    "only_this_broker BOOLEAN NOT NULL, version STRING NOT NULL",
    "STRUCT<broker_addr: STRING, broker_id: BIGINT, slave: BOOLEAN>",
)

_MEMORY = "total_physical_memory_size BIGINT NOT NULL, access_message_in_memory_max_ratio BIGINT NOT NULL"

memory_threshold = BoundFunction("memory_threshold", memory.memory_threshold, _MEMORY, "BIGINT")
effective_ratio = BoundFunction(
    "effective_ratio",
    memory.effective_ratio,
    "access_message_in_memory_max_ratio BIGINT NOT NULL, broker_role STRING, version STRING NOT NULL",
    "BIGINT",
)
slave_suggestion = BoundFunction(
    "slave_suggestion",
    memory.slave_suggestion,
    f"max_offset_py BIGINT NOT NULL, max_phy_offset_pulling BIGINT NOT NULL, {_MEMORY}",
    "BOOLEAN",
)
check_in_disk_by_commit_offset = BoundFunction(
    "check_in_disk_by_commit_offset",
    memory.check_in_disk_by_commit_offset,
    f"offset_py BIGINT NOT NULL, max_offset_py BIGINT NOT NULL, {_MEMORY}",
    "BOOLEAN",
)
suggest_which_broker_id = BoundFunction(
    "suggest_which_broker_id",
    pull_answer.suggest_which_broker_id,
    "suggest_pulling_from_slave BOOLEAN NOT NULL, slave_read_enable BOOLEAN NOT NULL, "
    "group_broker_id BIGINT NOT NULL, which_broker_when_consume_slowly BIGINT NOT NULL, "
    "broker_id BIGINT NOT NULL, min_broker_id_in_group BIGINT NOT NULL, "
    "in_broker_container BOOLEAN NOT NULL, version STRING NOT NULL",
    "BIGINT",
)

compare_and_increase_only = BoundFunction(
    "compare_and_increase_only",
    laws.compare_and_increase_only,
    "target BIGINT NOT NULL, value BIGINT NOT NULL",
    "STRUCT<moved: BOOLEAN, offset: BIGINT>",
)
update_offset = BoundFunction(
    "update_offset",
    offset_store.update_offset,
    "offset_old BIGINT, offset BIGINT NOT NULL, increase_only BOOLEAN NOT NULL",
    "BIGINT",
)
_OFFSET_TABLE = "MAP<STRING, MAP<INT, BIGINT>>"
commit_offset = BoundFunction(
    "commit_offset",
    laws.commit_offset,
    f"offset_table {_OFFSET_TABLE}, group STRING NOT NULL, topic STRING NOT NULL, "
    "queue_id INT NOT NULL, offset BIGINT NOT NULL",
    f"STRUCT<previous_offset: BIGINT, offset_table: {_OFFSET_TABLE}>",
)

status_windows = BoundFunction(
    "status_windows",
    group_windows.status_windows,
    "commit_ts ARRAY<BIGINT> NOT NULL, commit_offset ARRAY<BIGINT> NOT NULL, head_ts ARRAY<BIGINT> NOT NULL, "
    "head_offset ARRAY<BIGINT> NOT NULL, window_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL",
    "ARRAY<STRUCT<window_end_ms: BIGINT, status: STRING, lag: BIGINT, time_lag_ms: DOUBLE, commits: INT, "
    "committed_offset: BIGINT>>",
)

FUNCTIONS: dict[str, BoundFunction] = {
    bound.name: bound for bound in list(globals().values()) if isinstance(bound, BoundFunction)
}
