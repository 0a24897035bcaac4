"""Ids of lines that repeat within a file: numbered by their turn, however the lines are cut into blocks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mqreplay.ingest.repeats import Repeats

IDS = [f"{i:032x}" for i in range(6)] + ["f" * 32, "0123456789abcdef" * 2, "0123456789abcdef" + "0" * 16]


@given(st.lists(st.lists(st.sampled_from(IDS), max_size=12), max_size=6))
def test_each_repetition_gets_its_turn(blocks):
    repeats, turns, want = Repeats(), Counter(), []
    for block in blocks:
        for one in block:
            turns[one] += 1
            want.append(one if turns[one] == 1 else f"{one}-{turns[one]}")
    assert [name for block in blocks for name in repeats.named(block)] == want
