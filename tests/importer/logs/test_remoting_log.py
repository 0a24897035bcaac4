"""remoting.log: pulls that access rules refuse are in a log of the broker."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from importer.logs.collected_logs import imported

DENIED = "org.apache.rocketmq.acl.common.AclException: No default permission for "
PULL, SEND = "PullMessageThread_4", "SendMessageThread_1"
STACK = "\tat org.apache.rocketmq.acl.plain.PlainPermissionManager.checkPerm(PlainPermissionManager.java:171)"


def log(thread: str, cause: str, level: str = "ERROR") -> str:
    return f"2019-08-12 10:10:01 {level} {thread} - process request exception\n{cause}\n{STACK}\n"


def written(folder: Path, text: str) -> None:
    (folder / "broker-a-0").mkdir()
    (folder / "broker-a-0" / "broker.log").write_text("2019-08-12 10:09:00 INFO main - register broker[0]to name\n")
    (folder / "broker-a-0" / "remoting.log").write_text(text)


@pytest.mark.parametrize(
    ("lacks", "named"),
    [
        ("group:pay", {"consumer_group": "pay"}),
        ("topic:orders", {"topic": "orders"}),
        ("group:pay, remote address 10.1.0.7", {"consumer_group": "pay"}),
    ],
)
def test_a_pull_that_access_rules_refuse(lacks: str, named: dict[str, str], tmp_path: Path) -> None:
    written(tmp_path, log(PULL, DENIED + lacks))
    records, report = imported(tmp_path, dt.UTC)
    (error,) = records["client_errors"]
    assert error.pop("ts") == 1565604601000
    answer = {"response_code": 1, "remark": DENIED + lacks, "source": "remoting_log"}
    assert error == {"request": "pull", "broker_name": "broker-a", **named, **answer}
    assert (report.lines.used, report.left_out) == (2, {})


@pytest.mark.parametrize(
    ("thread", "cause"),
    [
        pytest.param(SEND, DENIED + "topic:orders", id="of a send"),
        pytest.param(PULL, "java.lang.NullPointerException: null", id="of another kind"),
        pytest.param(PULL, STACK, id="without its begin"),
    ],
)
def test_another_request_is_counted(thread: str, cause: str, tmp_path: Path) -> None:
    written(tmp_path, log(thread, cause))
    records, report = imported(tmp_path, dt.UTC)
    assert "client_errors" not in records
    ((form, number),) = report.left_out.items()
    assert number == 1
    assert "ended in an exception of a broker" in form
    assert report.examples[form] == (cause if cause != STACK else "without its exception")
