"""rocketmq_client.log: rebalances, queues, commits, received requests and failed sends of clients."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.client_errors import PULL_REQUEST, SEND_BACK_REQUEST, SEND_REQUEST
from mqreplay.decode.logs.client_facts import (
    Broadcast,
    ClientCreated,
    ClientStopped,
    ClientThrew,
    Committed,
    ConsumerStopped,
    FlowControlled,
    HeartbeatContent,
    HeartbeatFailed,
    HeartbeatSent,
    ListenerFailed,
    ListenerThrew,
    LockFailed,
    OffsetIllegal,
    QueueAdded,
    QueueRemoved,
    Rebalanced,
    ResetInvoked,
    Resumed,
    RouteTaken,
    SendFailed,
    Suspended,
    Unregistered,
)
from mqreplay.decode.logs.exceptions import Thrown
from mqreplay.decode.logs.form import Form
from mqreplay.decode.logs.java_text import between, consumers_of, messages_of
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.words.errors import DecodeError

_REBALANCED: Final = (
    "rebalanced result changed. allocateMessageQueueStrategyName={strategy}, group={group}, topic={topic}, "
    "clientId={client_id}, mqAllSize={mq_all_size:int}, cidAllSize={cid_all_size:int}, "
    "rebalanceResultSize={size:int}, rebalanceResultSet={queues}"
)
_COMMITTED: Final = "Group: {group} ClientId: {client_id} updateConsumeOffsetToBroker {queue} {offset:long}"
_ILLEGAL: Final = (
    "the pull request offset illegal, PullRequest [consumerGroup={group}, messageQueue={queue}, "
    "nextOffset={queue_offset:long}] PullResult [pullStatus=OFFSET_ILLEGAL, nextBeginOffset={next_begin_offset:long}, "
    "minOffset={min_offset:long}, maxOffset={max_offset:long}, {:text}"
)
_RANGE: Final = "minOffset={min_offset:positive}, maxOffset={max_offset:positive}"
_PULL_REQUEST: Final = (
    "pullRequest=PullRequest [consumerGroup={group}, messageQueue={queue}, nextOffset={:long}], "
    "flowControlTimes={times:long}"
)
_CACHE_FULL: Final = (
    "exceeds the threshold {threshold:int}{? MiB}, so do flow control, "
    f"{_RANGE}, count={{cached_msgs:positive}}, size={{cached_mib:long}} MiB, {_PULL_REQUEST}"
)
_SPAN_WIDE: Final = (
    f"the queue's messages, span too long, so do flow control, {_RANGE}, maxSpan={{:positive}}, {_PULL_REQUEST}"
)
_HEARTBEAT: Final = "send heart beat to broker[{broker_name} {broker_id:int} {broker_addr}]"
_LISTENER: Final = "Group: {group} Msgs: {messages} MQ: {queue}"
_NOT_LATEST: Final = Thrown(
    "MQBrokerException", code=25, remark="the consumer's subscription not latest", request=PULL_REQUEST
)
_SPRING: Final = ("syncSend", "syncSendOrderly", "asyncSend", "asyncSendOrderly", "sendOneWay", "sendOneWayOrderly")
_SEND_FAILED: Final = "InvokeID: {invoke_id:digits}, RT: {cost_ms:long}ms, Broker: {queue}"


def _rebalanced(size: int, queues: list[MessageQueue], **values: object) -> Rebalanced:
    if len(queues) != size:
        raise DecodeError("bad_message", f"it lists {len(queues)} queues but counts {size}: the line is damaged")
    return Rebalanced(queues=queues, **values)  # type: ignore[arg-type]


def _heartbeat_content(text: str) -> HeartbeatContent:
    return HeartbeatContent(between(text, "clientID=", ", "), consumers_of(text))


def _listener_threw(message: str, cause: str | None = None) -> ListenerThrew:
    first = messages_of(message)[0]
    return ListenerThrew(between(message, "topic='", "'"), first.msg_id, first.reconsume_times, cause)


_LISTENER_THREW: Final = "consume message failed. message"
FORMS: Final = (
    Form(
        f"[persistAll] {_COMMITTED}",
        Committed,
        "RemoteBrokerOffsetStore#persistAll",
        constants={"all_queues": True},
        start="[persist",
    ),
    Form(
        f"[persist] {_COMMITTED}",
        Committed,
        "RemoteBrokerOffsetStore#persist",
        constants={"all_queues": False},
        start="[persist",
    ),
    Form(  # each twelfth round
        _COMMITTED,
        Committed,
        "RemoteBrokerOffsetStore#persistAll",
        versions="3",
        constants={"all_queues": True},
        signs=(" updateConsumeOffsetToBroker ",),
    ),
    Form(
        "doRebalance, {group}, add a new mq, {queue}",
        QueueAdded,
        "RebalanceImpl#updateProcessQueueTableInRebalance",
        signs=(", add a new mq, ",),
    ),
    Form(
        "doRebalance, {group}, remove unnecessary mq, {queue}",
        QueueRemoved,
        "RebalanceImpl#updateProcessQueueTableInRebalance",
        constants={"alone": False},
        signs=(" remove unnecessary mq, ",),
    ),
    Form(
        "doRebalance, {group}, truncateMessageQueueNotMyTopic remove unnecessary mq, {queue}",
        QueueRemoved,
        "RebalanceImpl#truncateMessageQueueNotMyTopic",
        constants={"alone": True},
        signs=(" remove unnecessary mq, ",),
    ),
    Form(  # its pull expired: the next rebalance takes it again
        "doRebalance, {group}, remove unnecessary mq, {queue}, because pull is pause, so try to fixed it",
        QueueRemoved,
        "RebalanceImpl#updateProcessQueueTableInRebalance",
        versions="4",
        constants={"alone": False},
        signs=None,
    ),
    *(
        Form(
            f"doRebalance, {{group}}, try remove unnecessary {{?pop }}mq, {{queue}}, because {action} is pause, so try "
            "to fixed it",
            None,  # the line without "try" follows if it is removed
            "RebalanceImpl",
            versions="5",
            signs=None,
        )
        for action in ("pull", "pop")
    ),
    Form(
        "doRebalance, {group}, add a new mq failed, {queue}, because lock failed",
        LockFailed,
        "RebalanceImpl#updateProcessQueueTableInRebalance",
        signs=None,
    ),
    Form(
        _REBALANCED,
        _rebalanced,
        "RebalanceImpl#rebalanceByTopic",
        prefixes=("", "client "),
        start="rebalanced result changed",
    ),
    Form(
        "broker rebalanced result changed. allocateMessageQueueStrategyName={:text}",
        None,
        "RebalanceImpl#getRebalanceResultFromBroker",
        versions="5",
    ),
    Form("messageQueueChanged exception{:text}", None, "RebalancePullImpl, RebalanceLitePullImpl"),
    Form("messageQueueChanged {group} {topic} {queues} [{:text}", Broadcast, "RebalanceImpl#rebalanceByTopic"),
    Form(_ILLEGAL, OffsetIllegal, "DefaultMQPushConsumerImpl#pullMessage", start="the pull request offset illegal, "),
    *(
        Form(
            f"the cached message {measure} {_CACHE_FULL}",
            FlowControlled,
            "DefaultMQPushConsumerImpl#pullMessage",
            constants={"flow_control": measure},
            start=f"the cached message {measure} exceeds ",
        )
        for measure in ("count", "size")
    ),
    Form(
        f"the consumer message buffer is full, so do flow control, {_RANGE}, size={{cached_msgs:positive}}, "
        f"{_PULL_REQUEST}",
        FlowControlled,
        "DefaultMQPushConsumerImpl#pullMessage",
        versions="3, 4",
        constants={"flow_control": "count", "threshold": None, "cached_mib": None},
        start="the consumer message buffer is full, ",
    ),
    Form(
        _SPAN_WIDE,
        FlowControlled,
        "DefaultMQPushConsumerImpl#pullMessage",
        constants={"flow_control": "span", "threshold": None, "cached_msgs": None, "cached_mib": None},
        start="the queue's messages, span too long, ",
    ),
    Form(
        "invoke reset offset operation from broker. brokerAddr={broker_addr}, topic={topic}, group={group}, "
        "timestamp={timestamp:long}",
        ResetInvoked,
        "ClientRemotingProcessor#resetOffset",
        start="invoke reset offset operation",
    ),
    Form("suspend this consumer, {group}", Suspended, "DefaultMQPushConsumerImpl#suspend"),
    Form("resume this consumer, {group}", Resumed, "DefaultMQPushConsumerImpl#resume"),
    Form(
        "Created a new client Instance, InstanceIndex:{number:int}, ClientID:{client_id}, ClientConfig:{:text}",
        ClientCreated,
        "MQClientInstance",
        start="Created a new client Instance, ",
    ),
    Form("the client factory [{client_id}] shutdown OK", ClientStopped, "MQClientInstance#shutdown", signs=None),
    Form("the consumer [{group}] shutdown OK", ConsumerStopped, "DefaultMQPushConsumerImpl#shutdown", signs=None),
    Form(
        "unregister client[Producer: null Consumer: {group}] from broker[{broker_name} {broker_id:int} {broker_addr}] "
        "success",
        Unregistered,
        "MQClientInstance#unregisterClient",
        start="unregister client[",
        signs=("[Producer: null ",),
        end="success",
    ),
    *(
        Form(
            f"{_HEARTBEAT} {end}",
            fact,
            "MQClientInstance#sendHeartbeatToBroker",
            prefixes=("", "sendHeartbeatToAllBrokerV2 "),
            end=end,
        )
        for end, fact in (("success", HeartbeatSent), ("failed", HeartbeatFailed))
    ),
    Form("HeartbeatData [{text}", _heartbeat_content, "HeartbeatData#toString"),
    Form(
        "topicRouteTable.put. Topic = {topic}, TopicRouteData[{body:route}]",
        RouteTaken,
        "MQClientInstance#updateTopicRouteInfoFromNameServer",
        start="topicRouteTable.put. ",
    ),
    *(
        Form(
            f"sendKernelImpl exception, {action}, {_SEND_FAILED}",
            SendFailed,
            "DefaultMQProducerImpl#sendDefaultImpl",
            constants={"interrupted": interrupted},
            start="sendKernelImpl exception, ",
        )
        for action, interrupted in (("resend at once", False), ("throw exception", True))
    ),
    *(
        Form(
            f"sendKernelImpl exception, {action}, InvokeID: %s, RT: %sms, Broker: %s",
            ClientThrew,
            "DefaultMQProducerImpl#sendDefaultImpl",
            versions="5",
            constants={"request": SEND_REQUEST},
            start="sendKernelImpl exception, ",
            signs=None,
        )
        for action in ("resend at once", "throw exception")
    ),
    Form(
        "execute the pull request exception, group={group}, messageQueue={queue}",
        ClientThrew,
        "DefaultMQPushConsumerImpl#pullMessage",
        versions="5",
        constants={"request": PULL_REQUEST},
        start="execute the pull request exception",
        signs=None,
    ),
    Form(
        "execute the pull request exception{:text}",
        ClientThrew,
        "DefaultMQPushConsumerImpl#pullMessage",
        constants={"request": PULL_REQUEST},
        start="execute the pull request exception",
        signs=None,
    ),
    Form(
        "the subscription is not latest, group={group}, messageQueue={queue}",
        ClientThrew,
        "DefaultMQPushConsumerImpl#pullMessage",
        versions="5",
        constants={"request": PULL_REQUEST, "thrown": _NOT_LATEST},
    ),
    Form(
        "sendMessageBack Exception, {group}",
        ClientThrew,
        "DefaultMQPushConsumerImpl#sendMessageBack",
        constants={"request": SEND_BACK_REQUEST},
    ),
    Form(
        "sendMessageBack exception, group: {group} msg: {:text}",
        ClientThrew,
        "ConsumeMessageConcurrentlyService#sendMessageBack",
        constants={"request": SEND_BACK_REQUEST},
        signs=None,
    ),
    *(
        Form(
            f"{method} failed. destination:{{topic:destination}}, {{:text}}",
            ClientThrew,
            "RocketMQTemplate of rocketmq-spring",
            constants={"request": SEND_REQUEST},
            signs=None,
        )
        for method in _SPRING
    ),
    Form(
        f"consumeMessage exception: {{error:text}} {_LISTENER}",
        ListenerFailed,
        "ConsumeMessageConcurrentlyService, ConsumeMessageOrderlyService",
        signs=(" Group: ", " MQ: "),
    ),
    Form(f"consumeMessage return null, {_LISTENER}", ListenerFailed, "ConsumeMessageConcurrentlyService"),
    Form(
        f"consumeMessage Orderly return not OK, {_LISTENER}",
        ListenerFailed,
        "ConsumeMessageOrderlyService",
        constants={"orderly": True},
    ),
    *(
        Form(
            f"{_LISTENER_THREW}{text}",
            fact,
            "DefaultRocketMQListenerContainer of rocketmq-spring",
            start=_LISTENER_THREW,
            signs=None,
        )
        for text, fact in (
            ("Id:{msg_id:key}, topic:{topic:key}, reconsumeTimes:{reconsume_times:int}", ListenerThrew),
            ("Ext:{message:text}, error:{cause:text}", _listener_threw),
            ("Ext:{message:text}", _listener_threw),
        )
    ),
)
