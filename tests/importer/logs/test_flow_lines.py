"""Lines of flow control name the group and the queue; the client is the one that holds it."""

from __future__ import annotations

from mqreplay.decode.logs.client_facts import Committed, FlowControlled
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.importer.logs.client_history import ClientHistory

MS = 1795228808333
QUEUE = MessageQueue("pay", "broker-a", 2)
FULL = FlowControlled("pay-group", QUEUE, "count", 1000, 30, 1030, 1001, 3, 1)


def test_the_only_client_of_the_group_holds_the_queue() -> None:
    history = ClientHistory({})
    list(history.take(MS, Committed("c1", "pay-group", QUEUE, 30, True)))
    ((stem, record),) = history.take(MS + 1, FULL)
    assert stem == "flow_controls"
    assert (record["client_id"], record["queue_id"], record["cached_msgs"]) == ("c1", 2, 1001)
    assert (record["ts"], record["threshold"], record["source"]) == (MS + 1, 1000, "client_log")


def test_a_line_of_an_unknown_client_is_counted() -> None:
    history = ClientHistory({})
    assert list(history.take(MS, FULL)) == []
    assert history.left_out == {"flow control of queues without a known client": 1}
