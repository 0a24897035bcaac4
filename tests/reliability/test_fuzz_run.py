"""The fuzzer itself: it sees every way in which an input can fail, and gives the same inputs again."""

from __future__ import annotations

import os
import signal

import pytest

from mqreplay.words.errors import DecodeError
from reliability.fuzz_run import Target, fuzz

SEEDS = (b'{"a":1}', b'{"b":[2,3]}')


def refuse(data: bytes) -> None:
    raise DecodeError("torn", "as always")


def raise_another(data: bytes) -> None:
    raise KeyError(data)


def loop(data: bytes) -> None:
    while True:
        pass


def fill(data: bytes) -> None:
    bytearray(8 * 1024**3)  # more than the process may have freed and kept for itself


def die(data: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def second(failing):
    """Fails on the second input alone, and not as the worker begins."""
    seen = []

    def run(data: bytes) -> None:
        seen.append(data)
        if len(seen) == len(SEEDS) + 2:
            failing(data)

    return run


@pytest.mark.parametrize(
    ("failing", "why"),
    [(raise_another, "KeyError"), (loop, "more than 1 s"), (fill, "more than 256 MiB"), (die, "the process died")],
)
def test_an_input_that_fails_is_named(failing, why):
    report = fuzz([Target("t", SEEDS, second(failing))], inputs=3, seed=7)
    assert len(report.failures) == 1
    assert report.failures[0].startswith("t, seed 7, input 1: ")
    assert why in report.failures[0]


def test_our_errors_are_no_failures_unless_none_is_allowed():
    assert fuzz([Target("t", SEEDS, refuse)], inputs=20, seed=7, processes=2).failures == []
    assert "DecodeError: torn" in fuzz([Target("t", SEEDS, refuse, ())], inputs=20, seed=7).failures[0]


def test_inputs_are_the_same_each_time_and_differ():
    target = Target("t", SEEDS, refuse, most_bytes=1000)
    inputs = [target.input(7, number) for number in range(300)]
    assert inputs == [target.input(7, number) for number in range(300)]
    assert len(set(inputs)) > 200
    assert max(map(len, inputs)) == 1000
    assert inputs[:2] == list(SEEDS)
