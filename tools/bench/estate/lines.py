"""Lines of the kinds that an estate has only with its additions: text of one line each, with its line feed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .flow import MESSAGE
from .shape import Broker, Client

Line = tuple[int, str]  # when it was written (epoch ms), and its text
ANSWER_MS = 8


def text(value: dict[str, object]) -> str:
    """A line as recorders write it."""
    return json.dumps(value, separators=(",", ":")) + "\n"


def queue_names(topic: str, broker: Broker, queue_id: int) -> dict[str, object]:
    """Where a message queue is, in the order of the recorders' fields."""
    return {"topic": topic, "queue_id": queue_id, "broker_name": broker.name}


def commit_template(client: Client, group: str, queue: dict[str, object], broker: Broker) -> str:
    """An UPDATE_CONSUMER_OFFSET, still without its two times and its offset."""
    asked = {"kind": "UPDATE", "mode": "oneway", "client_id": client.client_id, "consumer_group": group}
    asked |= {**queue, "broker_addr": broker.addrs[0], "broker_id": 0}
    empty = dict.fromkeys(("answer_offset", "response_code", "response_name", "remark", "error"))
    begins, ends = (text(part)[1:-2].replace("%", "%%") for part in (asked, empty))
    return f'{{"ts":%d,"response_ts":%d,{begins},"commit_offset":%d,{ends}}}\n'


def query(ts: int, client: Client, group: str, queue: dict[str, object], broker: Broker) -> Line:
    """A QUERY_CONSUMER_OFFSET of a group that never committed an offset."""
    asked = {"ts": ts, "response_ts": ts + ANSWER_MS, "kind": "QUERY", "mode": "sync", "client_id": client.client_id}
    asked |= {"consumer_group": group, **queue, "broker_addr": broker.addrs[0], "broker_id": 0}
    answer = {"commit_offset": None, "answer_offset": None, "response_code": 22, "response_name": "QUERY_NOT_FOUND"}
    remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
    return ts, text({**asked, **answer, "remark": remark, "error": None})


def produced(ts: int, queue: dict[str, object], broker: int, offset: int, place: int) -> Line:
    """A message sent; ``place`` (bytes) is where it begins in the commit log."""
    names = _message(queue, offset)
    sent = {"topic": queue["topic"], "broker_name": queue["broker_name"], "queue_id": queue["queue_id"]}
    ids = {"msg_id": names["msg_id"], "offset_msg_id": f"0A00{broker:02X}0100002A9F{place:016X}"}
    rest = {"queue_offset": offset, "key": names["keys"], "tags": "TagA", "size": 256, **ids}
    return ts, text({"ts": ts, **sent, **rest, "send_status": "SEND_OK", "error": None})


def consumed(
    ts: int, client: Client, group: str, queue: dict[str, object], offset: int, place: int, born: int, orderly: bool
) -> Line:
    """A message that a listener processed."""
    line = {"ts": ts, "client_id": client.client_id, "consumer_group": group, "topic": queue["topic"]}
    line |= {"queue_topic": queue["topic"], "broker_name": queue["broker_name"], "queue_id": queue["queue_id"]}
    line |= {"queue_offset": offset, "commitlog_offset": place, "store_size": MESSAGE, **_message(queue, offset)}
    status = "SUCCESS" if orderly else "CONSUME_SUCCESS"
    line |= {"tags": "TagA", "born_ts": born, "store_ts": born, "reconsume_times": 0, "status": status}
    return ts, text({**line, "orderly": orderly})


def _message(queue: dict[str, object], offset: int) -> dict[str, object]:
    key = f"{queue['topic']}-{queue['broker_name'][-2:]}-{queue['queue_id']}-{offset}"  # type: ignore[index]
    return {"msg_id": key.encode("ascii").hex().upper()[-32:], "keys": key}


def lock(ts: int, client: Client, group: str, queues: Sequence[dict[str, object]], broker: Broker) -> Line:
    """A LOCK_BATCH_MQ that was granted whole."""
    asked = [{"brokerName": q["broker_name"], "queueId": q["queue_id"], "topic": q["topic"]} for q in queues]
    line = {"ts": ts, "response_ts": ts + ANSWER_MS, "kind": "LOCK_BATCH_MQ", "client_id": client.client_id}
    line |= {"broker_name": broker.name, "broker_addr": broker.addrs[0], "broker_id": 0, "mode": "sync"}
    line |= {"response_code": 0, "remark": None, "error": None}
    request = {"clientId": client.client_id, "consumerGroup": group, "mqSet": asked}
    bodies = {"request": request, "response": {"lockOKMQSet": asked}}
    return ts, text(line | {name: json.dumps(body, separators=(",", ":")) for name, body in bodies.items()})


def reset(ts: int, client: Client, group: str, queue: dict[str, object], broker: Broker, offset: int) -> Line:
    """A RESET_CONSUMER_CLIENT_OFFSET that a 4.9 broker pushed to a client: fastjson's keys are objects."""
    name = json.dumps(
        {"brokerName": broker.name, "queueId": queue["queue_id"], "topic": queue["topic"]}, separators=(",", ":")
    )
    ext = {"topic": queue["topic"], "isForce": "true", "group": group, "timestamp": str(ts - 60_000)}
    line = {"ts": ts, "client_id": client.client_id, "broker_name": broker.name, "broker_addr": broker.addrs[0]}
    line |= {"broker_id": 0, "request_code": 220, "name": "RESET_CONSUMER_CLIENT_OFFSET", "ext": ext}
    return ts, text({**line, "body": f'{{"offsetTable":{{{name}:{offset}}}}}'})


def unregister(ts: int, client: Client, group: str, broker: Broker) -> Line:
    """An UNREGISTER_CLIENT of a consumer that shuts down."""
    line = {"ts": ts, "response_ts": ts + ANSWER_MS, "kind": "UNREGISTER_CLIENT", "client_id": client.client_id}
    line |= {"broker_name": broker.name, "broker_addr": broker.addrs[0], "broker_id": 0, "mode": "sync"}
    header = {"clientID": client.client_id, "consumerGroup": group}
    return ts, text({**line, "response_code": 0, "error": None, "header": header})
