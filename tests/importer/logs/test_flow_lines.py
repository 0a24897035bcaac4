"""Lines of flow control, and of illegal offsets, name the group and the queue; the client is the one that holds it."""

from __future__ import annotations

from import_shapes import Imported, shape
from mqreplay.decode.logs.client_facts import Committed, FlowControlled, OffsetIllegal
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


def test_a_client_that_a_later_line_names_holds_the_queue() -> None:
    history = ClientHistory({})
    assert list(history.take(MS, FULL)) == []
    list(history.take(MS + 1, Committed("c1", "pay-group", QUEUE, 30, True)))
    found = dict(history.end())
    assert (found["flow_controls"]["client_id"], found["flow_controls"]["ts"]) == ("c1", MS)


def test_the_client_of_a_log_that_names_none_is_unknown() -> None:
    history = ClientHistory({}, "4f1c")
    assert list(history.take(MS, FULL)) == []
    ((stem, record),) = history.end()
    assert (stem, record["client_id"]) == ("flow_controls", "unknown@4f1c")
    assert not history.left_out


def test_a_line_of_one_of_several_clients_is_counted() -> None:
    history = ClientHistory({})
    assert list(history.take(MS, FULL)) == []
    for client_id in ("c1", "c2"):
        list(history.take(MS + 1, Committed(client_id, "pay-group", QUEUE, 30, True)))
    assert "flow_controls" not in [stem for stem, _ in history.end()]
    assert history.left_out == {"flow control of queues without a known client": 1}


def test_an_illegal_offset_before_the_line_that_names_the_client() -> None:
    """alibaba/rocketmq#210: the paste begins with the pull, and a commit follows 9 s later."""
    history = ClientHistory({})
    assert list(history.take(MS, OffsetIllegal("pay-group", QUEUE, 15619, 0, 0, 7358))) == []
    list(history.take(MS + 9_000, Committed("c1", "pay-group", QUEUE, 87, True)))
    list(history.end())
    [(_, pull)] = history.illegal_pulls
    assert (pull["client_id"], pull["request_ts"], pull["next_begin_offset"]) == ("c1", MS, 0)


@shape("e01-message-buffer-full")
def test_a_full_buffer_of_a_client_before_4_2(imported: Imported) -> None:
    """The line has no threshold and no client."""
    rows = imported.rows("flow_controls")
    assert [row["times"] for row in rows] == [1, 1001, 2001, 3001]
    assert {(row["consumer_group"], row["min_offset"], row["threshold"], row["flow_control"]) for row in rows} == {
        ("g_pay", 10000, None, "count")
    }
    assert rows[0]["client_id"].startswith("unknown@")
