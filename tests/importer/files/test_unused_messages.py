"""Lines that tell of a fault, and that no decision uses: each is counted under words for what it is.

Each line is one of RocketMQ's, by the class that is named beside it; values are replaced.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from each_case import for_each
from mqreplay.importer.files.other_files import UNUSED_MESSAGES, unused_message
from mqreplay.importer.files.sources import Source
from mqreplay.importer.logs.line_count import LineCount, why_no_log
from mqreplay.importer.logs.log_text import log_lines

# Message, words of its count, class.
LINES = (
    # clients
    (
        "WARN PullMsgThread-g1 - The cached message count exceeds the threshold 1000, so do flow control, minOffset=1, "
        "maxOffset=1299, count=1200, size=2 MiB, flowControlTimes=1001",  # DefaultLitePullConsumerImpl#pullTask
        "a lite pull consumer held back",
    ),
    ("WARN PullMsgThread-g1 - The Pull Task is cancelled after doPullTask, MessageQueue [topic=t]", "rebalance"),
    ("WARN RebalanceService - the message queue locked Failed, Group: g MessageQueue [topic=t]", "hold their lock"),
    ("WARN RebalanceService - [WRONG]mq is consuming, so can not unlock it, MessageQueue", "still in a message"),
    ("WARN main - the consumer group[g] exist already.", "of the same group in one process"),  # MQClientInstance
    ("WARN main - Returned Previous MQClientInstance for clientId:[10.1.0.9@7]", "share one connection"),
    (
        "WARN main - send heart beat to broker[a 0 h:1] exception, because the broker not up, forget it",
        "forget its groups",
    ),
    (
        "WARN ConsumeMessageThread_1 - BROADCASTING, the message consume failed, drop it, MessageExt",
        "do not come again",
    ),
    ("WARN ConsumeMessageThread_1 - processQueue is dropped without process consume result. messageQueue=x", "again"),
    ("WARN main - when broker check, client does not know this transaction state, null", "rolled back or left open"),
    # connections: NettyRemotingClient, NettyRemotingServer, NettyRemotingAbstract
    ("WARN main - createChannel: connect remote host[10.1.0.7:10911] failed, Abstract", "cannot be reached"),
    ("WARN NettyClientPublicExecutor_1 - receive response, but not matched any request, 10.1.0.7:10911", "in time"),
    ("WARN NettyServerCodecThread_3 - NETTY SERVER PIPELINE: IDLE exception [10.1.0.9:51024]", "without a byte"),
    (
        "WARN NettyServerNIOSelector_3_1 - 10.1.0.9:51024, too many requests and system thread pool busy, "
        "RejectedExecutionException java.util.concurrent.ThreadPoolExecutor@1 request code: 310",
        "OVERLOAD",
    ),
    (
        "ERROR NettyServerNIOSelector_3_2 - processRequestWrapper response to /10.1.0.5:45160 failed",
        "could not deliver",
    ),
    # brokers
    ("ERROR BrokerControllerScheduledThread1 - SyncTopicConfig Exception, 10.1.0.7:10911", "a slave could not copy"),
    ("WARN brokerOutApi_thread_1 - registerBroker Exception, 10.1.0.9:9876", "registrations of a broker that failed"),
    ("WARN SendMessageThread_1 - the topic pay not exist, producer: /10.1.0.9:51024", "autoCreateTopicEnable"),
    ("ERROR PullMessageThread_1 - the topic pay not exist, consumer: 10.1.0.9:51024", "(code 17)"),
    (
        "WARN PullMessageThread_1 - queueId[7] is illegal, topic:[pay] topicConfig.readQueueNums:[4] consumer:[/10.1.0.9]",  # noqa: E501
        "readQueueNums",
    ),
    (
        "WARN SendMessageThread_1 - message body size exceeded, msg total size: 5242880, msg body size: 1",
        "maxMessageSize",
    ),
    ("INFO main - [PROTECT_BROKER] the consumer[g] consume slowly, 17179869184 bytes, disable it", "consumeEnable"),
    ("INFO AdminBrokerThread_1 - deleteTopic called by 10.1.0.9:51024", "somebody ordered"),
    ("INFO SendMessageThread_1 - send msg to DLQ %DLQ%g, owner=g, originalTopic=pay", "dead letter"),
    ("WARN ReplicasManager_1 - Now no master in broker set", "in controller mode that reaches no controller"),
    (
        "ERROR TransactionalMessageCheckService - MsgExt:MessageExt [queueId=0] has been checked too many times, so "
        "discard it by moving it to system topic TRANS_CHECK_MAXTIME_TOPIC",
        "transactionCheckMax",
    ),
    ("WARN main - Check transaction failed, channel is null. groupId=tx", "no producer of the group is connected"),
    (
        "ERROR ScheduleMessageTimerThread - schedule CQ offset invalid. offset=77, cqMinOffset=0, cqMaxOffset=74",
        "levels",
    ),
    ("ERROR ScheduleMessageTimerThread - ScheduleMessageService, a message time up, but reput it failed", "level wait"),
    ("WARN TimerEnqueueGetService - Timer currQueueOffset:7 is smaller than minOffsetInQueue:9", "timerWheelEnable"),
    ("WARN PopMessageThread_1 - Too much msgs unacked, then stop popping. topic=t, group=g, queueId=0", "POP hands"),
    ("ERROR main - PopConsumerService drop record, message may be lost, record=x", "come twice, late or never"),
    ("ERROR main - load /store/config/topics.json failed, and try to load backup file", "a file of store/config"),
    # stores
    ("WARN StoreScheduledThread1 - disk space will be full soon, but delete file failed.", "diskMaxUsedSpaceRatio"),
    ("WARN main - [NOTIFYME]TransientStorePool is not enough, so create mapped file error", "transientStorePoolEnable"),
    (
        "ERROR SendMessageThread_1 - transfer message to slave timeout, offset : 7, request acks: 2",
        "FLUSH_SLAVE_TIMEOUT",
    ),
    ("ERROR SendMessageThread_1 - transfer messsage to slave timeout, 7", "FLUSH_SLAVE_TIMEOUT"),  # HAService of 4.x
    ("WARN ShutdownHook - the store may be wrong, so shutdown abnormally, and keep abort file.", "at its next start"),
    ("WARN main - found a illegal magic code 0x0", "the end of the messages"),
    ("WARN main - found a illegal magic code 0xcbd43194", "found damaged"),
    ("WARN main - maxPhyOffsetOfConsumeQueue(9) >= processOffset(7), truncate dirty logic files", "these are lost"),
    ("ERROR main - load exception", "so that it did not start"),
    ("WARN main - The reputFromOffset=1 is smaller than minPyOffset=9, this usually indicate", "no consumer gets them"),
    ("WARN HAClient - HAClient connect to master 10.1.0.7:10912 failed", "haListenPort"),
    (
        "WARN main - slave[10.1.0.8:1] request offset=9 greater than local commitLog offset=7. ",
        "more messages than its",
    ),
    ("ERROR main - Failed to find a consistent point between masterEpoch:[] and slaveEpoch:[]", "histories (epochs)"),
    # name servers, controllers, proxies
    ("WARN RemotingExecutorThread_3 - Registering Broker conflicts with the existed one, just ignore.", "two brokers"),
    ("INFO RemotingExecutorThread_3 - wipe write perm of broker[a], client: 10.1.0.9:5, 42", "somebody ordered"),
    ("ERROR main - Failed to trigger elect-master in broker-set: broker-a", "controllers do not agree"),
    ("WARN main - reload topic route from namesrv. topic: orders", "neither send nor receive"),
    ("WARN main - handle has exceed max renewRetryTimes. handle:x", "still processing"),
)


def counted(name: str, *lines: str) -> LineCount:
    """Return how the lines of a file are counted."""
    count = LineCount()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        assert [
            line for line in log_lines(Source(name, path.stat().st_size, 0, path), count) if line.fact is not None
        ] == []
    assert count.read == sum(count.left_out.values())
    return count


@for_each(LINES)
def test_a_line_is_counted_for_what_it_is(line: str, words: str) -> None:
    count = counted("paste.txt", f"2024-05-17 17:26:38 {line}")
    [form] = [form for form, number in count.left_out.items() if number]
    assert words in form, form
    assert line[:60] in count.examples[form]


@for_each(part for part, _ in UNUSED_MESSAGES)
def test_each_part_is_found_in_a_message(part: str) -> None:
    """Also a part that begins or ends inside of a word."""
    assert any(
        unused_message(f"{before}{part}{after}") for before in (" - ", "C", "messa", "reput") for after in ("", "7")
    )


@for_each(
    (
        # name, thread, level, message, form
        ("paste.txt", "BrokerControllerScheduledThread1", "ERROR", "printWaterMark error.", "'printWaterMark error.'"),
        ("store.log", "main", "WARN", "Unknown boundary type 7", "'Unknown boundary type'"),
        ("namesrv.log", "main", "ERROR", "deleteTopic Exception, pay", "'deleteTopic Exception'"),
        ("app.log", "main", "ERROR", "an error of the application", None),
        ("broker.log", "main", "INFO", "The broker dose not enable acl", None),
    )
)
def test_a_warning_or_error_without_a_record_is_shown(
    name: str, thread: str, level: str, message: str, form: str | None
) -> None:
    """Of a log of RocketMQ by its name or its threads; with the exception below it."""
    count = counted(name, f"2024-05-17 17:26:38 {level} {thread} - {message}", "java.io.IOException: no space left")
    shown = [(each, count.examples[each]) for each in count.examples]
    if form is None:
        assert shown == []
        return
    [(words, example)] = shown
    assert (
        words == f"{'errors' if level == 'ERROR' else 'warnings'} of RocketMQ that no decision uses, of the form {form}"
    )
    assert example.endswith(f"{message}', with 'java.io.IOException: no space left'"), example
    assert message in str(why_no_log(name, count))


def test_only_some_kinds_of_errors_are_shown() -> None:
    names = [f"{first}{second} failed" for first in "abcdefgh" for second in "abcdefgh"]
    count = counted("store.log", *(f"2024-05-17 17:26:38 ERROR main - {name}" for name in names))
    assert len(count.examples) == 20
