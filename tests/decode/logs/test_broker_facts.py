"""Messages of broker.log as facts."""

from __future__ import annotations

import pytest

from decode.logs.log_messages import CID, CONSUMER, read_fact
from mqreplay.decode.logs import broker_facts
from mqreplay.decode.logs.form import Fact
from mqreplay.decode.logs.java_text import Channel
from mqreplay.words.errors import DecodeError

CHANNEL = (
    "ClientChannelInfo [channel=[id: 0x37ae6a07, L:/127.0.0.1:10911 - R:/127.0.0.1:41538], "
    f"clientId={CID}, language=JAVA, version=407, lastUpdateTimestamp=1795228808369]"
)


QUEUES_SET = '{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:120}}'


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        (
            f"new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: {CHANNEL}",
            broker_facts.Joined("g", Channel(CID, "127.0.0.1:41538", 1795228808369), "CONSUME_PASSIVELY", "CLUSTERING"),
        ),
        (
            "new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: "
            + CHANNEL.replace(CID, "${clientIP}@26917#5261547777682927"),
            broker_facts.Joined(
                "g",
                Channel("${clientIP}@26917#5261547777682927", "127.0.0.1:41538", 1795228808369),
                "CONSUME_PASSIVELY",
                "CLUSTERING",
            ),
        ),
        (
            f"unregister a consumer[g] from consumerGroupInfo {CHANNEL}",
            broker_facts.Left("g", Channel(CID, "127.0.0.1:41538", 1795228808369)),
        ),
        (
            f"NETTY EVENT: remove not active channel[{CHANNEL.replace(' - R', ' ! R')}] from "
            "ConsumerGroupInfo groupChannelTable, "
            "consumer group: g",
            broker_facts.Vanished("g", "127.0.0.1:41538", Channel(CID, "127.0.0.1:41538", 1795228808369)),
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
def test_broker_messages(message: str, fact: Fact | None) -> None:
    assert read_fact(message) == fact


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
    channel = Channel(client_id, addr, 1462961344062)
    joined = read_fact(f"new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: {info}")
    assert joined == broker_facts.Joined("g", channel, "CONSUME_PASSIVELY", "CLUSTERING")
    left = read_fact(f"unregister a consumer[g] from consumerGroupInfo {info}")
    assert left == broker_facts.Left("g", channel)
    end = "from ConsumerGroupInfo groupChannelTable, consumer group: g"
    closed = read_fact(f"NETTY EVENT: remove not active channel[{info}] {end}")
    assert closed == broker_facts.Vanished("g", addr, channel)


def test_a_channel_that_a_terminal_wrapped_is_damaged() -> None:
    wrapped = CHANNEL.replace("127.0.0.1:10911", "127.0.0.1:109\n11")
    with pytest.raises(DecodeError):
        read_fact(f"unregister a consumer[g] from consumerGroupInfo {wrapped}")


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
    fact = read_fact(message)
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
        read_fact(message)


def subscription(text: str, version: int = 7) -> str:
    return (
        f"SubscriptionData [classFilterMode=false, topic=notify, subString={text}, tagsSet=[x, y], codeSet=[1, 2], "
        f"subVersion={version}, expressionType=TAG]"
    )


def kept(text: str, version: int = 7) -> dict[str, object]:
    return {"topic": "notify", "subString": text, "subVersion": version, "expressionType": "TAG"}


@pytest.mark.parametrize(
    ("message", "old", "new"),
    [
        (f"add new topic, group: g {subscription('x || y')}", None, kept("x || y")),
        (f"group: g OLD: {subscription('x')} NEW: {subscription('y', 8)}", kept("x"), kept("y", 8)),
        (f"group: g remove topic notify {subscription('x')}", kept("x"), None),
    ],
)
def test_a_change_of_a_subscription(message: str, old: dict[str, object] | None, new: dict[str, object] | None):
    fact = read_fact(f"subscription changed, {message}")
    assert fact == broker_facts.SubscriptionChanged("g", old, new)
    assert fact.topic == "notify"
