"""Messages of rocketmq_client.log as facts."""

from __future__ import annotations

import pytest

from decode.logs.log_messages import CID, CONSUMER, MQ, QUEUE, read_fact
from mqreplay.decode.logs import client_facts
from mqreplay.decode.logs.form import Fact
from mqreplay.words.errors import DecodeError

RESULT = (
    "rebalanced result changed. allocateMessageQueueStrategyName=MACHINE_ROOM_NEARBY-AVG, group=pay-group, "
    f"topic=%RETRY%pay-group, clientId={CID}, mqAllSize=2, cidAllSize=1, rebalanceResultSize=1, "
    f"rebalanceResultSet=[{MQ}]"
)


@pytest.mark.parametrize("start", ["", "client "])
def test_a_rebalanced_result_of_either_version(start: str) -> None:
    assert read_fact(start + RESULT) == client_facts.Rebalanced(
        CID, "pay-group", "%RETRY%pay-group", "MACHINE_ROOM_NEARBY-AVG", 2, 1, [QUEUE]
    )


def test_an_empty_result() -> None:
    fact = read_fact(RESULT.replace("ResultSize=1", "ResultSize=0").replace(f"[{MQ}]", "[]"))
    assert isinstance(fact, client_facts.Rebalanced)
    assert fact.queues == []


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        (f"doRebalance, pay-group, add a new mq, {MQ}", client_facts.QueueAdded("pay-group", QUEUE)),
        (f"doRebalance, pay-group, remove unnecessary mq, {MQ}", client_facts.QueueRemoved("pay-group", QUEUE, False)),
        (
            f"doRebalance, pay-group, truncateMessageQueueNotMyTopic remove unnecessary mq, {MQ}",
            client_facts.QueueRemoved("pay-group", QUEUE, True),
        ),
        (
            f"doRebalance, pay-group, add a new mq failed, {MQ}, because lock failed",
            client_facts.LockFailed("pay-group", QUEUE),
        ),
        ("doRebalance, pay-group pay-topic, get consumer id list failed", None),
        (f"doRebalance, pay-group, add a new pull request PullRequest [messageQueue={MQ}, nextOffset=0]", None),
        (
            f"[persistAll] Group: pay-group ClientId: {CID} updateConsumeOffsetToBroker {MQ} 63",
            client_facts.Committed(CID, "pay-group", QUEUE, 63, True),
        ),
        (
            f"[persist] Group: pay-group ClientId: {CID} updateConsumeOffsetToBroker {MQ} -1",
            client_facts.Committed(CID, "pay-group", QUEUE, -1, False),
        ),
        (
            f"the pull request offset illegal, PullRequest [consumerGroup=g, messageQueue={MQ}, "
            "nextOffset=999999] PullResult "
            "[pullStatus=OFFSET_ILLEGAL, nextBeginOffset=178, minOffset=0, maxOffset=178, msgFoundList=0]",
            client_facts.OffsetIllegal("g", QUEUE, 999999, 178, 0, 178),
        ),
        (
            "the cached message count exceeds the threshold 1000, so do flow control, minOffset=30, maxOffset=1030, "
            f"count=1001, size=3 MiB, pullRequest=PullRequest [consumerGroup=g, messageQueue={MQ}, nextOffset=1031], "
            "flowControlTimes=1",
            client_facts.FlowControlled("g", QUEUE, "count", 1000, 30, 1030, 1001, 3, 1),
        ),
        (
            "the cached message size exceeds the threshold 100 MiB, so do flow control, minOffset=30, maxOffset=60, "
            f"count=31, size=101 MiB, pullRequest=PullRequest [consumerGroup=g, messageQueue={MQ}, nextOffset=61], "
            "flowControlTimes=2001",
            client_facts.FlowControlled("g", QUEUE, "size", 100, 30, 60, 31, 101, 2001),
        ),
        (
            "the queue's messages, span too long, so do flow control, minOffset=30, maxOffset=2031, maxSpan=2001, "
            f"pullRequest=PullRequest [consumerGroup=g, messageQueue={MQ}, nextOffset=2032], flowControlTimes=1",
            client_facts.FlowControlled("g", QUEUE, "span", None, 30, 2031, None, None, 1),
        ),
        (
            "invoke reset offset operation from broker. brokerAddr=127.0.0.1:10911, topic=t, group=g, timestamp=-1",
            client_facts.ResetInvoked("127.0.0.1:10911", "t", "g", -1),
        ),
        ("suspend this consumer, g", client_facts.Suspended("g")),
        ("resume this consumer, g", client_facts.Resumed("g")),
        (
            f"Created a new client Instance, InstanceIndex:0, ClientID:{CID}, "
            f"ClientConfig:ClientConfig{{x}}, ClientVersion:V4_9_7",
            client_facts.ClientCreated(CID, 0),
        ),
        (f"the client factory [{CID}] shutdown OK", client_facts.ClientStopped(CID)),
        (f"the client factory [{CID}] start OK", None),
        ("the consumer [g] shutdown OK", client_facts.ConsumerStopped("g")),
        ("the consumer [g] start OK.", None),
        (
            "unregister client[Producer: null Consumer: g] from broker[broker-b 1 127.0.0.1:10941] success",
            client_facts.Unregistered("g", "broker-b", 1, "127.0.0.1:10941"),
        ),
        ("unregister client[Producer: P Consumer: null] from broker[broker-b 1 127.0.0.1:10941] success", None),
        (
            "send heart beat to broker[broker-a 0 127.0.0.1:10911] success",
            client_facts.HeartbeatSent("broker-a", 0, "127.0.0.1:10911"),
        ),
        (
            "sendHeartbeatToAllBrokerV2 send heart beat to broker[broker-a 0 127.0.0.1:10911] failed",
            client_facts.HeartbeatFailed("broker-a", 0, "127.0.0.1:10911"),
        ),
        (
            f"messageQueueChanged g %RETRY%pay-group [{MQ}] [{MQ}]",
            client_facts.Broadcast("g", "%RETRY%pay-group", [QUEUE]),
        ),
        (
            f"sendKernelImpl exception, resend at once, InvokeID: -7817588880724309586, RT: 2ms, Broker: {MQ}",
            client_facts.SendFailed("-7817588880724309586", 2, QUEUE, False),
        ),
        (
            f"sendKernelImpl exception, throw exception, InvokeID: 6913503303491791042, RT: 1ms, Broker: {MQ}",
            client_facts.SendFailed("6913503303491791042", 1, QUEUE, True),
        ),
        ("RebalanceService service started", None),
    ],
)
def test_client_messages(message: str, fact: Fact | None) -> None:
    assert read_fact(message) == fact


