"""Messages of RocketMQ's logs as facts: of both versions, from real lines, and damaged ones."""

from __future__ import annotations

import pytest

from mqreplay.decode.logs import broker_facts, client_facts
from mqreplay.decode.logs.broker_log import read_broker_fact
from mqreplay.decode.logs.client_log import read_client_fact
from mqreplay.decode.logs.lock_log import read_lock_line
from mqreplay.decode.logs.namesrv_log import BrokerSeen, MasterNamed, read_namesrv_fact
from mqreplay.decode.logs.stats_log import read_fall_behind
from mqreplay.decode.message_queue import MessageQueue
from mqreplay.errors import DecodeError

MQ = "MessageQueue [topic=%RETRY%pay-group, brokerName=broker-b, queueId=3]"
QUEUE = MessageQueue("%RETRY%pay-group", "broker-b", 3)
CID = "10.20.15.1@7316#2540823458548"
RESULT = (
    "rebalanced result changed. allocateMessageQueueStrategyName=MACHINE_ROOM_NEARBY-AVG, group=pay-group, "
    f"topic=%RETRY%pay-group, clientId={CID}, mqAllSize=2, cidAllSize=1, rebalanceResultSize=1, "
    f"rebalanceResultSet=[{MQ}]"
)
SUBSCRIPTION = (
    "SubscriptionData [classFilterMode=false, topic=pay-topic, subString=a between 0 and 3, b in ('x', "
    "'[y]'), tagsSet=[], "
    "codeSet=[], subVersion=1795228807062, expressionType=SQL92]"
)
CONSUMER = (
    "ConsumerData [groupName=pay-group, consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
    f"consumeFromWhere=CONSUME_FROM_FIRST_OFFSET, unitMode=false, subscriptionDataSet=[{SUBSCRIPTION}]]"
)
CHANNEL = (
    "ClientChannelInfo [channel=[id: 0x37ae6a07, L:/127.0.0.1:10911 - R:/127.0.0.1:41538], "
    f"clientId={CID}, language=JAVA, version=407, lastUpdateTimestamp=1795228808369]"
)


QUEUES_SET = '{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:120}}'


@pytest.mark.parametrize("start", ["", "client "])
def test_a_rebalanced_result_of_either_version(start: str) -> None:
    assert read_client_fact(start + RESULT) == client_facts.Rebalanced(
        CID, "pay-group", "%RETRY%pay-group", "MACHINE_ROOM_NEARBY-AVG", 2, 1, [QUEUE]
    )


def test_an_empty_result() -> None:
    fact = read_client_fact(RESULT.replace("ResultSize=1", "ResultSize=0").replace(f"[{MQ}]", "[]"))
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
        ("RebalanceService service started", None),
    ],
)
def test_client_messages(message: str, fact: client_facts.Fact | None) -> None:
    assert read_client_fact(message) == fact


@pytest.mark.parametrize("end", ["", ", enableActingMaster=false"])
def test_a_route_of_either_version(end: str) -> None:
    fact = read_client_fact(
        "topicRouteTable.put. Topic = t, TopicRouteData[TopicRouteData [orderTopicConf=null, queueDatas=[QueueData "
        "[brokerName=b, readQueueNums=4, writeQueueNums=2, perm=6, topicSysFlag=0]], brokerDatas=[BrokerData "
        f"[brokerName=b, brokerAddrs={{0=h:1, 1=h:2}}{end}]], filterServerTable={{}}]]"
    )
    queues = {"brokerName": "b", "readQueueNums": 4, "writeQueueNums": 2, "perm": 6, "topicSysFlag": 0}
    brokers = {"brokerName": "b", "brokerAddrs": {"0": "h:1", "1": "h:2"}}
    assert fact == client_facts.RouteTaken("t", {"queueDatas": [queues], "brokerDatas": [brokers]})


