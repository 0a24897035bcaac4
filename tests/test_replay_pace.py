"""How far a replay has come, as people who wait are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.replay_pace import MEMBERS, QUEUES, SHARES, ReplayPace

RUNNING = "1 of 4 tasks done"


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def pace(clock):
    return ReplayPace(lambda _: None, "replaying", lambda: RUNNING, clock=lambda: clock[0])


def test_nothing_is_guessed_before_anything_is_reached(pace):
    assert pace.line(15) == f"replaying: {RUNNING}"


def test_the_share_that_is_reached_tells_the_pace(pace, clock):
    clock[0] += 17
    pace.reached(QUEUES)
    assert pace.line(20) == f"replaying: 20%, about 80 s left; {RUNNING}"


def test_what_lies_ahead_is_not_over_however_long_it_takes(pace, clock):
    clock[0] += 17
    pace.reached(QUEUES)
    assert pace.line(230) == f"replaying: {SHARES[MEMBERS]:.0%}, about 770 s left; {RUNNING}"


def test_what_is_reached_out_of_turn_says_nothing_of_what_was_passed_over(pace, clock):
    clock[0] += 10
    pace.reached("gold.pull_route")
    assert pace.line(15) == f"replaying: {RUNNING}"
    for what in SHARES:
        if SHARES[what] < SHARES["gold.pull_route"]:
            pace.reached(what)
    assert pace.line(10).startswith("replaying: 66%, about 5 s left")


def test_the_last_is_not_over_before_it_is_reached(pace, clock):
    clock[0] += 85
    for what in SHARES:
        if what != "gold.finding":
            pace.reached(what)
    assert pace.line(200).startswith("replaying: 99%, about 2 s left")
    pace.reached("gold.queue_owner")  # of which no share is known
    assert pace.line(200).startswith("replaying: 99%")


def test_shares_rise_to_the_whole_and_name_tables_that_a_replay_writes():
    assert list(SHARES.values()) == sorted(SHARES.values())
    assert list(SHARES)[-1] == "gold.finding"
    written = Path(__file__).parents[1].joinpath("lib", "mqreplay", "decisions.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in written for name in SHARES if name.startswith("gold."))


def test_it_speaks_while_it_is_open(clock):
    said = []
    with ReplayPace(said.append, "replaying", lambda: RUNNING, every_s=0.01):
        while not said:
            pass
    assert said[0] == f"replaying: {RUNNING}"
