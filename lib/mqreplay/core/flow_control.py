"""Flow control of a push consumer: when it may not pull, because too many messages wait in it.

A client looks at its cache before each pull (DefaultMQPushConsumerImpl#pullMessage, DefaultLitePullConsumerImpl's
PullTaskImpl#run). Above a threshold it looks again after 50 ms, without a pull; lastPullTimestamp advances each time.
"""

from __future__ import annotations

COUNT, SIZE, SPAN = "count", "size", "span"
PULL_THRESHOLD_FOR_QUEUE = 1000  # messages
PULL_THRESHOLD_SIZE_FOR_QUEUE = 100  # MiB
CONSUME_CONCURRENTLY_MAX_SPAN = 2000  # offsets
PULL_BATCH_SIZE = 32  # messages
PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL = 50  # ms


def flow_control(
    cached_count: int,
    cached_size_in_mib: int,
    max_span: int,
    consume_orderly: bool = False,
    pull_threshold_for_queue: int = PULL_THRESHOLD_FOR_QUEUE,
    pull_threshold_size_for_queue: int = PULL_THRESHOLD_SIZE_FOR_QUEUE,
    consume_concurrently_max_span: int = CONSUME_CONCURRENTLY_MAX_SPAN,
) -> str | None:
    """Return why a client does not pull from a queue: count, size or span; None if it pulls.

    DefaultMQPushConsumerImpl#pullMessage. Cached are the messages that the listener has not finished: their number,
    their bodies in whole MiB, and the largest minus the smallest queue offset. An orderly consumer has no limit of the
    span.

    >>> flow_control(1001, 0, 1000), flow_control(1000, 101, 999), flow_control(1, 0, 2001)
    ('count', 'size', 'span')
    >>> flow_control(1000, 100, 2000), flow_control(1, 0, 2001, consume_orderly=True)
    (None, None)
    """
    if cached_count > pull_threshold_for_queue:
        return COUNT
    if cached_size_in_mib > pull_threshold_size_for_queue:
        return SIZE
    if not consume_orderly and max_span > consume_concurrently_max_span:
        return SPAN
    return None


def largest_cached_count(
    pull_threshold_for_queue: int = PULL_THRESHOLD_FOR_QUEUE, pull_batch_size: int = PULL_BATCH_SIZE
) -> int:
    """Return how many messages of a queue a client caches at most (DefaultMQPushConsumerImpl#pullMessage).

    There is one pull at a time, and none above the threshold.

    >>> largest_cached_count()
    1032
    """
    return pull_threshold_for_queue + pull_batch_size
