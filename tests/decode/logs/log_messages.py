"""Parts of messages in logs, for tests."""

from __future__ import annotations

from mqreplay.decode.logs.form import Fact
from mqreplay.decode.logs.log_line import MESSAGES
from mqreplay.decode.message_queue import MessageQueue

MQ = "MessageQueue [topic=%RETRY%pay-group, brokerName=broker-b, queueId=3]"
QUEUE = MessageQueue("%RETRY%pay-group", "broker-b", 3)
CID = "10.20.15.1@7316#2540823458548"
SUBSCRIPTION = (
    "SubscriptionData [classFilterMode=false, topic=pay-topic, subString=a between 0 and 3, b in ('x', "
    "'[y]'), tagsSet=[], "
    "codeSet=[], subVersion=1795228807062, expressionType=SQL92]"
)


CONSUMER = (
    "ConsumerData [groupName=pay-group, consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
    f"consumeFromWhere=CONSUME_FROM_FIRST_OFFSET, unitMode=false, subscriptionDataSet=[{SUBSCRIPTION}]]"
)


def read_fact(message: str) -> Fact | None:
    """Return the fact of a message of any log."""
    place = MESSAGES.find(message)
    if place is None:
        return None
    start, at = place
    assert at == 0, f"the message begins with {message[:at]!r}"
    return MESSAGES.read(start, message)
