"""A consumer's handling of messages that it could not consume: send them back, or keep them.

Concurrent consumption asks the broker to take the message back, and if that fails sends it to the retry
topic itself. Orderly consumption keeps the messages and tries again, and only past the limit sends them
away. Follows org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl#sendMessageBack and
ConsumeMessageOrderlyService.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mqreplay.core.java import is_blank, to_int
from mqreplay.core.retry_topic import concurrent_max_reconsume_times, orderly_max_reconsume_times, retry_topic
from mqreplay.core.version import CLIENT_4, at_least

SUSPEND_CURRENT_QUEUE_TIME_MILLIS = 1_000  # default of DefaultMQPushConsumer, in ms
LEAST_SUSPEND_MS, MOST_SUSPEND_MS = 10, 30_000


class ConsumedMessage(NamedTuple):
    """A message as a consumer holds it; ``store_host`` is the address of the broker that stored it."""

    topic: str
    msg_id: str
    reconsume_times: int
    flag: int = 0
    properties: Mapping[str, str] = {}
    store_host: str = ""


class RetryMessage(NamedTuple):
    """A message that the consumer's own producer sends to the retry topic."""

    topic: str
    delay_time_level: int
    flag: int
    properties: Mapping[str, str]


class SendBackTry(NamedTuple):
    """The request CONSUMER_SEND_MSG_BACK: where it goes and what it asks."""

    addr: str
    broker_name: str | None
    group: str
    delay_level: int
    max_reconsume_times: int


class ClientSendBack(NamedTuple):
    """What sendMessageBack did: its request to the broker, and the message sent instead, if any."""

    sent_back_to_broker: SendBackTry | None
    sent_by_producer: RetryMessage | None


class ReconsumeCheck(NamedTuple):
    """``suspend``: the queue waits and is tried again; ``reconsume_times`` of each message afterwards."""

    suspend: bool
    reconsume_times: tuple[int, ...]
    sent_by_producer: tuple[RetryMessage, ...]


def send_message_back(
    msg: ConsumedMessage,
    delay_level: int,
    broker_name: str | None,
    broker_addr: str | None,
    consumer_group: str,
    max_reconsume_times: int = -1,
    broker_ok: bool = True,
    version: str = CLIENT_4,
) -> ClientSendBack:
    """Send one message back (DefaultMQPushConsumerImpl#sendMessageBack).

    ``broker_addr`` is the master of broker_name by the client's route; without a broker_name the client asks the
    message's store host. ``broker_ok``: whether the broker accepted the message; if not, the message
    goes to the retry topic through the producer. Where no address is known, 5.3.2 and later do not try.
    ``max_reconsume_times`` is the consumer's setting.

    >>> msg = ConsumedMessage("T", "ID", 0, store_host="10.0.0.2:10911")
    >>> send_message_back(msg, 0, None, None, "g").sent_back_to_broker.addr
    '10.0.0.2:10911'
    >>> send_message_back(msg, 0, None, None, "g", broker_ok=False).sent_by_producer.delay_time_level
    3
    """
    addr = broker_addr if broker_name is not None else msg.store_host
    max_times = concurrent_max_reconsume_times(max_reconsume_times)
    asked = SendBackTry(addr or "", broker_name, consumer_group, delay_level, max_times)
    if is_blank(addr) and at_least(version, "5.3.2"):
        return ClientSendBack(None, as_normal_message(msg, consumer_group, max_reconsume_times, version))
    if broker_ok and addr is not None:
        return ClientSendBack(asked, None)
    return ClientSendBack(asked, as_normal_message(msg, consumer_group, max_reconsume_times, version))


def as_normal_message(
    msg: ConsumedMessage, consumer_group: str, max_reconsume_times: int = -1, version: str = CLIENT_4
) -> RetryMessage:
    """Return the message that a concurrent consumer sends to the retry topic if the broker did not take it back.

    Up to 5.3.3 its properties replace those set before, so the id of the message it began as is lost unless
    it was there already. DefaultMQPushConsumerImpl#sendMessageBackAsNormalMessage (in 4.9 within sendMessageBack).

    >>> as_normal_message(ConsumedMessage("T", "ID", 1), "g").properties["RECONSUME_TIME"]
    '2'
    """
    max_times = concurrent_max_reconsume_times(max_reconsume_times)
    properties = _with_origin(msg) if at_least(version, "5.3.4") else dict(msg.properties)
    return _retry_message(msg, consumer_group, to_int(msg.reconsume_times + 1), max_times, properties)


