"""Lines of RocketMQ clients that are not written in Java: recognised, so that they can be named.

They say too little to be evidence: a commit of the C++ client names neither its group nor its client, one of the Go
client names no client. Sources: rocketmq-client-cpp (src/log, RemoteBrokerOffsetStore), rocketmq-client-go (rlog,
consumer/offset_store.go), rocketmq-clients (java: LoggerFactory and ClientId, csharp: MqLogManager, golang: log.go,
cpp: LoggerImpl).
"""

from __future__ import annotations

import re
from typing import Final

CPP: Final = "lines of RocketMQ's C++ client (a commit in them names no group and no client)"
GO: Final = "lines of RocketMQ's Go client (they name no client that holds or commits a queue)"
GRPC: Final = "lines of RocketMQ's gRPC clients (brokers assign their messages one by one, not queues)"
INSTEAD: Final = "broker.log of each broker, and the output of mqadmin consumerProgress -g GROUP"
_CPP: Final = re.compile(
    r"\[\d{4}-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d\.\d{6}\]\((?:trace|debug|info|warning|error|fatal)\):"
    r"|updateConsumeOffsetToBroker of mq:MessageQueue \[",
    re.ASCII,
)
_GO: Final = re.compile(
    r"(?:\blevel=(?:debug|info|warning|error|fatal)\b.*\bmsg=|\b(?:DEBU|INFO|WARN|ERRO|FATA)\[\d{4}\] )"
    r".*(?:consumerGroup|MessageQueue|messageQueue|cidAll|brokerName|broker|topic)="
    r"|\{.*\"(?:consumerGroup|MessageQueue)\": ?\".*\}\s*$",  # zap, as JSON or behind a message
    re.ASCII,
)
_GRPC: Final = re.compile(
    r"Assignments of topic=.{1,300}clientId=|org\.apache\.rocketmq\.(?:shaded|client\.java)\.|\bOrg\.Apache\.Rocketmq\."
    r"|[\w.-]@\d{1,7}@\d{1,5}@[0-9a-z]{8,9}(?![\w@#])"  # an id of any of them: host, process, index, time in base 36
    r"|\tgolang/\w+\.go:\d+\t|\[--[TDIWEC]--\] \["
    r'|\{.*"level":"[A-Z]{4}".*"component":"(?:session|client|producer|push_consumer|simple_consumer)"',  # Rust: slog
    re.ASCII,
)


def other_client(text: str) -> str | None:
    """Return which client's log a line is of; None for a line of none of these.

    >>> other_client('time="2026-02-13T13:38:37+08:00" level=info msg="lock MessageQueue" consumerGroup=g lockOK=false')
    "lines of RocketMQ's Go client (they name no client that holds or commits a queue)"
    >>> other_client("2026-02-13 13:38:37.1180 INFO  [7] [9] heartbeat, clientId=web-1@7@0@7f3k2m1q")
    "lines of RocketMQ's gRPC clients (brokers assign their messages one by one, not queues)"
    >>> other_client("2026-02-13 13:38:37 INFO started")
    """
    for pattern, name in ((_CPP, CPP), (_GO, GO), (_GRPC, GRPC)):
        if pattern.search(text[:1000]) is not None:
            return name
    return None
