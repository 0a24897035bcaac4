"""Pulls that a broker refused, in its broker.log: records of client_errors, as a client's own log gives them."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from each_case import for_each
from importer.logs.collected_logs import imported
from mqreplay.core.pull_refusal import refusal_of

AT = "2022-11-08 13:54:02"
PAY = {"consumer_group": "pay-g"}
ABSENT = f"{AT} WARN PullMessageThread_84 - the consumer's group info not exist, group: pay-g\n"
OLD_CLIENT = (
    f"{AT},017 WARN NettyClientPublicExecutor_1 - execute the pull request exception\n"
    "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 24  DESC: the consumer's group info not exist\n"
)


def refusals(files: Mapping[str, str]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text)
        records, _ = imported(Path(folder), dt.UTC)
    return records["client_errors"]


@for_each(
    (  # PullMessageProcessor#processRequest: the line, the code, what it names
        ("the consumer's group info not exist, group: pay-g", 24, PAY),
        ("the consumer's subscription not exist, group: pay-g, topic:pay", 24, {**PAY, "topic": "pay"}),
        ("The broker's subscription is not latest, group: pay-g TagA || TagB", 25, PAY),
        (
            "The broker's consumer filter data is not latest, group: pay-g, topic: pay, serverV: 7, clientV: 9",
            28,
            {**PAY, "topic": "pay"},
        ),
        ("Parse the consumer's subscription[a > ] failed, group: pay-g", 23, PAY),
    )
)
def test_a_refusal_has_the_code_and_the_remark_of_its_answer(line: str, code: int, names: Mapping[str, str]) -> None:
    [refused] = refusals({"broker-a-0/broker.log": f"{AT} WARN PullMessageThread_84 - {line}\n"})
    reason = refusal_of(refused["remark"])
    assert reason is not None
    assert code in reason.codes
    assert (refused["response_code"], refused["broker_name"], refused["request"]) == (code, "broker-a", "pull")
    assert {name: refused[name] for name in names} == names


def test_a_refusal_counts_without_the_name_of_the_broker() -> None:
    [refused] = refusals({"paste.log": ABSENT})
    assert (refused["consumer_group"], refused.get("broker_name")) == ("pay-g", None)


def test_a_refusal_in_a_clients_log_too_counts_once() -> None:
    """A line of a 4.x client names no group."""
    [refused] = refusals({"broker-a-0/broker.log": ABSENT, "app/rocketmq_client.log": OLD_CLIENT})
    assert refused["source"] == "client_log"
    assert (
        len(refusals({"broker-a-0/broker.log": ABSENT, "app/rocketmq_client.log": OLD_CLIENT.replace("24", "25")})) == 2
    )