def orderly_retry_message(
    msg: ConsumedMessage, consumer_group: str, max_reconsume_times: int = -1, version: str = CLIENT_4
) -> RetryMessage:
    """Return the message that an orderly consumer sends to the retry topic past its limit, as a dead letter.

    Before 5.1.1 it has the retries so far, since then one more. ConsumeMessageOrderlyService#sendMessageBack.

    >>> orderly_retry_message(ConsumedMessage("T", "ID", 3), "g", 3).properties["ORIGIN_MESSAGE_ID"]
    'ID'
    """
    retries = msg.reconsume_times + (1 if at_least(version, "5.1.1") else 0)
    max_times = orderly_max_reconsume_times(max_reconsume_times)
    return _retry_message(msg, consumer_group, to_int(retries), max_times, _with_origin(msg))


def check_reconsume_times(
    msgs: Sequence[ConsumedMessage],
    consumer_group: str,
    max_reconsume_times: int = -1,
    send_ok: bool = True,
    version: str = CLIENT_4,
) -> ReconsumeCheck:
    """Return the result for messages whose orderly consumption failed.

    A message at its limit is sent away; each other counts one retry more and suspends the queue, and so
    does one that could not be sent (``send_ok`` False). Without suspension the batch is committed: skipped,
    for this queue. ConsumeMessageOrderlyService#checkReconsumeTimes.

    >>> check_reconsume_times([ConsumedMessage("T", "ID", 0)], "g").suspend
    True
    >>> check_reconsume_times([ConsumedMessage("T", "ID", 3)], "g", 3).suspend
    False
    """
    limit = orderly_max_reconsume_times(max_reconsume_times)
    after: list[int] = []
    sent: list[RetryMessage] = []
    for msg in msgs:
        past = msg.reconsume_times >= limit
        if past:
            sent.append(orderly_retry_message(msg, consumer_group, max_reconsume_times, version))
        after.append(msg.reconsume_times if past and send_ok else to_int(msg.reconsume_times + 1))
    suspend = any(msg.reconsume_times < limit or not send_ok for msg in msgs)
    return ReconsumeCheck(suspend, tuple(after), tuple(sent))


def suspend_time_millis(of_listener: int = -1, of_consumer: int = SUSPEND_CURRENT_QUEUE_TIME_MILLIS) -> int:
    """Return how long a suspended queue waits, in ms: what the listener's context says, else the consumer's setting.

    It is at least 10 ms and at most 30 s. ConsumeMessageOrderlyService#submitConsumeRequestLater.

    >>> suspend_time_millis(), suspend_time_millis(0), suspend_time_millis(-1, 60_000)
    (1000, 10, 30000)
    """
    millis = of_consumer if of_listener == -1 else of_listener
    return min(max(millis, LEAST_SUSPEND_MS), MOST_SUSPEND_MS)


def _with_origin(msg: ConsumedMessage) -> dict[str, str]:
    properties = dict(msg.properties)
    if is_blank(properties.get("ORIGIN_MESSAGE_ID")):
        properties["ORIGIN_MESSAGE_ID"] = msg.msg_id
    return properties


def _retry_message(
    msg: ConsumedMessage, consumer_group: str, retries: int, max_times: int, properties: dict[str, str]
) -> RetryMessage:
    level = to_int(3 + msg.reconsume_times)
    properties |= {
        "RETRY_TOPIC": msg.topic,
        "RECONSUME_TIME": str(retries),
        "MAX_RECONSUME_TIMES": str(max_times),
        "DELAY": str(level),
    }
    properties.pop("TRAN_MSG", None)  # or the broker would take it for half a transaction
    return RetryMessage(retry_topic(consumer_group), level, msg.flag, properties)
