"""Connections that a capture of several interfaces has twice: before and after a translation of addresses."""

from __future__ import annotations

import pytest

from decode.capture.wire import Talk, command, heartbeat
from mqreplay.decode.capture import translated
from mqreplay.decode.capture.calls import Calls
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.packets import Segment
from mqreplay.decode.capture.translated import NEAR_US, TranslatedCalls

PULL = {"consumerGroup": "g", "topic": "t", "queueId": "0", "queueOffset": "7"}


def talk_of(client_id: str, address: str, opaque: int = 2, after_us: int = 0) -> list[Segment]:
    """A heartbeat and a pull of a client."""
    talk = Talk(client=address)
    talk.now_us += after_us
    return [
        *(talk.ask(heartbeat(client_id, opaque - 1)), talk.answer(command(0, opaque - 1, flag=1))),
        *(talk.ask(command(11, opaque, ext=PULL)), talk.answer(command(0, opaque, flag=1))),
    ]


def pulls_of(*talks: list[Segment]) -> int:
    sent = sorted((one for talk in talks for one in talk), key=lambda one: one.ts_us)
    names, seen = Names(Calls(sent)), TranslatedCalls()
    calls = [call for call in Calls(sent) if not seen.repeats(call, names.client(call.connection))]
    return sum(call.request.code == 11 for call in calls)


def test_a_pull_before_and_after_translation_is_one() -> None:
    assert pulls_of(talk_of("c", "10.0.0.1:40000"), talk_of("c", "192.168.0.1:61000", after_us=30)) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(talk_of("other", "10.0.0.2:40000"), id="another client"),
        pytest.param(talk_of("c", "10.0.0.1:40001", opaque=4), id="another request"),
        pytest.param(talk_of("c", "10.0.0.1:40001", after_us=2 * NEAR_US), id="a client with this id starts later"),
    ],
)
def test_other_pulls_of_the_same_offset_count(other: list[Segment]) -> None:
    assert pulls_of(talk_of("c", "10.0.0.1:40000"), other) == 2


def test_brokers_number_their_requests_each() -> None:
    """Two brokers notify a client of a new member at once, with the same number (in the sample: four times)."""
    talks = [Talk("10.0.0.1:40000", "10.0.0.8:10911"), Talk("10.0.0.1:40001", "10.0.0.9:10911")]
    sent = [segment for talk in talks for segment in (talk.ask(heartbeat("c", 1)), talk.answer(command(40, 7, 2)))]
    names, seen = Names(Calls(sent)), TranslatedCalls()
    notified = [call for call in Calls(sent) if call.request.code == 40]
    assert [seen.repeats(call, names.client(call.connection)) for call in notified] == [False, False]


def test_only_the_last_calls_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translated, "MOST_RECENT", 1)
    first, second = talk_of("c", "10.0.0.1:40000"), talk_of("c", "192.168.0.1:61000", after_us=5_000)
    assert pulls_of(first, talk_of("d", "10.0.0.2:40000", after_us=2_500), second) == 3
