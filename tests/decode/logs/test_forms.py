"""Declared forms of log messages: a new message is one record."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest

from mqreplay.decode.logs.form import TYPES, Form, Messages
from mqreplay.decode.logs.log_line import BROKER_LINES, LOGS, read_log_line
from mqreplay.words.errors import DecodeError

FORMS = [form for forms in LOGS.values() for form in forms]


class BusyBroker(NamedTuple):
    """A message that no form of RocketMQ's logs has yet."""

    broker_name: str
    waited_ms: int


def test_a_new_log_message_is_one_record() -> None:
    form = Form(
        "[TIMEOUT_CLEAN_QUEUE]broker {broker_name} busy, waited {waited_ms:long}ms", BusyBroker, "BrokerFastFailure"
    )
    line = read_log_line(
        "2026-03-09 08:11:00 WARN t - [TIMEOUT_CLEAN_QUEUE]broker b busy, waited 203ms",
        Messages({**LOGS, BROKER_LINES: (*LOGS[BROKER_LINES], form)}),
    )
    assert line is not None
    assert (line.log, line.fact) == (BROKER_LINES, BusyBroker("b", 203))


@pytest.mark.parametrize(
    ("form", "message", "values"),
    [
        (Form("a {group}{? slow} b {:long}", None, ""), "a g slow b -7", {"group": "g"}),
        (Form("a {group}{? slow} b {:long}", None, ""), "a g b 7", {"group": "g"}),
        (Form("a {number:long} (b.*)", None, "", constants={"kind": "x"}), "a 7 (b.*)", {"number": 7, "kind": "x"}),
        (Form("a {number:long}", None, "", prefixes=("", "v2 ")), "v2 a 7", {"number": 7}),
        (Form("a {number:long}", None, ""), "a seven", None),
    ],
)
def test_the_values_of_a_form(form: Form, message: str, values: dict[str, object] | None) -> None:
    assert form.values_of(message) == values


def test_a_message_with_the_signs_of_a_form_is_damaged_if_its_text_differs() -> None:
    messages = Messages({"x": [Form("lock {group} by {client_id} OK", BusyBroker, "", signs=(" by ",), end="OK")]})
    with pytest.raises(DecodeError, match="truncated"):
        messages.read("lock ", "lock g by OK")
    assert messages.read("lock ", "lock g by c failed") is None
    assert messages.read("lock ", "lock g OK") is None


def test_a_start_belongs_to_one_log() -> None:
    with pytest.raises(ValueError, match="two logs"):
        Messages({"x": [Form("a {group}", None, "")], "y": [Form("a {topic}", None, "")]})


def test_each_form_is_whole_and_names_its_source() -> None:
    texts = Counter(form.text for form in FORMS)
    assert [text for text, count in texts.items() if count > 1] == []
    for form in FORMS:
        assert form.source[:1].isupper(), form.text
        assert all(version in "345" for version in form.versions.split(", ")), form.text
        assert form.values_of("") is None
        assert form.text.count("{") == form.text.count("}"), form.text


def test_the_types_capture_no_group() -> None:
    """Each field is one group of the pattern, so a type has none."""
    assert [name for name, kind in TYPES.items() if Form(f"{{x:{name}}}", None, "")._compiled[0].groups != 1] == []
