"""What the imports of lib do not show of where core judges: kernels on arrays, and functions that judge nothing.

A key is a module of core, or module:function; the longer one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Arrays(NamedTuple):
    """A kernel that applies a function's rule to whole columns: the table it decides, and the test that compares."""

    table: str
    test: str


RULES: Final = "tests/evidence/test_queue_rules.py"
FLUSHES: Final = Arrays("gold.replication", "tests/decisions/test_flush_turns.py")
TURNS: Final = Arrays("gold.slave_copy", "tests/decisions/test_slave_turns.py")
OFFSET_TABLE: Final = "tests/decisions/test_offset_table_rule.py"
ON_ARRAYS: Final[Mapping[str, Arrays]] = {
    "status_windows": Arrays("gold.group_status", RULES),
    "consumer_offset_manager:commit_offset": Arrays("gold.offset_continuity", OFFSET_TABLE),
    "consumer_offset_manager:query_offset": Arrays("gold.offset_continuity", OFFSET_TABLE),
    "consumer_offset_manager:topic_at_group": Arrays("silver.offset_change", OFFSET_TABLE),
    **dict.fromkeys(
        (
            "process_queue:ProcessQueue.commit",
            "process_queue:ProcessQueue.make_message_to_consume_again",
            "process_queue:ProcessQueue.put_message",
            "process_queue:ProcessQueue.remove_message",
            "process_queue:ProcessQueue.take_messages",
        ),
        Arrays("gold.committed_offset", "tests/decisions/test_committed_offset.py"),
    ),
    **dict.fromkeys(
        (
            "process_queue:ProcessQueue.consuming_tree",
            "process_queue:ProcessQueue.max_span",
            "process_queue:ProcessQueue.tree",
        ),
        Arrays("gold.flow_control", "tests/decisions/test_flow_control.py"),
    ),
    "pull_node:PullFromWhichNodeTable.update_pull_from_which_node": Arrays(
        "gold.pull_route", "tests/decisions/test_pull_route.py"
    ),
    "rebalance_lock_manager:is_lock_all_expired": Arrays(
        "gold.retried_message", "tests/decisions/test_second_tries.py"
    ),
    **dict.fromkeys(
        ("rebalance_lock_manager:try_lock_batch", "rebalance_lock_manager:unlock_batch"),
        Arrays("gold.queue_lock", "tests/decisions/test_queue_lock.py"),
    ),
    **dict.fromkeys(
        (
            "pop_order:commit_and_next",
            "pop_order:update",
            "pop_order:update_next_visible_time",
            "pop_receipt:ReceiptHandle.is_order",
            "pop_receipt:ReceiptHandle.next_visible_time",
            "pop_receipt:decode_receipt_handle",
            "pop_revive:CheckPoint.index_of_ack",
            "pop_revive:CheckPoint.revive_time",
            "pop_revive:unacknowledged_offsets",
        ),
        Arrays("gold.pop_receipt", "tests/decisions/test_pop_receipts.py"),
    ),
    "replication:is_slave_ok": Arrays("gold.slave_sync", "tests/decisions/test_slave_sync.py"),
    "retry_topic:topic_of_queue": Arrays("gold.delivery_audit", "tests/evidence/test_queue_topic.py"),
    "flush:dirty_pages": FLUSHES,
    "flush:flushes": FLUSHES,
    "flush:is_able_to_flush": FLUSHES,
    "flush:is_thorough": FLUSHES,
    "slave_synchronize:asks_master": TURNS,
    "slave_synchronize:is_due": TURNS,
    "slave_synchronize:sync_configs": TURNS,
    "slave_synchronize:sync_consumer_offset": Arrays(
        "gold.finding (stale_slave_offsets)", "tests/evidence/offsets/test_slave_turns.py"
    ),
    "select_queue:continues_a_turn": Arrays("gold.send_attempt", "tests/evidence/messages/test_thread_turns.py"),
    "slave_suggestion:check_in_disk_by_commit_offset": Arrays(
        "gold.pull_batch", "tests/decisions/test_slave_suggestion.py"
    ),
}

STORE: Final = "needs the broker's commit log and consume queues, which no recording holds; its parts judge"
IN_CLIENT: Final = "state inside of a client; what leaves it are commits, judged in gold.committed_offset"
CACHE: Final = "the cache inside of a client, message by message; what clients report of it judges gold.flow_control"
FAULTS: Final = (
    "the latencies that a producer measured are in no evidence; breaks that it takes judge gold.send_attempt"
)
FLUSH: Final = "bytes that a loss of power costs, or one message of SYNC_FLUSH; no poll shows the flush of one message"
IN_POP: Final = "state inside of a broker; what clients and files show of it judges gold.pop_receipt"
ORDERLY_POP: Final = "when a broker wakes the clients that wait for a queue is in no evidence"
NAMES: Final = "the inverse of names that are compared forwards (orphan_queue, gold.delivery_audit)"
JUDGES_NOTHING: Final[Mapping[str, str]] = {
    "consume_queue": STORE,
    "get_message:get_message": STORE,
    "get_message:GetMessageResult.message_count": STORE,
    "fault_strategy": FAULTS,
    "flush": FLUSH,
    "java_maps:concurrent_hash_map_order": FAULTS,
    "message_queue:message_queue_hash": FAULTS,
    "offset_store": IN_CLIENT,
    "pop_receipt:parse_order_count_info": "how often a message was popped; the audit counts deliveries itself",
    "pop_assignment:message_request_mode": "a setting that gold.pop_assignment reads from the broker's answer",
    "pop_order:lock_free_timestamp": ORDERLY_POP,
    "pop_receipt": IN_POP,
    **dict.fromkeys(
        ("retry_topic:parse_group", "retry_topic:parse_normal_topic", "retry_topic:parse_retry_topic"), NAMES
    ),
    "pop_revive": IN_POP,
    "pop_start": "the broker's own offset of a group before its first POP is in no answer",
    "process_queue": CACHE,
    "pull_node:find_broker_address_in_publish": "the address of a send; gold.send_attempt judges its broker",
    "select_queue:select_with_faults": FAULTS,
    "select_queue:select_with_filters": FAULTS,
    "send_retry:isolates_broker": FAULTS,
    "send_retry:retries_async": "no evidence says whether a send was asynchronous",
    "send_retry:replay_sync_send": "all tries of a send at once; gold.send_attempt judges each by step_after",
    "topic_route:write_queue_nums_by_broker": FAULTS,
    "slave_suggestion:transfer_cost": "a count of copied bytes for tuning; no decision",
}
