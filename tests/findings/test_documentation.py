"""Every kind of finding has what docs/findings.md and `mqreplay explain` show of it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from docs.findings import kinds_by_topic, section
from each_case import for_each
from mqreplay import findings
from mqreplay.decode.recording.advice import EVIDENCE
from mqreplay.findings.every import KINDS
from mqreplay.findings.kind import FindingKind
from mqreplay.settings import Settings

COMMAND_OR_LOG = re.compile(r"`[a-z]\w*( [^`]+)?`|\b\w+\.log\b")
EVERY_KIND = for_each(KINDS.values())


@EVERY_KIND
def test_texts_are_complete(kind: FindingKind) -> None:
    assert [text for text in map(kind.text, ("meaning", "rule", "advice")) if not text.endswith(".")] == []
    assert kind.text("example")


@EVERY_KIND
def test_advice_names_a_command_or_a_log(kind: FindingKind) -> None:
    assert COMMAND_OR_LOG.search(kind.text("advice"))


def test_commands_about_a_group_or_a_topic_name_the_name_servers() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(findings.__file__).parent.glob("*.toml")]
    commands = {command for text in texts for command in re.findall(r"`(mqadmin \w+ -[cgt] [^`]*)`", text)}
    assert commands
    assert [command for command in commands if " -n NAMESRV" not in command] == []


@EVERY_KIND
def test_thresholds_are_settings(kind: FindingKind) -> None:
    for key in kind.thresholds:
        name, _, setting = key.partition(".")
        assert setting in {each.name for each in dataclasses.fields(getattr(Settings(), name))}


@EVERY_KIND
def test_causes_and_required_evidence_exist(kind: FindingKind) -> None:
    assert {cause.name for cause in kind.causes} <= KINDS.keys()
    assert {need.kind for need in kind.needs} <= EVIDENCE.keys()


def test_the_page_has_every_kind_once() -> None:
    assert sorted(each.name for kinds in kinds_by_topic().values() for each in kinds) == sorted(KINDS)


def test_a_section_has_all_parts() -> None:
    stuck = dataclasses.replace(
        KINDS["stuck_queue"],
        meaning="The group makes no progress.",
        thresholds=("findings.stuck_s",),
        follows="ProcessQueue#removeMessage",
        example="12 messages wait.",
    )
    text = section(stuck)
    assert text.startswith("### stuck_queue\n\nThe group makes no progress.\n\n**Rule.** ")
    assert "**RocketMQ.** `ProcessQueue#removeMessage`" in text
    assert "- pulls (`pull_log`): capture the brokers' ports" in text
    assert "- [`findings.stuck_s`](settings.md#findings), default `60` s: a queue with messages" in text
    assert "- [slave_pull](#slave_pull): same broker, from 30 s before its start to 120 s after its end" in text
    assert text.endswith("**Example.** 12 messages wait.")
    assert "**Can cause.** [duplicate_delivery](#duplicate_delivery)" in section(KINDS["offset_beyond_max"])


def test_a_kind_without_required_files_says_so() -> None:
    assert "No single kind of file is required" in section(dataclasses.replace(KINDS["stuck_queue"], needs=()))
