"""Rows of evidence and timelines in Chinese: each phrase has a template, and names stay as they are."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import polars as pl
import pytest

from each_case import for_each
from language.chinese import ZH
from mqreplay.answers.explanation import distance_text
from mqreplay.report.evidence_groups import groups_of
from mqreplay.report.evidence_values import LONGEST_VALUE
from mqreplay.report.evidence_words import IN_WORDS, WHO, WORDINGS, Wording, alternatives, what, who
from mqreplay.report.failover_words import NOT_SEEN, STEP_TEXTS, timeline_lines

ENGLISH = re.compile(r"(?<![A-Za-z])[a-z]{2,}")  # a word, not a part of Broker or NameServer
NIGHT = dt.datetime(2026, 11, 24, 2, 3, 4, tzinfo=dt.UTC)
FIELD = re.compile(r"\{(\w+)(?::[^{}]*)?\}")
PHRASES = {
    text for phrase in [WHO, *(p for w in WORDINGS.values() for p in w.phrases)] for text in alternatives(phrase)
}
# What may stand in a translation of a phrase.
NAMES = re.compile("brokerId|perm|maxReconsumeTimes")
STEP = {
    "ts": NIGHT,
    "step": "removed_by_name_server",
    "outage_ts": NIGHT,
    "happened": True,
    "judgement": "agree",
    "reason": "its channel to the name server closed, or it unregistered",
    "namesrv_addr": "10.0.0.1:9876",
    "client_id": None,
    "consumer_group": None,
    "amount": None,
    "expected_to": None,
}


@for_each(sorted(PHRASES))
def test_each_phrase_has_a_template(phrase: str) -> None:
    template = FIELD.sub(r"{\1}", phrase)
    translation = ZH.filled(template)
    assert sorted(FIELD.findall(translation)) == sorted(FIELD.findall(template))
    assert not ENGLISH.search(NAMES.sub("", FIELD.sub("", translation)))


def test_a_row_in_chinese() -> None:
    pull = {
        "request_ts": NIGHT,
        "client_id": "none",
        "consumer_group": "stuck",
        "broker_name": "unknown",
        "queue_id": 3,
        "topic": "count",
        "actual_broker_id": 1,
        "expected_broker_id": 0,
        "judgement": "differ",
        "reason": "RocketMQ's rule says broker id 0, the client asked 1",
    }
    assert who(pull, ZH) == "none（分组 stuck）"
    asked = "count 的队列 unknown/3，请求了 brokerId 1，应请求 0"
    reason = "不一致：按 RocketMQ 的规则应请求 brokerId 0，客户端请求了 1"
    assert what(WORDINGS["gold.pull_route"], pull, ZH) == f"{asked}，{reason}"


def test_values_of_many_kinds_in_chinese() -> None:
    queues = [{"topic": "T", "broker_name": "b", "queue_id": queue, "offset": 1200} for queue in (0, 1)]
    rows: list[tuple[str, dict[str, Any], str]] = [
        ("gold.rebalance_step", {"added": [], "topic": "T"}, "T 的队列，新增 无"),
        ("silver.assignment", {"queues": queues}, "持有 T b/0 重置到位点 1,200, b/1 重置到位点 1,200"),
        ("silver.consumer_list", {"broker_name": "b", "cid_all": list("abcdefghijklmn")}, "（共 14 项）"),
        ("silver.heartbeat", {"consumer_data_set": [{"group_name": "g", "subscriptions": []}]}, "g 订阅 无"),
        ("gold.offset_continuity", {"kind": "rewind", "size": 1200, "cause": "reset"}, "回退 1,200，原因：重置位点"),
        ("gold.queue_lock", {"actual": "refused", "holder": "free"}, "被拒绝；free 持有"),
        (
            "gold.listed_route",
            {"topic": "T", "listed": ["broker-a: 8 read and 4 write queues, perm 6; 0 at h:1, 1 at h:2"]},
            "T 的路由，列出 broker-a：读队列 8 个，写队列 4 个，perm 6；0 at h:1, 1 at h:2",
        ),
    ]
    for table, row, text in rows:
        assert text in what(WORDINGS[table], row, ZH)


def test_a_long_reason_is_translated_before_it_is_cut() -> None:
    reason = (
        "by packets: a client committed of which no pull is recorded, messages that no recorded answer to a pull has,"
        " and that the group passed, may be its: capture all brokers' ports"
    )
    assert len(reason) > LONGEST_VALUE
    assert what(Wording("", ("{reason}",)), {"reason": reason}, ZH) == ZH.text(reason)


def test_columns_of_names_are_not_translated() -> None:
    named = {"topic", "client_id", "consumer_group", "broker_name", "source_name", "path", "error", "remark", "holder"}
    assert not IN_WORDS & named
    assert what(WORDINGS["silver.pull"], {"error": "all is on disk"}, ZH) == "错误：all is on disk"


def test_groups_in_chinese() -> None:
    wording = WORDINGS["gold.queue_lock"]
    rows = pl.DataFrame(
        {
            "ts": [NIGHT, NIGHT],
            "actual": ["refused", "refused"],
            "judgement": ["agree", "agree"],
            "reason": ["another client has the lock", "another client has the lock"],
        }
    )
    (group,) = groups_of("gold.queue_lock", wording, rows, NIGHT, ZH, is_near=False)
    assert (group.text, group.count) == ("一致：另一个客户端持有锁", 2)


@pytest.mark.parametrize("step", STEP_TEXTS)
@pytest.mark.parametrize("rows", [1, 3])
def test_steps_of_a_failover_in_chinese(step: str, rows: int) -> None:
    for happened in (True, False) if step in NOT_SEEN else (True,):
        ((when, line),) = timeline_lines([STEP | {"step": step, "happened": happened}] * rows, ZH)
        assert when == "02:03:04.000"
        assert not ENGLISH.search(NAMES.sub("", line))
        assert ENGLISH.search(timeline_lines([STEP | {"step": step, "happened": happened}] * rows)[0][1])


def test_a_timeline_with_names_amounts_and_limits_in_chinese() -> None:
    later = NIGHT + dt.timedelta(seconds=9)
    read = STEP | {"step": "first_slave_read", "reason": "the next pull after its route changed", "expected_to": later}
    rows = [read | {"client_id": "c1", "ts": ts, "namesrv_addr": None, "amount": 4} for ts in (NIGHT, later)]
    assert timeline_lines(rows, ZH) == [
        (
            "02:03:04.000 至 02:03:13.000",
            "2 个客户端从 Slave 读取（c1, c1），8 次拉取；一致，最晚应在 02:03:13.000 前：路由变化后的下一次拉取",
        )
    ]
    (open_, _) = timeline_lines([STEP | {"judgement": None}, STEP | {"outage_ts": later}], ZH)
    assert open_[1] == "一个 NameServer 摘除了它（10.0.0.1:9876）：它与 NameServer 的连接已断开，或它已注销"


def test_distances_in_chinese() -> None:
    assert distance_text(1000, 2000, 500, words=ZH) == "落后 1,000 至 2,000 字节，内存阈值 500"
    assert distance_text(1000, 2000, None, words=ZH) == "落后 1,000 至 2,000 字节"
    assert distance_text(None, None, None, words=ZH) == "落后的距离未知"