def test_a_heartbeat_keeps_an_expression_with_commas_and_brackets() -> None:
    fact = read_client_fact(f"HeartbeatData [clientID={CID}, producerDataSet=[], consumerDataSet=[{CONSUMER}]]")
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
        read_client_fact(message)


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        (
            f"new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: {CHANNEL}",
            broker_facts.Joined(
                "g", broker_facts.Channel(CID, "127.0.0.1:41538", 1795228808369), "CONSUME_PASSIVELY", "CLUSTERING"
            ),
        ),
        (
            "new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: "
            + CHANNEL.replace(CID, "${clientIP}@26917#5261547777682927"),
            broker_facts.Joined(
                "g",
                broker_facts.Channel("${clientIP}@26917#5261547777682927", "127.0.0.1:41538", 1795228808369),
                "CONSUME_PASSIVELY",
                "CLUSTERING",
            ),
        ),
        (
            f"unregister a consumer[g] from consumerGroupInfo {CHANNEL}",
            broker_facts.Left("g", broker_facts.Channel(CID, "127.0.0.1:41538", 1795228808369)),
        ),
        (
            f"NETTY EVENT: remove not active channel[{CHANNEL.replace(' - R', ' ! R')}] from "
            "ConsumerGroupInfo groupChannelTable, "
            "consumer group: g",
            broker_facts.Vanished("g", "127.0.0.1:41538", broker_facts.Channel(CID, "127.0.0.1:41538", 1795228808369)),
        ),
        (
            "SCAN: remove expired channel from ConsumerManager consumerTable. channel=127.0.0.1:4, consumerGroup=g",
            broker_facts.Vanished("g", "127.0.0.1:4", None),
        ),
        (
            "SCAN: remove expired channel from ConsumerManager consumerTable. channel=, consumerGroup=g",
            broker_facts.Vanished("g", "", None),
        ),
        ("SCAN: remove expired channel from ConsumerManager consumerTable, all clear, consumerGroup=g", None),
        (
            "SCAN: remove expired channel[127.0.0.1:1] from ProducerManager groupChannelTable, producer group name: p",
            None,
        ),
        (
            "[NOTIFYME]update consumer offset less than store. clientHost=/127.0.0.1:4, key=pay-topic@g, queueId=3, "
            "requestOffset=28, storeOffset=63",
            broker_facts.CommittedLess("127.0.0.1:4", "pay-topic", "g", 3, 28, 63),
        ),
        (
            "[reset-offset] reset offset started by 127.0.0.1:46688. topic=t, group=g, "
            "timestamp=1795228959262, isForce=true",
            broker_facts.ResetStarted("127.0.0.1:46688", "t", "g", 1795228959262, "true"),
        ),
        (
            "[reset-offset] reset offset started by 127.0.0.1:46688. topic=t, group=g, timestamp=-1, isForce=false",
            broker_facts.ResetStarted("127.0.0.1:46688", "t", "g", -1, "false"),
        ),
        (
            f"Reset offset, topic=t, group=g, queues={QUEUES_SET}",
            broker_facts.ResetDone("t", "g", QUEUES_SET),
        ),
        (
            "[reset-offset] reset offset failed, no topic in this broker. topic=t",
            broker_facts.ResetRefused("t", None, "the broker does not have the topic"),
        ),
        (
            "Consumer not online, so can not reset offset, Group: g Topic: t Timestamp: -1",
            broker_facts.ResetRefused("t", "g", "no member of the group was online"),
        ),
        (
            "[reset-offset] reset offset exception. topic=t, group=g ,error=org.apache.rocketmq.RemotingException: x",
            broker_facts.ResetRefused("t", "g", "the broker could not send it to a member of the group"),
        ),
        (
            "[reset-offset] reset offset exception. topic=t, group=g",
            broker_facts.ResetRefused("t", "g", "the broker could not send it to a member of the group"),
        ),
        (
            "[reset-offset] the client does not support this feature. version=10.0.0.3:4",
            broker_facts.ResetRefused(None, None, "a member of the group is too old for resets"),
        ),
        (
            "Reset offset failed, group does not exist. topic=t, group=g",
            broker_facts.ResetRefused("t", "g", "the broker does not have the group"),
        ),
        (
            "Reset offset aborted: no queues to reset",
            broker_facts.ResetRefused(None, None, "the topic has no queue"),
        ),
        (
            f"[reset-offset] reset offset success. topic=t, group=g, clientId={CID}",
            broker_facts.ResetSent("t", "g", CID),
        ),
        (
            "PULL_OFFSET_MOVED:correction offset. topic=t, groupId=g, requestOffset=999999, newOffset=178, "
            "suggestBrokerId=0",
            broker_facts.OffsetCorrected("t", "g", 999999, 178),
        ),
        ("register broker[0]to name server 127.0.0.1:9877 OK", broker_facts.Registered(0)),
        ("unregisterBroker OK, NamesrvAddr: 127.0.0.1:9877", broker_facts.Stopped()),
        ("brokerName=broker-a", broker_facts.Setting("brokerName", "broker-a")),
        ("brokerPermission=6", None),
    ],
)
def test_broker_messages(message: str, fact: broker_facts.Fact | None) -> None:
    assert read_broker_fact(message) == fact


