"""Retries of failed sends by a producer: which, how often, and on which broker.

A synchronous send tries 1 + retryTimesWhenSendFailed times, each time on another broker than the one just
tried, as long as there is another. Asynchronous sends repeat only what got no answer; one-way sends repeat
nothing. Follows org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl#sendDefaultImpl and
MQClientAPIImpl#onExceptionImpl.

| what a synchronous try ended in | next step |
|---|---|
| SEND_OK | returned |
| stored, but not flushed or copied in time | returned; tried again if retryAnotherBrokerWhenNotStoreOK |
| RemotingException, MQClientException | tried again |
| MQBrokerException 1, 14, 16, 17, 204, 205 | tried again |
| MQBrokerException 2 (busy) | tried again since 5.3.0, thrown before |
| MQBrokerException 1500 (going away) | tried again since 5.3.1, thrown before |
| other MQBrokerException, InterruptedException | thrown |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.select_queue import select_one_message_queue
from mqreplay.core.version import CLIENT_4, at_least

RETRY_TIMES_WHEN_SEND_FAILED = 2
RETRY_TIMES_WHEN_SEND_ASYNC_FAILED = 2
# NettySystemConfig: how many requests of each kind a client has under way at most.
CLIENT_ONEWAY_SEMAPHORE_VALUE = CLIENT_ASYNC_SEMAPHORE_VALUE = 65_535

SYSTEM_ERROR, SYSTEM_BUSY, SERVICE_NOT_AVAILABLE, NO_PERMISSION, TOPIC_NOT_EXIST = 1, 2, 14, 16, 17
NO_BUYER_ID, NOT_IN_CURRENT_UNIT, GO_AWAY = 204, 205, 1500

# Codes of answers that a message is stored, by the SendStatus that they mean.
SEND_STATUS: Mapping[int, str] = {
    0: "SEND_OK",
    10: "FLUSH_DISK_TIMEOUT",
    11: "SLAVE_NOT_AVAILABLE",
    12: "FLUSH_SLAVE_TIMEOUT",
}

_RETRIED = frozenset(
    {TOPIC_NOT_EXIST, SERVICE_NOT_AVAILABLE, SYSTEM_ERROR, NO_PERMISSION, NO_BUYER_ID, NOT_IN_CURRENT_UNIT}
)


class TryKind(Enum):
    """How one try of a send ended: with an answer that it is stored, or with an exception."""

    STORED = "SendResult"
    REMOTING = "RemotingException"
    CLIENT = "MQClientException"
    BROKER = "MQBrokerException"
    INTERRUPTED = "InterruptedException"


class TryOutcome(NamedTuple):
    """One try: ``send_status`` if stored, ``response_code`` of an MQBrokerException, ``cost`` in ms."""

    kind: TryKind
    send_status: str = "SEND_OK"
    response_code: int = 0
    cost: int = 0


class Step(Enum):
    """What follows a try."""

    RETURN = "return"
    RETRY = "retry"
    THROW = "throw"


class SyncSend(NamedTuple):
    """A whole synchronous send.

    ``tried``: the queues, in order. ``send_status`` what was returned, None where it threw; ``thrown`` the
    exception's simple name; ``response_code`` the broker's, where it had the last word.
    ``send_which_queue`` the counter afterwards.
    """

    tried: tuple[MessageQueue, ...]
    send_status: str | None
    thrown: str | None
    response_code: int
    send_which_queue: int


def retry_response_codes(version: str = CLIENT_4) -> frozenset[int]:
    """Return the broker's codes after which a send is retried; users may add more.

    DefaultMQProducer#retryResponseCodes.

    >>> sorted(retry_response_codes()), sorted(retry_response_codes("5.3.3") - retry_response_codes())
    ([1, 14, 16, 17, 204, 205], [2, 1500])
    """
    since = {SYSTEM_BUSY: "5.3.0", GO_AWAY: "5.3.1"}
    return _RETRIED | {code for code, first in since.items() if at_least(version, first)}


def send_status(response_code: int) -> str | None:
    """Return the SendStatus of a broker's answer; None for a code that is an MQBrokerException.

    Follows MQClientAPIImpl#processSendResponse.

    >>> send_status(0), send_status(10), send_status(2)
    ('SEND_OK', 'FLUSH_DISK_TIMEOUT', None)
    """
    return SEND_STATUS.get(response_code)


def times_total(synchronous: bool = True, retry_times_when_send_failed: int = RETRY_TIMES_WHEN_SEND_FAILED) -> int:
    """Return the largest number of tries of sendDefaultImpl; one for asynchronous and one-way sends.

    Follows DefaultMQProducerImpl#sendDefaultImpl.

    >>> times_total(), times_total(synchronous=False)
    (3, 1)
    """
    return 1 + retry_times_when_send_failed if synchronous else 1


def step_after(
    outcome: TryOutcome, retry_another_broker_when_not_store_ok: bool = False, version: str = CLIENT_4
) -> Step:
    """Return the next step of sendDefaultImpl after a synchronous try if tries are left: see the table above.

    Follows DefaultMQProducerImpl#sendDefaultImpl.

    >>> step_after(TryOutcome(TryKind.BROKER, response_code=2)), step_after(TryOutcome(TryKind.REMOTING))
    (<Step.THROW: 'throw'>, <Step.RETRY: 'retry'>)
    """
    match outcome.kind:
        case TryKind.STORED:
            again = outcome.send_status != "SEND_OK" and retry_another_broker_when_not_store_ok
            return Step.RETRY if again else Step.RETURN
        case TryKind.REMOTING | TryKind.CLIENT:
            return Step.RETRY
        case TryKind.BROKER if outcome.response_code in retry_response_codes(version):
            return Step.RETRY
        case _:
            return Step.THROW


def isolates_broker(outcome: TryOutcome, version: str = CLIENT_4) -> bool:
    """Return whether a try counts as very slow for MQFaultStrategy: the ``isolation`` of updateFaultItem.

    An MQClientException (no such broker, say) does before 5.1.4, and no longer since. Follows
    DefaultMQProducerImpl#sendDefaultImpl.

    >>> isolates_broker(TryOutcome(TryKind.CLIENT)), isolates_broker(TryOutcome(TryKind.CLIENT), "5.3.3")
    (True, False)
    """
    if outcome.kind is TryKind.CLIENT:
        return not at_least(version, "5.1.4")
    return outcome.kind in (TryKind.REMOTING, TryKind.BROKER)


def retries_async(
    answered: bool,
    current_times: int,
    timeout_left: int,
    retry_times_when_send_async_failed: int = RETRY_TIMES_WHEN_SEND_ASYNC_FAILED,
    version: str = CLIENT_4,
) -> bool:
    """Return whether an asynchronous send is retried (MQClientAPIImpl#onExceptionImpl).

    Not where the broker ``answered``, whatever its code. ``current_times``: tries that failed, this one
    included. ``timeout_left``: ms of the send's time; 5.3.2 and later give up with none left. The
    retry goes to the next queue in turn on another broker; for a send to a named queue, to the same broker.

    >>> [retries_async(False, failed, 100) for failed in (1, 2, 3)]
    [True, True, False]
    """
    if answered or current_times > retry_times_when_send_async_failed:
        return False
    return timeout_left > 0 or not at_least(version, "5.3.2")


def replay_sync_send(
    message_queue_list: Sequence[MessageQueue],
    send_which_queue: int,
    outcomes: Sequence[TryOutcome],
    retry_times_when_send_failed: int = RETRY_TIMES_WHEN_SEND_FAILED,
    retry_another_broker_when_not_store_ok: bool = False,
    timeout: int = 3_000,
    version: str = CLIENT_4,
) -> SyncSend:
    """Replay a synchronous send whose tries end as in ``outcomes``: return its queues and result.

    Without sendLatencyFaultEnable. ``timeout`` in ms for all tries together: no try begins after it. A
    stored but not safe result of an earlier try is returned rather than a later exception. Tries past the
    end of ``outcomes`` are not made. Follows DefaultMQProducerImpl#sendDefaultImpl.

    >>> queues = [MessageQueue("T", broker, queue_id) for broker in "ab" for queue_id in (0, 1)]
    >>> refused, stored = TryOutcome(TryKind.BROKER, response_code=1), TryOutcome(TryKind.STORED)
    >>> [str(mq.broker_name) for mq in replay_sync_send(queues, 3, [refused, refused, stored]).tried]
    ['a', 'b', 'a']
    """
    tried: list[MessageQueue] = []
    result: str | None = None
    last: TryOutcome | None = None
    spent, too_late = 0, False
    for outcome in outcomes[: times_total(retry_times_when_send_failed=retry_times_when_send_failed)]:
        last_broker_name = tried[-1].broker_name if tried else None
        mq, send_which_queue = select_one_message_queue(message_queue_list, send_which_queue, last_broker_name)
        if timeout < spent:
            too_late = True
            break
        tried.append(mq)
        spent += outcome.cost
        last = outcome
        result = outcome.send_status if outcome.kind is TryKind.STORED else result
        if step_after(outcome, retry_another_broker_when_not_store_ok, version) is not Step.RETRY:
            break
    thrown, response_code = _thrown(result, last, too_late, version)
    return SyncSend(tuple(tried), result if thrown is None else None, thrown, response_code, send_which_queue)


def _thrown(result: str | None, last: TryOutcome | None, too_late: bool, version: str) -> tuple[str | None, int]:
    """The exception sendDefaultImpl ends in, and its response code."""
    if last is not None and last.kind is TryKind.INTERRUPTED:
        return TryKind.INTERRUPTED.value, 0
    if result is not None:
        return None, 0
    if too_late:
        return "RemotingTooMuchRequestException", 0
    code = last.response_code if last is not None and last.kind is TryKind.BROKER else 0
    gave_up = last is not None and step_after(last, version=version) is Step.THROW
    return (TryKind.BROKER.value if gave_up else TryKind.CLIENT.value), code
