"""Names inside of sentences: the longest at each place, and nothing that is a part of a longer word."""

from __future__ import annotations

import pytest

from mqreplay.night.anonymise.sentences import Sentences

SENTENCES = Sentences(
    {
        "group": {"pay": "group-1", "none": "group-2", "it's": "group-3", "7": "group-4", "order": "group-5"},
        "topic": {
            "pay-topic": "topic-1",
            "order": "topic-2",
            "a.*(b": "topic-3",
            "订单": "topic-4",
            "%LMQ%x": "topic-5",
        },
        "broker": {"broker-a": "broker-1", "broker-7": "broker-2"},
        "client": {"10.0.0.1@7#9": "10.100.100.100@7#9"},
        "host": {"10.0.0.1": "10.100.100.100"},
    }
)


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("Group pay read pay-topic and payments.", "Group group-1 read topic-1 and payments."),
        ("9 in %RETRY%pay or %DLQ%pay", "9 in %RETRY%group-1 or %DLQ%group-1"),
        ("pay-other of broker-a/0, broker-a-1.", "group-1-other of broker-1/0, broker-1-1."),
        ("Group order read order of group order.", "Group group-5 read topic-2 of group group-5."),
        ("7 messages of group 7 and 70 more.", "7 messages of group group-4 and 70 more."),
        ("run `mqreplay at --group 'it'\"'\"'s'`", "run `mqreplay at --group group-3`"),
        ("topics a.*(b and %LMQ%x", "topics topic-3 and topic-5"),
        ("读 订单 了", "读 topic-4 了"),
        ("Group none has none.", "Group group-2 has group-2."),
        ("from 10.0.0.1@7#9 at 10.0.0.1:9876", "from 10.100.100.100@7#9 at 10.100.100.100:9876"),
        ("from 10.9.8.7:10911, fe80::1 and 2001:db8:0:0:0:0:0:5.", "from ***:10911, *** and ***."),
        ("at 02:51:30 of 2026-11-21, version 5.3.3", "at 02:51:30 of 2026-11-21, version 5.3.3"),
        ("id 7F0000011C714E0E2F2A679A05988A63", "id ***"),
        ("com.acme.shop.Listener at mq.acme.example failed", "*** at *** failed"),
        ("see https://rocketmq.apache.org/docs", "see https://rocketmq.apache.org/docs"),
        ("copy store.consumerOffset.json", "copy store.consumerOffset.json"),
        ("topics pay-to...", "topics group-1-to..."),
        ("topics pay-t, brok... (3 in all)", "topics group-1-t, ***... (3 in all)"),
        ("reason of broker-N", "reason of broker-N"),
        ("", ""),
    ],
)  # fmt: skip
def test_sentences(text: str, replaced: str) -> None:
    assert SENTENCES.replace(text) == replaced


def test_replacements_are_not_replaced_again() -> None:
    names = Sentences({"group": {"a1": "b1", "b1": "a1", "group": "b1"}})
    assert names.replace("group a1, group b1") == "b1 b1, b1 a1"


def test_a_name_of_which_reasons_show_the_digits_as_n() -> None:
    names = Sentences({"group": {"acme-17": "group-04"}})
    assert names.replace("the members of acme-N differ") == "the members of group-N differ"
    assert names.replace("the members of acmeN differ") == "the members of groupN differ"
