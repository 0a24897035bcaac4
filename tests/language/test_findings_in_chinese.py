"""What findings say, in Chinese: every kind, every known issue, what watch adds, and names that are not translated."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

import pytest

from each_case import for_each
from language.chinese import ZH, report, unknown
from mqreplay.cli.explain import _watch_text
from mqreplay.cli.explanation import Explanation
from mqreplay.core import pull_refusal
from mqreplay.decisions import pull_refusals
from mqreplay.evidence.messages import failed_sends
from mqreplay.findings import duplicates, offsets, refused, sends
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.known_issues import KnownIssue, known_issues
from mqreplay.findings.registry import SHIPPED
from mqreplay.night.watched_findings import watch_note
from mqreplay.report.evidence_rows import EvidenceRows
from mqreplay.report.known_issue import known_issue_text
from mqreplay.report.next_step import advice_parts

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
    texts = [kind.example, kind.advice, kind.rule, kind.meaning]
    assert not (missing := unknown(texts)), report(missing)
    for text in texts:
        assert COMMANDS.findall(text) == COMMANDS.findall(ZH.text(text))
    names = {"GROUP": "my group", "TOPIC": "t", "CLIENT_ID": "c", "FINDING": "f00"}
    commands = [advice_parts(advice, names)[1::2] for advice in (kind.advice, ZH.text(kind.advice))]
    assert commands[0] == commands[1], "commands are filled in alike"


def test_what_is_added_to_a_summary_is_translated() -> None:
    for kind in SHIPPED.values():
        for added in ("1 message was delivered again.", "3 messages were delivered again."):
            whole = f"{kind.example} {added} It began at 2026-11-23 22:10:00 UTC, see the day before."
            assert not (missing := unknown([whole])), report(missing)


def test_each_reason_that_code_lists_is_translated() -> None:
    reasons = {
        *duplicates.WHY.values(),
        *offsets.CAUSE_TEXT.values(),
        *sends.UNSAFE_WHY.values(),
        *failed_sends.MENDS,
        *(each.words for each in pull_refusal.REFUSALS.values()),
        pull_refusals.OTHER,
    }
    advice = {*refused.MENDS.values(), refused.ADVICE, *sends.MEND.values(), *sends.UNSAFE_MEND.values()}
    missing = unknown({*reasons, *advice, sends.ADVICE, sends.WRITE_AGAIN})
    assert not missing, report(missing)


@pytest.mark.parametrize("cause", offsets.CAUSE_TEXT.values())
def test_several_causes_of_a_rewind_are_translated(cause: str) -> None:
    moved = "Group g on t: the offset of 4 queues went back by up to 41 messages (b/1: from 91 to 50), by "
    for causes in (cause, f"{cause} and a commit by a client", f"an offset reset and {cause}"):
        text = f"{moved}{causes}, sent from 10.0.0.1:1 and 10.0.0.2:2; about 161 messages delivered again."
        assert not (missing := unknown([text])), report(missing)


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
    summary = (
        "Group redirect on address-change: at least 4 queues reset, back by up to 62 messages, ahead by up to"
        " 7 messages (sorter-n/1: from 141 to 79), started by 10.0.0.1:40312 and 10.0.0.2:7; at most 240 messages"
        " delivered again."
    )
    text = ZH.text(summary)
    for value in ("redirect", "address-change", "4", "62", "7", "sorter-n/1", "141", "79", "10.0.0.1:40312", "240"):
        assert value in text
    assert ZH.knows(summary)
    assert not re.search(r"[a-z]{3,} [a-z]{3,}", text), "no English is left"
    storm = ZH.text("Broker b did not work off 8 revive queues for 49 h: 1 checkpoint and acknowledgements waited.")
    assert storm == "Broker b 有 49 小时没有处理完 8 个 revive 队列：1 个检查点和确认在等待。"
    assert "115 天 3 小时" in ZH.text("Group g stood still on t in b/0 for 115 d 3 h, with up to 2 messages waiting.")
    assert "2 小时 5 分钟" in ZH.text("Group g stood still on t in b/0 for 2 h 5 min, with up to 1 message waiting.")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_stays_as_it_is(name: str) -> None:
    texts = [
        f"Client {name} of group g did not pull 2 queues of t (b/2, b/3), and had not dropped them.",
        f"Group g received 275 messages of {name} more than once: its offsets had gone back.",
        f"The master of {name} did not answer for 88 s; 132 pulls of 11 groups went to a slave instead.",
        f"Consumer {name} of group g disappeared without unregistering while it held 2 queues: killed, crashed or"
        " cut off.",
        f"1 snapshot file of {name} was not whole and was ignored (a.json: torn).",
    ]
    for text in texts:
        assert name in ZH.text(text)
        assert ZH.knows(text) or ("; " in name and ZH.text(text) == text)


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
