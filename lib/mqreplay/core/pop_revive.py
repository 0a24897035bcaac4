"""Revival: when a message handed out by POP and never acknowledged is stored again, in the retry topic of its group.

Each answer of POP makes a checkpoint. A broker with revive topics (the default) has a timer deliver checkpoints and
acknowledgements into them, reads both and revives what is not acknowledged (PopReviveService). A broker with
popConsumerKVServiceEnable scans its records by time (PopConsumerService). Times epoch ms, offsets in messages.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mqreplay.core.java import to_int, to_long
from mqreplay.core.java_numbers import parse_int
from mqreplay.core.retry_topic import build_pop_retry_topic, is_retry_topic
from mqreplay.core.version import at_least
from mqreplay.words.errors import NumberFormat

REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"  # PopAckConstants.REVIVE_GROUP
REVIVE_TOPIC_PREFIX = "rmq_sys_REVIVE_LOG_"  # PopAckConstants.REVIVE_TOPIC
ACK_TIME_INTERVAL_MS = 1000  # PopAckConstants.ackTimeInterval
SECOND_MS = 1000
CK_REWRITE_INTERVALS_S = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
KV_REWRITE_INTERVALS_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
KV_SCAN_DELAY_MS = 50
KV_IDLE_WAIT_MS = 500
TIMER_PRECISION_MS = 1000  # MessageStoreConfig.timerPrecisionMs
BYTE_MAX = 127


class CheckPoint(NamedTuple):
    """The messages of one queue in one answer of POP (PopCheckPoint): ``num`` of them from ``start_offset``.

    ``queue_offset_diff``: the distance of each message from the start; empty in records of old brokers, where they
    follow each other. ``re_put_times``: how often it was stored again because its messages could not be revived.
    """

    start_offset: int
    pop_time: int
    invisible_time: int
    num: int
    queue_offset_diff: tuple[int, ...] = ()
    re_put_times: str | None = None

    @property
    def revive_time(self) -> int:
        """The instant at which its messages are due, epoch ms (PopCheckPoint#getReviveTime).

        >>> CheckPoint(5, 1000, 300, 2).revive_time
        1300
        """
        return to_long(self.pop_time + self.invisible_time)

    @property
    def deliver_time(self) -> int:
        """When the timer puts it into the revive topic, epoch ms: 1 s early (PopMessageProcessor#buildCkMsg).

        >>> CheckPoint(5, 1000, 30_000, 2).deliver_time
        30000
        """
        return to_long(self.revive_time - ACK_TIME_INTERVAL_MS)

    def index_of_ack(self, ack_offset: int) -> int:
        """Return the index of the message at ``ack_offset`` (messages), -1 for none (PopCheckPoint#indexOfAck).

        >>> CheckPoint(5, 0, 0, 2, (0, 3)).index_of_ack(8), CheckPoint(5, 0, 0, 2).index_of_ack(8)
        (1, -1)
        """
        if ack_offset < self.start_offset:
            return -1
        distance = to_long(ack_offset - self.start_offset)
        if not self.queue_offset_diff:
            return to_int(distance) if distance < self.num else -1
        diff = to_int(distance)
        return self.queue_offset_diff.index(diff) if diff in self.queue_offset_diff else -1


def unacknowledged_offsets(check_point: CheckPoint, ack_offsets: Collection[int]) -> list[int]:
    """Return the offsets of a checkpoint (messages) that are revived, by all its acknowledgements.

    Follows PopReviveService#consumeReviveMessage, #reviveMsgFromCk and PopCheckPoint#ackOffsetByIndex. The bit map has
    32 bits: of a larger checkpoint, an acknowledgement beyond them is lost.

    >>> unacknowledged_offsets(CheckPoint(5, 0, 0, 3, (0, 1, 4)), [6, 7])
    [5, 9]
    """
    bits = 0
    for ack_offset in ack_offsets:
        index = check_point.index_of_ack(ack_offset)
        if index >= 0:
            bits = to_int(bits | 1 << index % 64)
    diffs = check_point.queue_offset_diff or range(check_point.num)
    # Java widens the int to a long, with its sign.
    return [to_long(check_point.start_offset + diffs[i]) for i in range(check_point.num) if not bits >> i % 64 & 1]


def is_revive_due(revive_time: int, end_time: int) -> bool:
    """Return whether a pass of the revive service takes a checkpoint; both epoch ms.

    ``end_time``: the greatest deliver time that the pass has read; the present if the revive queue is read to its end
    and its last message was due more than 3 s ago. So a message is revived more than 2 s after its time.
    Follows PopReviveService#mergeAndRevive.

    >>> is_revive_due(1000, 3000), is_revive_due(1000, 3001)
    (False, True)
    """
    return to_long(end_time - revive_time) > ACK_TIME_INTERVAL_MS + SECOND_MS


def revive_deadline(
    revive_time: int,
    revive_interval: int = 1000,
    revive_max_slow: int = 3,
    revive_scan_time: int = 10_000,
    timer_precision_ms: int = TIMER_PRECISION_MS,
) -> int:
    """Return the instant (epoch ms) after which a revival by a revive topic is late.

    The settings are in ms, revive_max_slow is a factor. The bound is the sum of what a healthy broker waits: 2 s after
    ``revive_time``, the precision of the timer, a pass that has just begun (reviveScanTime), and the rest of an idle
    revive queue (reviveInterval * reviveMaxSlow, and reviveInterval once more before the pass).
    No method of RocketMQ: mqreplay's own bound, from PopReviveService#run and #consumeReviveMessage.

    >>> revive_deadline(0)
    17000
    """
    waits = revive_interval * (1 + revive_max_slow) + revive_scan_time
    return revive_time + ACK_TIME_INTERVAL_MS + SECOND_MS + timer_precision_ms + waits


def re_put_check_point(
    check_point: CheckPoint,
    offset: int,
    now: int,
    skip_when_ck_re_put_reach_max_times: bool = False,
) -> CheckPoint | None:
    """Return the checkpoint that is stored for one message that could not be revived, None if the broker drops it.

    ``offset`` (messages) is the message's, ``now`` epoch ms. Once due, its invisible time grows by 10 s, 20 s, 30 s
    and so on up to 2 hours; by default it is never dropped. Since 5.3.1. Follows PopReviveService#rePutCK.

    >>> again = re_put_check_point(CheckPoint(5, 1000, 300, 2, (0, 1)), 6, 5000)
    >>> again.start_offset, again.num, again.invisible_time, again.re_put_times
    (6, 1, 10300, '1')
    """
    times = parse_re_put_times(check_point.re_put_times)
    if times >= len(CK_REWRITE_INTERVALS_S) and skip_when_ck_re_put_reach_max_times:
        return None
    invisible_time = check_point.invisible_time
    if check_point.revive_time <= now:
        interval = CK_REWRITE_INTERVALS_S[min(times, len(CK_REWRITE_INTERVALS_S) - 1)]
        invisible_time = to_long(invisible_time + interval * 1000)
    return CheckPoint(offset, check_point.pop_time, invisible_time, 1, (0,), str(to_int(times + 1)))


def parse_re_put_times(re_put_times: str | None) -> int:
    """Return how often a checkpoint was stored again (PopCheckPoint#parseRePutTimes); 127 if the text is no number.

    >>> parse_re_put_times(None), parse_re_put_times("3"), parse_re_put_times("x")
    (0, 3, 127)
    """
    if re_put_times is None:
        return 0
    try:
        return parse_int(re_put_times)
    except NumberFormat:
        return BYTE_MAX


def is_revive_topic(topic: str) -> bool:
    """Return whether brokers keep checkpoints in the topic (PopAckConstants#isStartWithRevivePrefix).

    >>> is_revive_topic("rmq_sys_REVIVE_LOG_c"), is_revive_topic("%RETRY%g_T")
    (True, False)
    """
    return topic.startswith(REVIVE_TOPIC_PREFIX)


def revive_topic(topic: str, cid: str, enable_retry_v2: bool = False) -> str:
    """Return the topic into which a message of ``topic`` is revived for group ``cid`` (PopReviveService#reviveRetry).

    A message of a retry topic goes back into it.

    >>> revive_topic("T", "g"), revive_topic("%RETRY%g_T", "g", True)
    ('%RETRY%g_T', '%RETRY%g_T')
    """
    return topic if is_retry_topic(topic) else build_pop_retry_topic(topic, cid, enable_retry_v2)


def retry_queue_id(queue_id: int, retry_write_queue_nums: int, use_separate_retry_queue: bool = False) -> int:
    """Return the queue of the retry topic for a message of ``queue_id`` (PopReviveService#getRetryQueueId).

    It is 0, unless a broker since 5.4.0 has useSeparateRetryQueue and the retry topic has that queue.

    >>> retry_queue_id(3, 8), retry_queue_id(3, 8, True), retry_queue_id(3, 2, True)
    (0, 3, 0)
    """
    return queue_id if use_separate_retry_queue and queue_id <= retry_write_queue_nums - 1 else 0


def revive_behind_messages(
    max_offset_in_queue: int, revive_offset: int, has_revived: bool = True, version: str = "5.3.3"
) -> int:
    """Return how many messages of a revive queue are not processed yet.

    Follows PopReviveService#getReviveBehindMessages.
    ``revive_offset`` is the last one processed; before 5.3.4 it counts itself. 0 if the service has not run yet.

    >>> revive_behind_messages(10, 7), revive_behind_messages(10, 7, version="5.5.0")
    (3, 2)
    """
    if not has_revived:
        return 0
    behind = max_offset_in_queue - revive_offset - (1 if at_least(version, "5.3.4") else 0)
    return max(0, to_long(behind))


def is_kv_revive_due(revive_time: int, now: int) -> bool:
    """Return whether a scan at ``now`` takes a record of the key-value store; both epoch ms.

    Follows PopConsumerService#revive.

    >>> is_kv_revive_due(1000, 1049), is_kv_revive_due(1000, 1050)
    (False, True)
    """
    return revive_time <= to_long(now - KV_SCAN_DELAY_MS)


def kv_next_invisible_time(
    invisible_time: int, attempt_times: int, pop_revive_max_attempt_times: int = 16
) -> int | None:
    """Return the invisible time (ms, from now) after a failed revival from the key-value store, None if it is dropped.

    Follows PopConsumerService#revive.

    >>> kv_next_invisible_time(300, 0), kv_next_invisible_time(300, 15), kv_next_invisible_time(300, 16)
    (10300, 7200300, None)
    """
    if attempt_times >= pop_revive_max_attempt_times:
        return None
    return to_long(invisible_time + 1000 * KV_REWRITE_INTERVALS_S[attempt_times])
