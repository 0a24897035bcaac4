"""Messages of RocketMQ about offsets and members that no rule uses yet: counted by form, never passed over in silence.

Sources: DefaultPullMessageResultHandler, PopMessageProcessor, DefaultMQPushConsumerImpl,
AbstractAllocateMessageQueueStrategy.
"""

from __future__ import annotations

from typing import Final

_FORMS: Final = (
    ("PULL_OFFSET_MOVED:none correction", "pulls outside the range of a queue that a broker did not correct"),
    ("Pop initial offset, because store is no correct", "offsets that POP found outside of their queue and set again"),
    ("[BUG] pull message result maybe data wrong", "answers of pulls that a client found wrong"),
    ("not in cidAll: ", "rebalances of a client that its list of members lacks"),
)


def unread_form(message: str) -> str | None:
    """Return what a message tells that no rule uses; None for any other message.

    >>> unread_form("PULL_OFFSET_MOVED:none correction. topic=t, groupId=g, requestOffset=7, suggestBrokerId=1")
    'pulls outside the range of a queue that a broker did not correct'
    """
    return next((form for start, form in _FORMS if start in message), None)
