"""What findings say, in Chinese: every kind, every known issue, what watch adds, and names that are not translated."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from each_case import for_each
from language.chinese import ZH, report, unknown
from mqreplay.answers.explanation import Explanation
from mqreplay.answers.open_findings import watch_note
from mqreplay.core import pull_refusal
from mqreplay.decisions import pull_refusals
from mqreplay.evidence.messages import failed_sends
from mqreplay.evidence.offsets.break_causes import HANDOVER, OVERTAKEN, RESTART, UNKNOWN_CAUSE
from mqreplay.evidence.offsets.offset_causes import COPIED
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.known_issues import KnownIssue, known_issues
from mqreplay.findings.registry import SHIPPED
from mqreplay.findings.texts import texts_of, written_summary
from mqreplay.language.forms import Form
from mqreplay.language.language import in_english
from mqreplay.report.evidence_rows import EvidenceRows
from mqreplay.report.next_step import advice_parts, known_issue_text
from mqreplay.terminal.explanation import _watch_text

COMMANDS = re.compile(r"`[^`]*`")
NIGHT = dt.datetime(2026, 11, 24, 1, 2, 3, tzinfo=dt.UTC)
# Names that have what parts sentences, formats values or marks commands, and words of the catalogue.
HOSTILE = [
    "a. B",
    "a; b",
    "{group}",
    "{0}{",
    "}",
    "a `rm -rf` b",
    "two\nlines",
    "negative",
    "started",
    "8 queues",
    "the ends of the queues",
    "分组",
    "a: b, by c",
]


@for_each(SHIPPED.values())
def test_a_kind_is_translated(kind: FindingKind) -> None:
    for part in ("meaning", "rule", "advice"):
        english, chinese = kind.text(part), kind.text(part, "zh")
        assert re.search("[\u4e00-\u9fff]", chinese)
        assert COMMANDS.findall(english) == COMMANDS.findall(chinese)
    names = {"GROUP": "my group", "TOPIC": "t", "CLIENT_ID": "c", "FINDING": "f00"}
    commands = [advice_parts(kind.text("advice", lang), names)[1::2] for lang in ("en", "zh")]
    assert commands[0] == commands[1], "commands are filled in alike"


@for_each(SHIPPED.values())
def test_the_forms_of_a_kind_have_the_same_values(kind: FindingKind) -> None:
    texts = texts_of(kind.name)
    assert texts.has_form("summary", next(texts.names("summary")))
    for part in ("summary", "advice"):
        for name in texts.names(part):
            english, chinese = (texts.form(part, name, lang) for lang in ("en", "zh"))
            assert english.names == chinese.names
    words = [texts.tables(lang) for lang in ("en", "zh")]
    for table, of_english in words[0].items():
        of_chinese = words[1][table]
        if isinstance(of_english, Form):
            assert isinstance(of_chinese, Form)
            assert of_english.names == of_chinese.names
        else:
            assert not isinstance(of_chinese, Form)
            assert of_english.keys() == of_chinese.keys()
            assert all(re.search("[\u4e00-\u9fff]", text) for text in of_chinese.values())


def test_what_is_added_to_a_summary_is_translated() -> None:
    values = {"began_ts": "2026-11-23 22:10:00", "delivered_again": 3}
    chinese, english = (written_summary("stuck_queue", values, words) for words in (ZH, in_english()))
    assert chinese.endswith("开始于 2026-11-23 22:10:00 UTC，见前一天。有 3 条消息重复投递。")
    assert english.endswith(
        " It began at 2026-11-23 22:10:00 UTC, see the day before. 3 messages were delivered again."
    )


def test_each_reason_that_code_lists_is_translated() -> None:
    reasons = {
        *failed_sends.MENDS,
        *(each.words for each in pull_refusal.REFUSALS.values()),
        pull_refusals.OTHER_REMARK,
    }
    assert not (missing := unknown(reasons)), report(missing)


def words_of(kind: str, table: str) -> Mapping[str, str]:
    words = texts_of(kind).tables("zh")[table]
    assert not isinstance(words, Form)
    return words


def test_each_cause_has_words() -> None:
    assert set(words_of("every_kind", "cause")) == {
        *("reset", "refused_query", "client_commit", "set_from_outside"),
        *(HANDOVER, RESTART, OVERTAKEN, COPIED, UNKNOWN_CAUSE),
    }
    assert set(words_of("duplicate_delivery", "why")) == {
        *("offset_rewind", "offset_reset", "offset_beyond_max", "consumer_lost"),
        *("double_owned_queue", "strategy_conflict", "subscription_conflict", "broker_down"),
    }
    assert set(words_of("not_stored", "unsafe")) == set(failed_sends.UNSAFE)
    assert set(failed_sends.MENDS.values()) - {"unknown"} <= set(texts_of("send_failed").names("advice"))


@for_each(known_issues().issues)
def test_a_known_issue_is_translated(issue: KnownIssue) -> None:
    row = {"issue": issue.number, "component": issue.component, "versions": ["4.9.3", "5.1.0"], "title": issue.title}
    texts = [known_issue_text(row | {"mended_in": version}) for version in ("5.9.9", None)]
    assert not (missing := unknown([*texts, issue.advice])), report(missing)
    assert COMMANDS.findall(issue.advice) == COMMANDS.findall(ZH.text(issue.advice))
    assert "4.9.3, 5.1.0" in ZH.text(texts[0])
    assert "5.9.9" in ZH.text(texts[0])


def test_what_watch_says_is_translated() -> None:
    opened = {"closed_ts": None, "first_seen_ts": NIGHT, "last_seen_ts": NIGHT, "undetermined_since": NIGHT}
    reasons = (
        "no evidence of it for 120 s",
        "no evidence of it for 120 s after a gap in the recording",
        "it is part of finding 1a2b3c4d now",
        "later evidence shows that there is no such finding",
        "its recording names another cluster now",
    )
    seen = opened | {"undetermined_since": None}
    notes = [
        "",
        *(watch_note(each, 60, NIGHT.replace(tzinfo=dt.UTC) + dt.timedelta(days=1)) for each in (opened, seen)),
        "It is provisional until the nightly run.",
        "The nightly run has it as finding 1a2b3c4d.",
        "The nightly run has judged this time, and has its end.",
        "The nightly run has judged this time, and has no such finding.",
    ]
    explained = Explanation({"day": None}, "", "", EvidenceRows())
    texts = [
        _watch_text(opened, replace(explained, is_open=is_open, watch_note=note))
        for is_open in (True, False)
        for note in notes
    ]
    texts += [_watch_text({"closed_ts": NIGHT, "closed_reason": reason}, explained) for reason in reasons]
    assert not (missing := unknown(texts)), report(missing)
    assert all("2026-11-24 01:02:03 UTC" in ZH.text(text) for text in texts)
    assert not [text for text in texts if re.search("[a-z]{2,}", re.sub("nightly|watch|1a2b3c4d", "", ZH.text(text)))]


def test_values_are_kept() -> None:
    addresses = ["10.0.0.1:40312", "10.0.0.2:7"]
    largest = {"broker_name": "sorter-n", "queue_id": 1, "old": 141, "new": 79}
    values = {"consumer_group": "redirect", "topic": "address-change", "queues": 4, "back": 62, "ahead": 7}
    values |= {"largest": largest, "addresses": addresses, "again": 240, "recorded": True}
    assert written_summary("offset_reset", values, in_english()) == (
        "Group redirect on address-change: at least 4 queues reset, back by up to 62 messages, ahead by up to"
        " 7 messages (sorter-n/1: from 141 to 79), started by 10.0.0.1:40312 and 10.0.0.2:7; at least 240 messages"
        " delivered again."
    )
    text = written_summary("offset_reset", values, ZH)
    for value in ("redirect", "address-change", "4", "62", "7", "sorter-n/1", "141", "79", *addresses, "240"):
        assert value in text
    assert not re.search(r"[a-z]{3,} [a-z]{3,}", text), "no English is left"
    lag = {"broker_name": "b", "queues": 8, "lasted_s": 49 * 3600, "behind": 1}
    assert written_summary("revive_lag", lag, ZH).startswith(
        "Broker b 有 2 天 1 小时没有处理完 8 个 revive 队列：1 个检查点和确认在等待。"
    )
    still = {"consumer_group": "g", "topic": "t", "places": [{"broker_name": "b", "queue_id": 0}], "waiting": 2}
    assert "115 天 3 小时" in written_summary("stuck_queue", still | {"lasted_s": 9_946_800}, ZH)
    assert "2 小时 5 分钟" in written_summary("stuck_queue", still | {"lasted_s": 7_500}, ZH)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_stays_as_it_is(name: str) -> None:
    place = {"consumer_group": name, "topic": name, "broker_name": name, "client_id": name, "broker_id": 0}
    for kind in ("pull_expired", "duplicate_delivery", "broker_down", "consumer_lost", "torn_snapshot"):
        values = place | {"source_name": name, "pulls": 3}
        assert all(name in written_summary(kind, values, words) for words in (in_english(), ZH))


@pytest.mark.parametrize(
    "text",
    [
        "A sentence that nobody translated.",
        "Group g on t: something new; at most 3 messages delivered again.",
        "Group g received 3 messages of t more than once: a new reason.",
        "pay-topic",
        "Group",
    ],
)
def test_an_unknown_sentence_stays_english_as_a_whole(text: str) -> None:
    assert not ZH.knows(text)
    assert ZH.text(text) == text
