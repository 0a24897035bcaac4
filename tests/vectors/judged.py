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
ON_ARRAYS: Final[Mapping[str, Arrays]] = {
    "burrow": Arrays("gold.group_status", "tests/decisions/test_group_status.py"),
    "status_windows": Arrays("gold.group_status", RULES),
    "client_clock": Arrays("gold.finding (clock_skew)", RULES),
    "clock_span": Arrays("gold.finding (clock_skew)", "tests/evidence/test_client_clocks.py"),
    "delivery_audit": Arrays("gold.delivery_audit", "tests/decisions/test_delivery_audit.py"),
    "missing_offsets": Arrays("gold.failover_exposure", RULES),
    "offset_evidence": Arrays("gold.offset_continuity", RULES),
    "offset_suspect": Arrays("gold.offset_continuity", RULES),
    "queue_progress": Arrays("gold.queue_progress", RULES),
    "skip": Arrays("gold.finding (offset_jump)", RULES),
    "stale_copy": Arrays("gold.finding (stale_slave_offsets)", RULES),
    "standstill": Arrays("gold.finding (stuck_queue)", RULES),
    "pull_node:recalculate_pull_from_which_node": Arrays("gold.pull_route", "tests/decisions/test_pull_route.py"),
    "pull_node:PullFromWhichNodeTable.update_pull_from_which_node": Arrays(
        "gold.pull_route", "tests/decisions/test_pull_route.py"
    ),
    "pull_node:PullFromWhichNodeTable.recalculate_pull_from_which_node": Arrays(
        "gold.pull_route", "tests/decisions/test_pull_route.py"
    ),
    "slave_suggestion:slave_suggestion": Arrays("gold.slave_suggestion", "tests/decisions/test_slave_suggestion.py"),
}

STORE: Final = "needs the broker's commit log and consume queues, which no recording holds; its parts judge"
TABLE_OF_BROKER: Final = "the offset table in a broker's memory; its copies and commits judge gold.offset_continuity"
IN_CLIENT: Final = "state inside of a client; what leaves it are commits, judged in gold.offset_continuity"
IN_POP: Final = "state inside of a broker; what clients and files show of it is judged in gold.pop_receipt"
ORDERLY_POP: Final = (
    "state inside of a broker between two POPs; consumerOrderInfo.json shows its result (pop_order_blocked)"
)
NAMES: Final = "the inverse of names that are compared forwards (orphan_queue, gold.delivery_audit)"
JUDGES_NOTHING: Final[Mapping[str, str]] = {
    "consume_queue": STORE,
    "get_message:get_message": STORE,
    "get_message:GetMessageResult.message_count": STORE,
    "consumer_offset_manager:topic_at_group": TABLE_OF_BROKER,
    "consumer_offset_manager:commit_offset": TABLE_OF_BROKER,
    "consumer_offset_manager:query_offset": TABLE_OF_BROKER,
    "consumer_offset_manager:encode": TABLE_OF_BROKER,
    "consumer_offset_manager:persist": TABLE_OF_BROKER,
    "consumer_offset_manager:load": "`mqreplay doctor` says by it what a broker makes of a damaged file",
    "fastjson_write": TABLE_OF_BROKER,
    "offset_store": IN_CLIENT,
    "pop_order": ORDERLY_POP,
    "pop_receipt": IN_POP,
    "pop_revive": IN_POP,
    "pop_start": "the broker's own offset of a group before its first POP is in no answer",
    "pop_answer:parse_order_count_info": "how often a message was popped; the audit counts deliveries itself",
    "pop_retry_topic": NAMES,
    "transfer": "a count of copied bytes for tuning; no decision",
}
