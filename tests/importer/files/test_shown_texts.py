"""What a text shows that no decision uses: the cause that it names, beside what to give instead."""

from __future__ import annotations

from each_case import for_each
from mqreplay.importer.files.other_files import unused_command, unused_text

TRACK = "MessageTrack [consumerGroup=g_pay, trackType=%s, exceptionDesc=null]\n"
REPLICA = "ReplicaIdentity{brokerName='b', brokerId=2, brokerAddress='10.1.0.8:10911', alive=false}"
PRODUCERS = "000%d  10.1.0.21@1                      10.1.0.2%d:51024        JAVA     V4_7_1\n"
LISTENER = '"ConsumeMessageThread_1" #88 prio=5 os_prio=0 tid=0x1 nid=0x2 runnable [0x3]\n' + (
    "\tat com.mysql.jdbc.MysqlIO.readFully(MysqlIO.java:3011)\n"
    "\tat com.x.PayListener.consumeMessage(PayListener.java:44)\n"
    "\tat org.apache.rocketmq.client.impl.consumer.X.consumeMessage(X.java:1)\n"
)
GROUPS = "#Group  #Count  #Version  #Type  #Model  #TPS  #Diff Total\ng_mail  2  V4_7_1  PUSH  CLUSTERING  120  7\n"
CLIENT_POD = (
    "broker-0-0   0/1     CrashLoopBackOff   17         1h\n    Last State:  Terminated\n      Reason:    OOMKilled\n"
)

# The command (None: the text names itself), the text, what it shows, the class of RocketMQ that prints it.
SHOWN = (
    (
        "queryMsgById",
        TRACK % "CONSUMED_BUT_FILTERED",
        "group g_pay passed the message over: its subscription",
    ),  # TrackType
    ("queryMsgByKey", TRACK % "NOT_ONLINE", "no consumer of group g_pay is connected"),
    (None, TRACK % "NOT_CONSUME_YET", "group g_pay has not reached the message"),
    ("queryMsgByUniqueKey", "Reconsume Times:     16\n", "the message was sent back 16 times"),
    ("statsAll", "order  g_pay  48210  120.00  0.00  1036800  12\n", "group g_pay is 48210 messages behind on order"),
    ("producerConnection", PRODUCERS % (1, 1) + PRODUCERS % (2, 2), "used by two hosts, 10.1.0.21 and 10.1.0.22"),
    (
        "getSyncStateSet",
        f"\nNotInSyncReplica:\t{REPLICA}\n",
        "replica 2 at 10.1.0.8:10911 is not in sync: it cannot be",
    ),
    ("getSyncStateSet", f"\nInSyncReplica:\t{REPLICA}\n", "the controller gets no heartbeats of replica 2"),
    ("consumerProgress without -g", GROUPS, "group g_mail is 7 messages behind"),
    (
        "consumerProgress without -g",
        "g_pay  0  OFFLINE    0  48210\n",
        "no consumer of group g_pay is connected, and 48210",
    ),
    (None, f"Full thread dump x\n{LISTENER}", "a listener is in com.x.PayListener.consumeMessage(PayListener.java:44)"),
    (
        None,
        f"NAME  READY  STATUS\n{CLIENT_POD}",
        "broker-0-0 is in state CrashLoopBackOff, after 17 restarts; a container",
    ),
    (None, "Filesystem  Size  Used Avail Use% Mounted on\n/dev/vdb1 500G 465G 35G 94% /data\n", "/data is 94 % full"),
    (None, "[x] Out of memory: Kill process 4711 (java) score 900\n", "the kernel killed java (process 4711)"),
    (
        None,
        "java.lang.RuntimeException: Lock failed,MQ already started\n\tat org.apache.rocketmq.X(X.java:1)\n",
        "Lock failed",
    ),
    (None, "Unrecognized VM option 'UseX'\n", "Unrecognized VM option 'UseX'"),
    (None, '{"status":-1,"data":null,"errMsg":"no master"}', "no master"),
)


@for_each(SHOWN)
def test_a_text_shows_the_cause_that_it_names(command: str | None, text: str, shown: str) -> None:
    kind = unused_text(text)
    words = str(unused_command(command, text.splitlines())) if command else kind and kind.words_of(text)
    assert words
    assert "give " in words
    assert shown in words.partition(" It shows: ")[2], words


@for_each(
    (
        "MessageTrack [consumerGroup=g, trackType=CONSUMED_SOME_TIME_AGO, exceptionDesc=null]",
        "Filesystem  Size  Used Avail Use% Mounted on\n/dev/vdb1 500G 265G 35G 54% /data\n",
        "NAME  READY  STATUS\nbroker-0-0   1/1     Running   17         1h\n",
        "Full thread dump x\n\tat org.apache.rocketmq.client.impl.consumer.X.consumeMessage(X.java:1)\n",
    )
)
def test_a_text_without_a_cause_shows_none(text: str) -> None:
    kind = unused_text(text)
    assert kind is not None
    assert kind.words_of(text) == kind.words


def test_the_largest_numbers_are_shown_first() -> None:
    rows = [f"order-{n}  g  {n}  1.00  0.00  1  1" for n in range(1, 20)]
    words = str(unused_command("statsAll", rows))
    assert "It shows: group g is 19 messages behind on order-19; group g is 18" in words
    assert words.count("messages behind") == 5
