"""Files and outputs that no decision uses are named for what they are, with what to give instead."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mqreplay.importer.files.other_files import unused_command, unused_log, unused_text
from mqreplay.importer.import_command import import_evidence
from mqreplay.importer.mqadmin.admin import READERS
from mqreplay.importer.mqadmin.commands import COMMANDS
from mqreplay.words.errors import InputError

# The beginning of a file of each kind, and a word of what it is.
TEXTS = {
    'rocketmq_producer_offset{cluster="p",topic="t",lastUpdateTimestamp="1636000000000",} 991200.0': "exporter",
    '# TYPE rocketmq_x gauge\nrocketmq_consumer_lag_messages{topic="t",consumer_group="g"} 7': "metrics",
    "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n": "no memory",
    "# TYPE jvm_threads_live gauge\njvm_threads_live 7.0": "Prometheus",
    "2021-11-04 10:00:00\nFull thread dump OpenJDK 64-Bit Server VM (25.292-b10 mixed mode):": "thread dump",
    '"ConsumeMessageThread_3" #41 prio=5 os_prio=0 tid=0x1 nid=0x2 waiting on condition [0x3]': "thread dump",
    "[arthas@7]$ thread -n 3": "arthas",
    "#\n# A fatal error has been detected by the Java Runtime Environment:\n#": "crash",
    "[2024-02-29T07:30:00.123+0000][info][gc] GC(17) Pause Young (Normal) 24M->4M(256M) 5.1ms": "garbage",
    "2019-09-01T02:00:00.123+0800: 12.345: [GC (Allocation Failure) 1024K->512K(2048K), 0.0123 secs]": "garbage",
    "Filesystem      Size  Used Avail Use% Mounted on\n/dev/vdb1 500G 465G 35G 94% /data": "disks",
    "top - 10:00:05 up 12 days,  3 users,  load average: 9.12, 8.01, 7.70": "host",
    "              total        used        free      shared  buff/cache   available\nMem: 1 2 3": "host",
    "Active Internet connections (servers and established)\nProto Recv-Q": "connections",
    "23114 BrokerStartup\n23115 Jps": "processes",
    "[Mon Sep  2 10:00:05 2019] Out of memory: Kill process 4711 (java) score 900": "kernel",
    "NAME         READY   STATUS    RESTARTS   AGE\nbroker-0-0   1/1     Running   12  4h": "kubectl",
    "GROUP TOPIC PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG": "Kafka",
    '{"status":0,"data":{"a":1},"errMsg":null}': "dashboard",
    "<!DOCTYPE html>\n<title>x</title>": "page",
    "ERROR: Please set the JAVA_HOME variable in your environment, We need java(x64)! !!": "the process did not start",
    "Unrecognized VM option 'UseCMSCompactAtFullCollection'\nError: Could not create the Java": "start script",
    "Broker\tQueue\tconsumerClient\tbrokerOffset\tconsumerOffset\tdiffTotal\tlastTimestamp": "page of the dashboard",
    "代理者\t队列\t消费者终端\t代理者位点\t消费者位点\t差值\t上次时间": "page of the dashboard",
    "SendResult [sendStatus=SEND_OK, msgId=7F0000, offsetMsgId=C0A8, messageQueue=MessageQueue [topic=t, brokerName=b, "
    "queueId=3], queueOffset=49]": "results of sends",
    "ConsumeMessageThread_g_4 Receive New Messages: [MessageExt [brokerName=b, queueId=2, storeSize=186]]": "messages",
    "MessageTrack [consumerGroup=g, trackType=NOT_CONSUME_YET, exceptionDesc=null]": "one message",
    "  Type     Reason   Age              From     Message\n  Warning  BackOff  1m (x12 over 6m) kubelet  Back": "pods",
    "rmqbroker  | java.lang.NullPointerException\nrmqbroker  | \tat org.apache.rocketmq.common.ConfigManager.persist("
    "ConfigManager.java:83)": "stack trace of RocketMQ",
    # a broker that is started twice
    "java.lang.RuntimeException: Lock failed,MQ already started\n\tat org.apache.rocketmq.store.DefaultMessageStore."
    "start(DefaultMessageStore.java:214)": "stack trace of RocketMQ",
}
LOGS = {
    "store.log": "store",
    "storeerror.2021-04-01.log.gz": "errors in its store",
    "controller.log": "elections",
    "pop.log": "POP",
    "remoting.log": "access rules",
    "commercial.log": "figures by minute",
    "transaction.log": "transactions",
    "rocksdb.log": "one part",
    "proxy.log": "proxy",
    "broker_default.log": "rare errors",
}


def refusal(folder: Path, name: str, text: str) -> str:
    (folder / "in").mkdir()
    (folder / "in" / name).write_text(text, encoding="utf-8")
    out = io.StringIO()
    with pytest.raises(InputError) as refused:
        import_evidence([str(folder / "in")], str(folder / "rec"), out)
    return f"{out.getvalue()}\n{refused.value}"


LINES = {
    "slave.txt": (  # apache/rocketmq#362
        "INFO BrokerControllerScheduledThread1 - Slave fall behind master: 180 bytes",
        "how far the best slave was behind its master, of which the line names neither (give the output of mqadmin",
    ),
    "slave-3.txt": (  # apache/rocketmq#323
        "INFO BrokerControllerScheduledThread1 - slave fall behind master, how much, -8245006252570743168 bytes",
        "a figure below 0 comes from a connection to the port of HA that is no slave's",
    ),
    "slave-5.txt": (
        "INFO BrokerControllerScheduledThread1 - CommitLog: slave fall behind master 4096bytes",
        "how far the best slave was behind its master",
    ),
    "overflow.txt": (  # alibaba/rocketmq#395
        "INFO PullMessageThread_11 - the request offset: 101254 over flow badly, broker max offset: 7157, consumer: "
        "/192.168.31.51:33411",
        "pulls past the end of a queue",
    ),
    "expired.txt": (
        "INFO RocketmqClient - send expire msg back. topic=pay, msgId=0A01, storeHost=/10.1.0.7:10911, queueId=1, "
        "queueOffset=10000",
        "messages that a listener did not finish within consumeTimeout",
    ),
    "forbidden.txt": (
        "WARN SendMessageThread_1 - message store is not writeable, so putMessage is forbidden 16",
        "its disk is full (a number of 16 and more)",
    ),
    "half.txt": (  # apache/rocketmq#1767
        "WARN EndTransactionThread_1 - The producer[192.168.240.1:54888] end transaction in sending message,  and it's "
        "pending status.RequestHeader: EndTransactionRequestHeader{producerGroup='249ServerTest'} Remark: ",
        "transactions that a producer rolled back, or left open",
    ),
    "closed.txt": (  # apache/rocketmq#2285
        " INFO 1 --- [lientSelector_1] RocketmqRemoting : closeChannel: close the connection to remote address"
        "[10.1.0.7:10909] result: true",
        "connections that were closed, of which the line does not show why",
    ),
    "route.txt": (  # alibaba/rocketmq#210
        "INFO RocketmqClient - the topic[pay] route info changed, odl[TopicRouteData []] ,new[TopicRouteData []]",
        "routes that changed at a client",
    ),
    "offset.txt": (  # apache/rocketmq#2784
        "WARN ReputMessageService - Offset for /store/commitlog/00000000813896302592 not matched. Request offset: "
        "519462681834, index: -275, mappedFileSize: 1073741824, mappedFiles count: 13",
        "places in the commit log that a broker looked for",
    ),
    "job.log": (
        "INFO NettyClientPublicExecutor_1 - receive broker's notification[10.1.0.7:10911], the consumer group: g "
        "changed, rebalance immediately",
        "(give broker.log: it has who joined and left)",
    ),
    "storeerror.1.log": (
        "WARN ReputMessageService - [BUG]put commit log position info to t:304 265047020213 failed, retry 2 times",
        "could not write into the index of a queue",
    ),
    "store.1.log": (
        "ERROR HAClient - master pushed offset not equal the max phy offset in slave, SLAVE: 1067 MASTER: 1068",
        "do not fit what its slave has",
    ),
    "store.2.log": ("ERROR main - load file /store/commitlog/00000000001073741824 error", "could not load"),
    "store.log": (
        "ERROR SendMessageThread_26 - do sync transfer other node, wait return, but failed, topic: t tags: null",
        "a master waited for its slave in vain (give the output of haStatus",
    ),
    "rocketmq_client.log": (
        "INFO MQClientFactoryScheduledThread - send heart beat to broker[broker-a 0 10.1.2.3:10911] failed",
        "(give broker.log of the broker): 1, such as broker-a-0 at 10.1.2.3:10911",
    ),
    "storeerror.log": (
        "ERROR ReputMessageService - [BUG]logic queue order maybe wrong, expectLogicOffset: 1204000 "
        "currentLogicOffset: 1203980 Topic: T_ord QID: 0 Diff: 20",
        "holes that a broker saw in the index of a queue",
    ),
    "remoting.log": (
        "ERROR PullMessageThread_4 - org.apache.rocketmq.acl.common.AclException: No default permission for group:pay",
        "requests that a broker refused by its access rules",
    ),
    "stats.log": (
        "INFO - [GROUP_GET_FALL_TIME] [0@orders@pay] Stats Every 5 Minutes, Value: 300000",
        "give mqadmin consumerProgress -g GROUP twice",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_without_a_fact_is_named(name: str, tmp_path: Path) -> None:
    line, words = LINES[name]
    assert words in refusal(tmp_path, name, f"2019-08-19 09:00:01 {line}\n")


# Parts of logs under another name: the thread of the lines shows which log it is.
PARTS = {
    "INFO TransactionalMessageCheckService - Begin to check prepare message, begin time:1629807667523": "transactions",
    "INFO TimerEnqueueGetService - TimerEnqueueGetService service started": "time of delivery",  # apache/rocketmq#7641
    "INFO AllocateMappedFileService - AllocateMappedFileService service started": "log of its store",
    "INFO PopReviveService_0 - reviveQueueId=0,ck listSize=0": "log of POP",
    "INFO NettyEventExecutor - NettyEventExecutor service end": "log of connections",  # apache/rocketmq#429
    "INFO brokerOutApi_thread_4 - Registering current broker to name server completed.": "part of a broker's log",
    "INFO NSScanScheduledThread - start scanNotActiveBroker": "part of a name server's log",  # apache/rocketmq#8752
    "WARN RocketmqClient - consumer was paused, execute pull request later.": "part of a client's log",
}


@pytest.mark.parametrize("line", PARTS)
def test_a_part_of_a_log_is_named_by_its_threads(line: str, tmp_path: Path) -> None:
    words = refusal(tmp_path, "paste.txt", f"2024-09-25 16:20:14 {line}\n")
    assert PARTS[line] in words
    assert "; give " in words


# rocketmq-clients in each of its languages, by the layouts of their own settings.
GRPC = [
    "2024-09-12 10:21:33.1187 INFO  [7] [9] [Org.Apache.Rocketmq.Client+<Heartbeat>d__60.MoveNext:371] Send heartbeat",
    "info: Org.Apache.Rocketmq.Client[0]\n      Send heartbeat successfully, clientId=web-1@4242@0@7f3k2m1q",
    "2025-07-03 17:40:02,123 ERROR 17367 Exception raised from stream, clientId=mac.lan@17367@0@mcmud55y, endpoints=x",
    "2025-02-25 10:00:01,123 [INFO] client:host-1@77@0@mcmud55y, group:g update topic:orders route success.",
    "2025-07-03T17:40:31.123+0800\tERROR\tgolang/client_manager.go:227\thappened unavailable err=rpc error",
    "2024-03-01 10:00:01.123 [--I--] [     77] Send heartbeat to 10.1.0.7:8081 ClientImpl.cpp:101",
]


@pytest.mark.parametrize("lines", GRPC, ids=["csharp", "csharp-console", "nodejs", "python", "golang", "cpp"])
def test_a_grpc_client_of_any_language_is_named(lines: str, tmp_path: Path) -> None:
    words = refusal(tmp_path, "client.log", f"{lines}\n")
    assert "lines of RocketMQ's gRPC clients" in words
    assert "; give broker.log of each broker" in words


def test_an_exception_of_another_kind_is_named(tmp_path: Path) -> None:
    words = refusal(
        tmp_path,
        "app.txt",
        "2020-06-01 10:00:00.123 ERROR 12 --- [main] o.s.boot.SpringApplication : Application run failed\n"
        "org.apache.rocketmq.client.exception.MQClientException: consumerGroup can not equal DEFAULT_CONSUMER, please "
        "specify another one.\n",
    )
    assert "MQClientException, that show neither a send nor a pull (give rocketmq_client.log" in words


def test_a_broker_log_without_a_message_does_not_ask_for_its_broker(tmp_path: Path) -> None:
    words = refusal(tmp_path, "broker.log", "2025-11-29 06:34:17 INFO brokerOutApi_thread_4 - some later message\n")
    assert "none of its lines has a message that import uses; --broker NAME-ID shows" in words


def test_a_line_without_a_date_says_what_to_give(tmp_path: Path) -> None:
    words = refusal(tmp_path, "paste.txt", "MQClientException: No route info of this topic: t\n")
    assert "; give the lines with their dates" in words


@pytest.mark.parametrize(("text", "what"), TEXTS.items(), ids=range(len(TEXTS)))
def test_a_file_of_another_program_is_named_with_what_to_give_instead(tmp_path: Path, text: str, what: str) -> None:
    words = refusal(tmp_path, "paste.txt", text + "\n")
    assert what in words
    assert "; give " in words
    assert "neither a file that import knows" not in words
    assert "(1 refusal, see above)" in words


@pytest.mark.parametrize(("name", "what"), LOGS.items())
def test_a_log_of_rocketmq_without_evidence_is_named(tmp_path: Path, name: str, what: str) -> None:
    words = refusal(
        tmp_path, name.removesuffix(".gz"), "2021-04-01 11:35:44 INFO main - some text of a later version\n"
    )
    assert what in words
    assert "; give " in words
    assert "none of its 1 line has" in words


def test_evidence_and_unknown_text_are_not_named() -> None:
    assert unused_text("#Topic  #Broker Name  #QID  #Broker Offset\n") is None
    assert unused_text("2021-04-01 11:35:44 INFO main - GC is fine, top of the queue, Name: x\n") is None
    assert all(unused_log(name) is None for name in ("broker.log", "rocketmq_client.log", "namesrv.log", "lock.log"))


@pytest.mark.parametrize("command", sorted(COMMANDS - READERS.keys()))
def test_each_command_without_a_reader_says_what_it_is(command: str) -> None:
    words = unused_command(command)
    assert words is not None
    assert "; give " in words or command == "help"


def test_an_output_without_a_reader_is_named_before_its_time(tmp_path: Path) -> None:
    """queryMsgById prints the times of a message, which are no dates of outputs."""
    words = refusal(
        tmp_path,
        "paste.txt",
        "$ sh mqadmin queryMsgById -i 0A0A0A0A00002A9F0000000000000000 -n 10.0.0.9:9876\n"
        "OffsetID:            0A0A0A0A00002A9F0000000000000000\nTopic:               pay\n"
        "Born Timestamp:      2020-05-20 14:31:05,456\nStore Host:          10.1.0.7:10911\n\n"
        "MessageTrack [consumerGroup=g_pay, trackType=NOT_CONSUME_YET, exceptionDesc=null]\n",
    )
    assert "mqadmin queryMsgById is not used: messages one by one" in words
    assert "cannot be read" not in words


def test_an_import_without_evidence_says_what_became_of_the_lines(tmp_path: Path) -> None:
    line = "2020-04-24 15:30:04,001 INFO RocketmqClient - doRebalance, g, add a new mq, "
    words = refusal(tmp_path, "ons.log", f"{line}MessageQueue [topic=t, brokerName=b, queueId=0]\n")
    assert (
        "no recording was made (queues added or removed without a rebalanced result that names the client: 1)" in words
    )


def test_the_rows_of_an_output_are_no_lines_of_a_log(tmp_path: Path) -> None:
    words = refusal(
        tmp_path,
        "b.txt",
        "$ mqadmin consumerStatus -g T\n#Index     #ClientId     #Version    #ConsumerRunningInfoFile\n"
        "1          10.0.39.88@T  V3_2_1      1483105100092/10.0.39.88@T\n"
        "10.0.39.88@T MessageQueue [topic=t, brokerName=b, queueId=0] can't consume for a while, maybe blocked, 9ms\n",
    )
    assert "parts of lines" not in words
