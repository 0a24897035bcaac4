"""Requests and answers from segments: late, repeated, cut, lost, or older than the capture."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decode.capture.wire import BROKER, CLIENT, Talk, command, rocketmq_command
from mqreplay.decode.capture.calls import ASKED_CLOSED, ASKER_CLOSED, LATE_US, STILL_OPEN, Calls
from mqreplay.decode.capture.packets import Segment


def commands_of(calls):
    return [
        (c.asker, c.request.code, c.request.opaque, c.request.body, c.response and (c.response.code, c.response.body))
        for c in calls
    ]


def a_talk(make=command) -> list[tuple[str, bytes]]:
    """Who says what."""
    return [
        (CLIENT, make(11, 1, ext={"topic": "t"})),
        (CLIENT, make(15, 2, flag=2, ext={"commitOffset": "5"})),
        (BROKER, make(40, 7, flag=2, ext={"consumerGroup": "g"})),
        (CLIENT, make(14, 3)),
        (BROKER, make(0, 3, flag=1, ext={"offset": "9"})),
        (BROKER, make(0, 1, flag=1, body=b"m" * 300)),
        (CLIENT, make(11, 4)),
    ]


WHOLE = [
    (CLIENT, 15, 2, b"", None),
    (BROKER, 40, 7, b"", None),
    (CLIENT, 14, 3, b"", (0, b"")),
    (CLIENT, 11, 1, b"", (0, b"m" * 300)),
    (CLIENT, 11, 4, b"", None),  # the capture ended before its answer
]


@pytest.mark.parametrize("make", [command, rocketmq_command])
def test_requests_meet_their_answers(make):
    talk = Talk()
    calls = Calls([talk.say(who, data) for who, data in a_talk(make)])
    assert commands_of(calls) == WHOLE
    assert (calls.cut, calls.connections) == (0, 1)


def test_times_are_of_the_first_byte_asked_and_the_last_answered():
    talk = Talk()
    ask, answer = command(11, 1), command(0, 1, flag=1, body=b"x" * 10)
    sent_data = [talk.ask(ask[:20]), talk.ask(ask[20:]), talk.answer(answer[:-1]), talk.answer(answer[-1:])]
    (call,) = Calls(sent_data)
    assert (call.request.begin_us, call.request.end_us) == (sent_data[0].ts_us, sent_data[1].ts_us)
    assert (call.response.begin_us, call.response.end_us) == (sent_data[2].ts_us, sent_data[3].ts_us)


@given(st.data())
def test_however_it_is_cut_into_segments_and_sent_again(data):
    talk, sent = Talk(), [Talk().ask(b"", begins=True)]
    talk.ask(b"", begins=True)
    sent.append(talk.answer(b"", begins=True))
    for who, sent_data in a_talk():
        cuts = sorted(data.draw(st.lists(st.integers(0, len(sent_data)), max_size=4)))
        sent += [talk.say(who, sent_data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(sent_data)], strict=True)]
    # Sent again, and two neighbours the other way round, as packets go; a piece of two that overlap them.
    shuffle = random.Random(data.draw(st.integers(0, 99)))
    for place in range(2, len(sent) - 1):
        if shuffle.random() < 0.3 and sent[place].source == sent[place + 1].source:
            sent[place], sent[place + 1] = sent[place + 1], sent[place]
        if shuffle.random() < 0.3:
            sent.insert(shuffle.randrange(place, len(sent)), sent[place])
    calls = Calls(sent)
    assert sorted(commands_of(calls), key=str) == sorted(WHOLE, key=str)
    assert calls.cut == 0


def test_a_segment_that_overlaps_the_one_before_says_only_what_is_new():
    talk, sent_data = Talk(), command(11, 1) + command(15, 2, flag=2)
    first = talk.ask(sent_data)
    begin = first.seq
    parts = [
        Segment(first.ts_us, CLIENT, BROKER, (begin + a) % 2**32, False, False, sent_data[a:b], b - a)
        for a, b in ((0, 40), (10, len(sent_data)))
    ]
    assert [c[1] for c in commands_of(Calls(parts))] == [15, 11]


def test_a_capture_that_begins_in_the_middle_takes_what_begins_after():
    talk, sent_data = Talk(), command(11, 1, body=b"z" * 100)
    calls = Calls([talk.ask(sent_data[30:]), talk.ask(command(15, 2, flag=2)), talk.answer(command(0, 1, flag=1))])
    assert [c[1] for c in commands_of(calls)] == [15], "the answer to a request that nobody saw tells nothing"


@pytest.mark.parametrize(("kept", "there"), [(None, 100), (150, 53), (50, None), (4, None)])
def test_a_body_that_tcpdump_cut_is_known_by_its_length(kept, there):
    talk, sent_data = Talk(), command(34, 1, body=b"b" * 100)
    assert len(sent_data) == 197
    start = talk.ask(b"", begins=True)
    calls = Calls([start, talk.ask(sent_data, kept=kept), talk.ask(command(15, 2, flag=2))])
    found = {c.request.code: c.request for c in calls}
    assert calls.cut == (there is None)
    assert found.keys() == ({15} if there is None else {15, 34})
    if there is not None:
        assert (found[34].body_bytes, len(found[34].body), found[34].is_whole) == (100, there, kept is None)


def test_two_commands_in_a_segment_that_is_cut_in_the_first_lose_the_second_alone():
    talk = Talk()
    both = command(34, 1, body=b"b" * 100) + command(11, 2)
    calls = Calls([talk.ask(both, kept=len(both) - 120), talk.ask(command(15, 3, flag=2))])
    assert sorted(c.request.code for c in calls) == [15, 34]
    assert calls.cut == 1


def test_lost_bytes_are_awaited_and_then_left_out():
    talk = Talk()
    talk_begins = talk.ask(command(11, 1))
    talk.ask(command(11, 2))  # lost
    after = [talk.ask(command(15, n, flag=2)) for n in range(3, 400)]
    calls = Calls([talk_begins, *after])
    found = [c.request.opaque for c in calls]
    assert sorted(found) == [1, *range(3, 400)]
    assert calls.cut == 1


def test_a_port_used_again_is_another_connection():
    first, second = Talk(), Talk(seq={CLIENT: 5_000_000}, now_us=Talk().now_us + 10**6)
    sent = [first.ask(b"", begins=True), first.ask(command(11, 1)), second.ask(b"", begins=True)]
    sent += [second.ask(command(11, 1)), second.answer(command(0, 1, flag=1))]
    calls = Calls(sent)
    assert [(c.connection, c.response is None) for c in calls] == [(1, True), (2, False)]
    assert calls.connections == 2


def test_requests_of_an_ended_connection_are_returned_before_those_of_the_next():
    talk, later = Talk(), Talk(seq={CLIENT: 5_000_000})
    sent = [talk.ask(command(11, 1)), talk.ask(b"", ends=True), talk.answer(b"", ends=True), later.ask(command(11, 9))]
    assert [(c.connection, c.request.opaque) for c in Calls(sent)] == [(1, 1), (2, 9)]


def ended_talk() -> list[Segment]:
    """A connection from its SYN to its end, with a pull and its answer."""
    talk = Talk()
    return [
        *(talk.ask(b"", begins=True), talk.answer(b"", begins=True)),
        *(talk.ask(command(11, 1)), talk.answer(command(0, 1, flag=1))),
        *(talk.ask(b"", ends=True), talk.answer(b"", ends=True)),
    ]


@given(st.data())
def test_a_call_counts_once_however_late_its_packets_come_again(data):
    """As of a second interface or host, also after the end of the connection."""
    sent = ended_talk()
    again = [(data.draw(st.integers(place, len(sent))), one) for place, one in enumerate(sent)]
    order = sorted([*enumerate(sent), *again], key=lambda placed: placed[0])
    calls = Calls([one for _, one in order])
    assert commands_of(calls) == [(CLIENT, 11, 1, b"", (0, b""))]
    assert calls.connections == 1


def test_ports_used_again_later_are_another_connection_even_without_its_syn():
    first, later = ended_talk(), Talk(now_us=Talk().now_us + 2 * LATE_US)
    calls = Calls([*first, later.ask(command(11, 2))])
    assert [(c.connection, c.request.opaque) for c in calls] == [(1, 1), (2, 2)]


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=60), st.integers(0, 20)), max_size=30))
def test_bytes_that_are_no_commands_are_no_calls_and_no_error(pieces):
    talk = Talk()
    sent = [
        talk.say(CLIENT if mine else BROKER, data, kept=max(len(data) - lacking, 0)) for mine, data, lacking in pieces
    ]
    for call in Calls(sent):
        assert call.request.code < 2**31


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ((CLIENT, BROKER), ASKER_CLOSED),  # a JVM that is killed while a pull waits
        ((BROKER, CLIENT), ASKED_CLOSED),  # a broker that is killed
        ((CLIENT,), ASKER_CLOSED),  # RST alone
        ((), STILL_OPEN),
    ],
)
def test_who_ended_the_connection_of_a_request_without_an_answer(ends, why):
    talk = Talk()
    sent = [
        talk.ask(command(11, 1)),
        talk.ask(command(15, 2, flag=2)),
        *(talk.say(end, b"", ends=True) for end in ends),
    ]
    assert {c.request.code: c.unanswered for c in Calls(sent)} == {11: why, 15: None}, "one-way wants no answer"