@pytest.mark.parametrize("end", ["", ", enableActingMaster=false"])
def test_a_route_of_either_version(end: str) -> None:
    fact = read_fact(
        "topicRouteTable.put. Topic = t, TopicRouteData[TopicRouteData [orderTopicConf=null, queueDatas=[QueueData "
        "[brokerName=b, readQueueNums=4, writeQueueNums=2, perm=6, topicSysFlag=0]], brokerDatas=[BrokerData "
        f"[brokerName=b, brokerAddrs={{0=h:1, 1=h:2}}{end}]], filterServerTable={{}}]]"
    )
    queues = {"brokerName": "b", "readQueueNums": 4, "writeQueueNums": 2, "perm": 6, "topicSysFlag": 0}
    brokers = {"brokerName": "b", "brokerAddrs": {"0": "h:1", "1": "h:2"}}
    assert fact == client_facts.RouteTaken("t", {"queueDatas": [queues], "brokerDatas": [brokers]})


def test_a_heartbeat_keeps_an_expression_with_commas_and_brackets() -> None:
    fact = read_fact(f"HeartbeatData [clientID={CID}, producerDataSet=[], consumerDataSet=[{CONSUMER}]]")
    assert isinstance(fact, client_facts.HeartbeatContent)
    (consumer,) = fact.consumers
    assert consumer["subscriptionDataSet"] == [
        {
            "topic": "pay-topic",
            "subString": "a between 0 and 3, b in ('x', '[y]')",
            "subVersion": 1795228807062,
            "expressionType": "SQL92",
        }
    ]


@pytest.mark.parametrize(
    "message",
    [
        RESULT[:-1],
        RESULT[:200],
        RESULT.replace("ResultSize=1", "ResultSize=2"),
        RESULT.replace("mqAllSize=2", "mqAllSize=9999999999"),
        f"doRebalance, pay-group, add a new mq, {MQ[:-5]}",
        f"doRebalance, g, add a new mq, {MQ.replace('3', '-3')}",
        f"[persistAll] Group: pay-group ClientId: {CID} updateConsumeOffsetToBroker {MQ} ",
        f"[persistAll] Group: g ClientId: {CID} updateConsumeOffsetToBroker {MQ} 9223372036854775808",
        f"HeartbeatData [clientID={CID}, consumerDataSet=[{CONSUMER[:150]}",
        "messageQueueChanged g t [Messag",
    ],
)
def test_a_client_message_that_was_cut_is_refused(message: str) -> None:
    with pytest.raises(DecodeError):
        read_fact(message)