@pytest.mark.parametrize(
    ("text", "addr"),
    [
        ("[id: 0x36cfcf63, L:/10.0.0.2:10911 - R:/10.0.0.14:38122]", "10.0.0.14:38122"),
        ("[id: 0x36cfcf63, L:/10.0.0.2:10911 ! R:/10.0.0.14:38122]", "10.0.0.14:38122"),
        ("[id: 0x36cfcf63, L:/[fe80::1]:10911 ! R:/[fe80::2]:38122]", "[fe80::2]:38122"),
        ("[id: 0x36cfcf63, L:/10.0.0.2:10911 - R:client-1/10.0.0.14:38122]", "10.0.0.14:38122"),
        ("[id: 0x36cfcf63, /10.0.0.14:38122 => /10.0.0.2:10911]", "10.0.0.14:38122"),
        ("[id: 0x36cfcf63, /10.0.0.14:38122 :> /10.0.0.2:10911]", "10.0.0.14:38122"),
        (
            "GrpcClientChannel{clientId=${clientIP}@1, remoteAddress=10.0.0.14:1}",
            "GrpcClientChannel{clientId=${clientIP}@1, remoteAddress=10.0.0.14:1}",
        ),
    ],
)
@pytest.mark.parametrize("client_id", [CID, "${clientIP}@26917#5261547777682927"])
def test_a_channel_of_each_version_of_netty(text: str, addr: str, client_id: str) -> None:
    info = f"ClientChannelInfo [channel={text}, clientId={client_id}, language=JAVA, version=79, "
    info += "lastUpdateTimestamp=1462961344062]"
    channel = broker_facts.Channel(client_id, addr, 1462961344062)
    joined = read_broker_fact(f"new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: {info}")
    assert joined == broker_facts.Joined("g", channel, "CONSUME_PASSIVELY", "CLUSTERING")
    left = read_broker_fact(f"unregister a consumer[g] from consumerGroupInfo {info}")
    assert left == broker_facts.Left("g", channel)
    end = "from ConsumerGroupInfo groupChannelTable, consumer group: g"
    closed = read_broker_fact(f"NETTY EVENT: remove not active channel[{info}] {end}")
    assert closed == broker_facts.Vanished("g", addr, channel)


def test_a_channel_that_a_terminal_wrapped_is_damaged() -> None:
    wrapped = CHANNEL.replace("127.0.0.1:10911", "127.0.0.1:109\n11")
    with pytest.raises(DecodeError):
        read_broker_fact(f"unregister a consumer[g] from consumerGroupInfo {wrapped}")


@pytest.mark.parametrize(
    "message",
    [
        f"registerConsumer info changed {CONSUMER} 127.0.0.1:41538",
        f"ClientManageProcessor: registerConsumer info changed, SDK address=127.0.0.1:41538, consumerData={CONSUMER}",
        "heartBeatV2 ClientManageProcessor: registerConsumer info changed, SDK "
        f"address=/127.0.0.1:41538, consumerData={CONSUMER}",
    ],
)
def test_an_announcement_of_either_version(message: str) -> None:
    fact = read_broker_fact(message)
    assert isinstance(fact, broker_facts.Announced)
    assert (fact.client_addr, fact.consumer["groupName"]) == ("127.0.0.1:41538", "pay-group")


@pytest.mark.parametrize(
    "message",
    [
        "[NOTIFYME]update consumer offset less than store",
        "[NOTIFYME]update consumer offset less than store. clientHost=127.0.0.1:4, key=t@g, queueId=3, requestOffset=2",
        "[reset-offset] reset offset started by 127.0.0.1:46688. topic=t, group=g, timest",
        "[reset-offset] reset offset success. topic=t, group=g",
        'Reset offset, topic=t, group=g, queues={"offsetTable":{{"bro',
        'Reset offset, topic=t, group=g, queues={"offsetTable":{}}',
        "Reset offset failed, topic does not exist. topic=t, gro",
    ],
)
def test_a_message_about_offsets_that_was_cut_is_refused(message: str) -> None:
    with pytest.raises(DecodeError):
        read_broker_fact(message)


