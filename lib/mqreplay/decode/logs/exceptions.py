"""Exceptions of RocketMQ's clients: in a line of any log, or in the lines below it.

A line of a client's log names what failed. The exception in the next lines says why, with the broker's code. The log
of an application has only the exception, in any layout. Sources: MQBrokerException, MQClientException,
DefaultMQProducerImpl, and the exceptions of org.apache.rocketmq.remoting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mqreplay.decode.client_errors import PULL_REQUEST, SEND_BACK_REQUEST, SEND_REQUEST
from mqreplay.decode.logs.form import Form, Messages


class Thrown(NamedTuple):
    """An exception: its ``java_class`` without the package, and what it says: ``text``.

    ``code`` and ``remark`` are those of a broker's answer. ``broker_addr`` is the broker that answered, or that was not
    reached. ``brokers`` are the names of the brokers of all tries of a send. ``request`` is SEND, PULL or SEND_BACK;
    None: not known.
    """

    java_class: str
    text: str = ""
    code: int | None = None
    remark: str | None = None
    broker_addr: str | None = None
    topic: str | None = None
    brokers: tuple[str, ...] = ()
    request: str | None = None


def _sent(brokers: str, **values: str) -> Thrown:
    return Thrown(brokers=tuple(name for name in brokers.split(", ") if name != "null"), **values)  # type: ignore[arg-type]


def _form(java_class: str, text: str, request: str | None = None, fact: Callable[..., Thrown] = Thrown) -> Form:
    constants = {"java_class": java_class, "request": request}
    return Form(f"{java_class}: {text}", fact, java_class, constants=constants, signs=None)


FORMS: Final = (
    *(  # MQBrokerException#getMessage, in an application's own words
        Form(
            f"CODE: {{code:int}}  DESC: {{remark:text}}{end}",
            Thrown,
            "MQBrokerException",
            constants={"java_class": "MQBrokerException"},
            signs=None,
        )
        for end in (" BROKER: {broker_addr:address}", "")
    ),
    *(
        _form(java_class, f"CODE: {{code:int}}  DESC: {{remark:text}}{end}")
        for java_class in ("MQBrokerException", "MQClientException")
        for end in (" BROKER: {broker_addr:address}", "")
    ),
    _form(
        "MQClientException",
        "Send [{:int}] times, still failed, cost [{:long}]ms, Topic: {topic}, BrokersSent: [{brokers:text}]",
        SEND_REQUEST,
        _sent,
    ),
    _form("MQClientException", "No route info of this topic: {topic}", SEND_REQUEST),
    _form("MQClientException", "No route info of this topic, {topic}", SEND_REQUEST),
    _form("MQClientException", "{:text}"),
    *(  # of ProducerImpl#checkProducerException in rocketmq-ons, which is Aliyun's client, too
        _form("ONSClientException", text, SEND_REQUEST)
        for text in (
            "Connect broker failed, Topic={topic:key}, msgId={:text}",
            "Send message to broker timeout, {:long}ms, Topic={topic:key}, msgId={:text}",
            "Receive a broker exception, {:word}={topic:key}, msgId={:text}",
            "Topic does not exist, Topic={topic:key}, msgId={:text}",
            "ONS Client check message exception, Topic={topic:key}, msgId={:text}",
            "defaultMQProducer send exception",
        )
    ),
    _form("ONSClientException", "{:text}"),
    _form("RemotingTooMuchRequestException", "sendDefaultImpl call timeout", SEND_REQUEST),
    _form("RemotingTooMuchRequestException", "{:text}"),
    _form("RemotingConnectException", "connect to {broker_addr:address} failed"),
    _form("RemotingSendRequestException", "send request to <{broker_addr:address}> failed"),
    _form("RemotingTimeoutException", "wait response on the channel <{broker_addr:address}> timeout, {:text}"),
    _form("RemotingTimeoutException", "{:text}"),
)
# Of any class: what a broker throws when it starts is often of Java itself.
_CAUSE: Final = re.compile(r"(?:Caused by: )?((?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error)\b.*)", re.ASCII | re.DOTALL)
MOST_CAUSE: Final = 500  # characters
# Of the queues of requests that BrokerFastFailure cleans, only that of sends may be cleaned before 3 s by default
# (BrokerConfig#waitTimeMillsInSendQueue).
_WAITED: Final = re.compile(r"\[TIMEOUT_CLEAN_QUEUE\].*period in queue: [0-2]?\d{1,3}ms", re.ASCII)
_LINE_END: Final = re.compile(r"\n|\\n")
_EXCEPTIONS: Final = Messages({"exceptions": FORMS})
# Remarks that only answers to sends have: SendMessageProcessor, AbstractSendMessageProcessor, BrokerFastFailure.
_SEND_REMARKS: Final = (
    *("service not available now", "create mapped file failed", "broker unable to service", "the message is illegal"),
    *("[PC_SYNCHRONIZED]", "[PCBUSY_CLEAN_QUEUE]", "request queueId["),
)
# The methods of MQClientAPIImpl and DefaultMQProducerImpl in a stack, by the request that they made.
_METHODS: Final = {
    ".processSendResponse(": SEND_REQUEST,
    ".sendDefaultImpl(": SEND_REQUEST,
    ".sendKernelImpl(": SEND_REQUEST,
    ".checkMessage(": SEND_REQUEST,
    ".checkProducerException(": SEND_REQUEST,
    ".processPullResponse(": PULL_REQUEST,
    ".consumerSendMessageBack(": SEND_BACK_REQUEST,
}


def exceptions_in(text: str) -> list[tuple[Thrown, int]]:
    """Return the exceptions of clients in a text, each in a line of its own, and their places (characters).

    A line of JSON may have a whole stack trace with written line ends.
    """
    if not _may_have_one(text):
        return []
    places, at = [], 0
    for part in _LINE_END.split(text):
        at = text.find(part, at)
        if (exception := exception_in(part)) is not None:
            places.append((exception[0], at + exception[1]))
        at += len(part)
    return places


def exception_in(text: str) -> tuple[Thrown, int] | None:
    """Return the first exception of a client in a line, and its place (characters); None without one.

    >>> exception_in("Caused by: a.b.MQBrokerException: CODE: 2  DESC: [OVERLOAD]busy BROKER: 10.1.0.7:10911")[0].code
    2
    >>> exception_in("java.lang.NullPointerException: null")
    """
    if not _may_have_one(text):
        return None
    place = _EXCEPTIONS.find(text)
    if place is None:
        return None
    start, at = place
    message = text[at:].rstrip(" \t\r\"',")
    thrown = _EXCEPTIONS.read(start, message)
    if not isinstance(thrown, Thrown) or text[:at].endswith("Exception: "):  # of another class, with the same words
        return None
    is_send = thrown.remark is not None and thrown.remark.startswith(_SEND_REMARKS)
    text = message if message.startswith("CODE: ") else message.partition(": ")[2]
    return thrown._replace(text=text, request=SEND_REQUEST if is_send else thrown.request), at


def _may_have_one(text: str) -> bool:
    return "Exception: " in text or "  DESC: " in text


def request_in(text: str) -> str | None:
    """Return the request that a line of a stack trace shows; None for another line.

    >>> request_in("at org.apache.rocketmq.client.impl.MQClientAPIImpl.processSendResponse(MQClientAPIImpl.java:604)")
    'send'
    """
    if ".rocketmq." not in text:
        return None
    return next((request for method, request in _METHODS.items() if method in text), None)


def cause_in(text: str) -> str | None:
    """Return the exception of Java that begins a line below a record, with what it says; None for another line.

    >>> cause_in("java.io.FileNotFoundException: /store/lock (Permission denied)")
    'java.io.FileNotFoundException: /store/lock (Permission denied)'
    >>> cause_in("    at java.io.RandomAccessFile.open0(Native Method)")
    """
    match = _CAUSE.match(text)
    return None if match is None else match[1][:MOST_CAUSE].rstrip()


def joined(chain: Sequence[Thrown], request: str | None = None) -> Thrown:
    """Return one exception of a chain of causes: the last one, with what the others know too.

    The last cause is nearest to the broker. ``request``: what the stack shows.

    >>> sent = Thrown("MQClientException", topic="t", brokers=("a", "a"), request="send")
    >>> refused = Thrown("MQBrokerException", code=2, remark="[OVERLOAD]", broker_addr="10.1.0.7:10911")
    >>> one = joined([sent, refused])
    >>> one.java_class, one.topic, one.code, one.brokers
    ('MQBrokerException', 't', 2, ('a', 'a'))
    """
    names = ("code", "remark", "broker_addr", "topic", "brokers", "request")
    known = {name: [value for each in chain if (value := getattr(each, name)) not in (None, ())] for name in names}
    values = {name: each[-1] for name, each in known.items() if each}
    if request is None and _WAITED.match(values.get("remark", "")):
        request = SEND_REQUEST
    return chain[-1]._replace(**{"request": request, **values})
