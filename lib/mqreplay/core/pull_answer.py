"""A broker's answer to a pull, by its store's result: code, suggestion, hold, commit.

The store's status gives the code; the group's configuration gives the broker to ask next. A slave that finds
a consumer out of its range does not correct it, because it may be behind its master: it answers "try again" at
the group's broker. A broker of 5.x keeps a reset until the next pull of the queue, and answers it with the offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mqreplay.core.get_message import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_LOGIC_QUEUE,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_FOUND_NULL,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
    GetMessageResult,
)
from mqreplay.core.pull_check import (
    FLAG_COMMIT_OFFSET,
    FLAG_SUSPEND,
    SYSTEM_ERROR,
    GroupConfig,
    PullBroker,
    PullRequest,
    Refusal,
)
from mqreplay.core.pull_node import MASTER_ID
from mqreplay.core.slave_suggestion import SLAVE
from mqreplay.core.version import BROKER_4, at_least
from mqreplay.words.errors import IllegalArgument

OFFSET_RESET = "OFFSET_RESET"

SUCCESS = 0
PULL_NOT_FOUND = 19
PULL_RETRY_IMMEDIATELY = 20
PULL_OFFSET_MOVED = 21

CODES = {
    FOUND: SUCCESS,
    MESSAGE_WAS_REMOVING: PULL_RETRY_IMMEDIATELY,
    NO_MATCHED_MESSAGE: PULL_RETRY_IMMEDIATELY,
    OFFSET_FOUND_NULL: PULL_NOT_FOUND,
    OFFSET_OVERFLOW_ONE: PULL_NOT_FOUND,
    OFFSET_OVERFLOW_BADLY: PULL_OFFSET_MOVED,
    OFFSET_TOO_SMALL: PULL_OFFSET_MOVED,
    OFFSET_RESET: PULL_OFFSET_MOVED,
}


class PullAnswer(NamedTuple):
    """An answer to a pull; suggestion and offsets of a refusal are None.

    held: nothing is sent until a message arrives or the time is over. committed_offset: None if none is stored.
    """

    code: int
    remark: str
    suggest_which_broker_id: int | None = None
    next_begin_offset: int | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    held: bool = False
    committed_offset: int | None = None


def suggest_which_broker_id(
    suggest_pulling_from_slave: bool,
    slave_read_enable: bool,
    group_broker_id: int = MASTER_ID,
    which_broker_when_consume_slowly: int = 1,
    *,
    broker_id: int = MASTER_ID,
    min_broker_id_in_group: int = MASTER_ID,
    in_broker_container: bool = False,
    version: str = BROKER_4,
) -> int:
    """Return the broker id that an answer suggests for the next pull.

    suggest_pulling_from_slave is the store's result (see slave_suggestion); group_broker_id and
    which_broker_when_consume_slowly are the subscription group's; slave_read_enable the broker's. The rest
    matters since 5.0 only: the broker's own id, the lowest id of its name that lives, and whether it runs in
    a container. Not included: a slave that leaves an offset uncorrected suggests group_broker_id (see
    pull_answer).
    Follows PullMessageProcessor#processRequest (4.x), #composeResponseHeader (5.x).

    >>> suggest_which_broker_id(True, True), suggest_which_broker_id(False, True)
    (1, 0)
    >>> suggest_which_broker_id(False, True, group_broker_id=2, broker_id=1, version="5.3.3")
    0
    """
    is_5 = at_least(version, "5.0.0")
    if is_5 and _redirects_to_master(suggest_pulling_from_slave, broker_id, min_broker_id_in_group):
        return MASTER_ID
    if not slave_read_enable or (is_5 and in_broker_container):
        return MASTER_ID
    return which_broker_when_consume_slowly if suggest_pulling_from_slave else group_broker_id


def _redirects_to_master(suggest_pulling_from_slave: bool, broker_id: int, min_broker_id_in_group: int) -> bool:
    """A 5.x slave sends a consumer that keeps up back to its living master."""
    return broker_id != MASTER_ID and not suggest_pulling_from_slave and min_broker_id_in_group == MASTER_ID


def response_code(status: str, queue_offset: int) -> int:
    """Return the response code of a store's status: 0 found, 19 nothing new, 20 try again, 21 wrong offset.

    queue_offset is the offset asked for, in messages: where a queue has no messages, only 0 is right.
    Raises IllegalArgument for a status RocketMQ does not have.
    Follows PullMessageProcessor#processRequest (4.x), #composeResponseHeader (5.x).

    >>> response_code("FOUND", 5), [response_code("NO_MESSAGE_IN_QUEUE", offset) for offset in (5, 0)]
    (0, [21, 19])
    """
    if status in (NO_MATCHED_LOGIC_QUEUE, NO_MESSAGE_IN_QUEUE):
        return PULL_OFFSET_MOVED if queue_offset != 0 else PULL_NOT_FOUND
    if status not in CODES:
        raise IllegalArgument(f"No enum constant org.apache.rocketmq.store.GetMessageStatus.{status}")
    return CODES[status]


def uses_server_side_reset(version: str, use_server_side_reset_offset: bool | None = None) -> bool:
    """Return whether a broker answers the next pull of a queue with the offset that the queue was reset to.

    use_server_side_reset_offset is the broker's setting; None: as shipped, off in 5.1 and on since 5.2. Without it a
    broker orders the clients to reset. Follows BrokerConfig#isUseServerSideResetOffset,
    PullMessageProcessor#processRequest.

    >>> [uses_server_side_reset(version) for version in ("4.9.7", "5.0.0", "5.1.4", "5.2.0")]
    [False, False, False, True]
    >>> uses_server_side_reset("5.1.0", True), uses_server_side_reset("5.0.0", True)
    (True, False)
    """
    if not at_least(version, "5.1.0"):
        return False
    return at_least(version, "5.2.0") if use_server_side_reset_offset is None else use_server_side_reset_offset


def may_be_reset_answer(code: int, next_begin_offset: int, max_offset: int) -> bool:
    """Return whether an answer can have the status OFFSET_RESET. Offsets are in messages.

    A broker resets a queue at most to the offset after its end. The begin of the queue may have passed the offset
    before the next pull. Follows AdminBrokerProcessor#resetOffsetInner, PullMessageProcessor#processRequest.

    >>> may_be_reset_answer(21, 36, 57), may_be_reset_answer(21, 58, 57), may_be_reset_answer(21, 59, 57)
    (True, True, False)
    >>> may_be_reset_answer(20, 36, 57)
    False
    """
    return code == CODES[OFFSET_RESET] and 0 <= next_begin_offset <= max_offset + 1


def compose_response_header(
    queue_offset: int,
    broker: PullBroker,
    group_config: GroupConfig,
    result: GetMessageResult,
    version: str = BROKER_4,
) -> PullAnswer:
    """Return code, remark and suggestion before the changes by pull_answer.

    queue_offset is the offset asked for, in messages. Follows PullMessageProcessor#composeResponseHeader
    (5.x), and the same lines of #processRequest in 4.x.

    >>> result = GetMessageResult("OFFSET_OVERFLOW_ONE", 5, 0, 5)
    >>> slave = PullBroker("10.0.0.2", "SLAVE", slave_read_enable=True, broker_id=1)
    >>> [compose_response_header(5, slave, GroupConfig(), result, v).code for v in ("4.9.7", "5.3.3")]
    [19, 20]
    """
    suggest = result.suggest_pulling_from_slave
    suggestion = suggest_which_broker_id(
        suggest,
        broker.slave_read_enable,
        group_config.broker_id,
        group_config.which_broker_when_consume_slowly,
        broker_id=broker.broker_id,
        min_broker_id_in_group=broker.min_broker_id_in_group,
        in_broker_container=broker.in_broker_container,
        version=version,
    )
    code = response_code(result.status, queue_offset)
    redirects = _redirects_to_master(suggest, broker.broker_id, broker.min_broker_id_in_group)
    if redirects and code != SUCCESS and at_least(version, "5.0.0"):
        code = PULL_RETRY_IMMEDIATELY
    return PullAnswer(code, result.status, suggestion, result.next_begin_offset, result.min_offset, result.max_offset)


def pull_answer(
    request: PullRequest,
    broker: PullBroker,
    group_config: GroupConfig,
    result: GetMessageResult | Refusal | None,
    broker_allow_suspend: bool = True,
    version: str = BROKER_4,
) -> PullAnswer:
    """Return the broker's answer to a pull, by the store's result or the refusal of check_pull.

    result None: the store is shut or not readable. broker_allow_suspend: False when a held pull is tried
    again. A pull that finds nothing new is held if its flags ask for it; its commit offset is stored at the
    first try, in 4.x not by a slave. Follows PullMessageProcessor#processRequest,
    DefaultPullMessageResultHandler#handle (5.x).

    >>> request = PullRequest("T", "g", 0, 5, FLAG_COMMIT_OFFSET | FLAG_SUSPEND, commit_offset=5)
    >>> result = GetMessageResult("OFFSET_OVERFLOW_ONE", 5, 0, 5)
    >>> answer = pull_answer(request, PullBroker("10.0.0.1"), GroupConfig(), result)
    >>> answer.code, answer.held, answer.committed_offset
    (19, True, 5)
    """
    if isinstance(result, Refusal):
        return PullAnswer(result.code, result.remark)
    is_5 = at_least(version, "5.0.0")
    stores = broker_allow_suspend and bool(request.sys_flag & FLAG_COMMIT_OFFSET)
    stores = stores and (broker.broker_role != SLAVE if not is_5 else result is not None)
    committed = request.commit_offset if stores else None
    if result is None:
        return PullAnswer(SYSTEM_ERROR, "store getMessage return null", committed_offset=committed)
    answer = compose_response_header(request.queue_offset, broker, group_config, result, version)
    held = False
    if answer.code == PULL_NOT_FOUND:
        held = broker_allow_suspend and bool(request.sys_flag & FLAG_SUSPEND)
    elif answer.code == PULL_OFFSET_MOVED and broker.broker_role == SLAVE and not broker.offset_check_in_slave:
        answer = answer._replace(code=PULL_RETRY_IMMEDIATELY, suggest_which_broker_id=group_config.broker_id)
    return answer._replace(held=held, committed_offset=committed)


class HeldReset(NamedTuple):
    """A reset of one queue: its time (epoch ms) and the offset (messages), None if it is not known."""

    ts: int
    offset: int | None


class MovedPull(NamedTuple):
    """A pull of one queue that can be answered by a reset: the time of the answer (epoch ms), and its next offset."""

    ts: int
    next_begin_offset: int


def are_answered_by_resets(
    resets: Iterable[HeldReset], pulls: Sequence[MovedPull], clock_skew_time: int = 0
) -> list[bool]:
    """Return for each pull of a queue whether one of the resets gave its answer.

    pulls are in order of time; clock_skew_time is the largest difference between the clocks of the resets and of the
    pulls, in ms. A reset replaces one that waits, and the next pull takes it.
    Follows ConsumerOffsetManager#assignResetOffset, #queryThenEraseResetOffset.

    >>> resets = [HeldReset(100, 7), HeldReset(200, 3)]
    >>> are_answered_by_resets(resets, [MovedPull(150, 7), MovedPull(250, 3), MovedPull(350, 3)])
    [True, True, False]
    >>> are_answered_by_resets(resets, [MovedPull(250, 7)])
    [False]
    """
    waiting = sorted(resets, key=lambda reset: reset.ts)
    answered = []
    for pull in pulls:
        surely, perhaps = pull.ts - clock_skew_time, pull.ts + clock_skew_time
        place = _taken(waiting, pull.next_begin_offset, surely, perhaps)
        answered.append(place is not None)
        waiting = [reset for reset in waiting[0 if place is None else place + 1 :] if reset.ts > surely]
    return answered


def _taken(waiting: Sequence[HeldReset], offset: int, surely: int, perhaps: int) -> int | None:
    """Return the place of the first reset that the pull can have taken: it fits, and no later one replaced it."""
    replaced = -1
    for place, reset in enumerate(waiting):
        if reset.ts <= surely and reset.offset not in (None, offset):
            replaced = place
    fits = (
        place
        for place, reset in enumerate(waiting)
        if place > replaced and reset.ts <= perhaps and reset.offset in (None, offset)
    )
    return next(fits, None)