@pytest.mark.parametrize(
    ("message", "kind", "client_id", "other"),
    [
        (f"tryLockBatch, message queue not locked, I got it. Group: g NewClientId: c {MQ}", "granted", "c", None),
        (
            f"tryLock, message queue lock expired, I got it. Group: g OldClientId: a NewClientId: c {MQ}",
            "granted",
            "c",
            "a",
        ),
        (
            f"tryLockBatch, message queue locked by other client. Group: g OtherClientId: a NewClientId: c {MQ}",
            "refused",
            "c",
            "a",
        ),
        (f"unlockBatch, Group: g {MQ} c", "unlocked", "c", None),
        (
            "RebalanceLockManager#tryLockBatch: lock a message which has not been locked yet, group=g, "
            f"clientId=c, mq={MQ}",
            "granted",
            "c",
            None,
        ),
        (
            f"RebalanceLockManager#tryLock: try to lock a expired message queue, group=g, mq={MQ}, old "
            "client id=a, new client id=c",
            "granted",
            "c",
            "a",
        ),
        (
            f"RebalanceLockManager#tryLockBatch: message queue has been locked by other client, group=g, mq={MQ}, "
            "locked client id=a, current client id=c",
            "refused",
            "c",
            "a",
        ),
        (f"RebalanceLockManager#unlockBatch: unlock mq, group=g, clientId=c, mqs={MQ}", "unlocked", "c", None),
    ],
)
def test_lock_messages_of_either_version(message: str, kind: str, client_id: str, other: str | None) -> None:
    line = read_lock_line(message)
    assert line is not None
    assert (line.kind, line.group, line.client_id, line.queue, line.other) == (kind, "g", client_id, QUEUE, other)


def test_lock_messages_that_say_nothing_or_were_cut() -> None:
    assert read_lock_line(f"unlockBatch, but mq not locked, Group: g {MQ} c") is None
    with pytest.raises(DecodeError):
        read_lock_line("tryLockBatch, message queue not locked, I got it. Group: g NewCl")


def test_fall_behind() -> None:
    fall = read_fall_behind("[GROUP_GET_FALL_TIME] [0@a@b] Stats Every 5 Minutes, Value: 12")
    assert fall is not None
    assert fall[:] == ("time", "b", "a", 0, 12)
    assert read_fall_behind("[GROUP_GET_NUMS] [a@b] Stats In One Minute, SUM: 1 TPS: 0.02 AVGPT: 1.00") is None
    with pytest.raises(DecodeError):
        read_fall_behind("[GROUP_GET_FALL_SIZE] [0@a@b] Stats Every 5 Min")


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ("new broker registered, 127.0.0.1:10931 HAServer: 127.0.0.1:10932", "registered"),
        (
            "new broker registered, BrokerIdentityInfo [clusterName=c, brokerAddr=127.0.0.1:10931] "
            "HAService: 127.0.0.1:1",
            "registered",
        ),
        ("the broker's channel destroyed, 127.0.0.1:10931, clean it's data structure at once", "destroyed"),
        (
            "the broker's channel destroyed, submit the unregister request at once, broker info: BrokerIdentityInfo "
            "[clusterName=c, brokerAddr=127.0.0.1:10931], submit result: true",
            "destroyed",
        ),
        ("The broker channel expired, 127.0.0.1:10931 120000ms", "expired"),
        ("unregisterBroker, remove from brokerLiveTable OK, 127.0.0.1:10931", "unregistered"),
    ],
)
def test_name_server_messages_of_either_version(message: str, event: str) -> None:
    fact = read_namesrv_fact(message)
    assert isinstance(fact, BrokerSeen)
    assert fact == (event, "127.0.0.1:10931")


def test_a_master_is_named() -> None:
    message = "cluster [C] brokerName [broker-a] master address change from null to 127.0.0.1:10911"
    assert read_namesrv_fact(message) == MasterNamed("broker-a", "127.0.0.1:10911")
    assert read_namesrv_fact("start scanNotActiveBroker") is None
