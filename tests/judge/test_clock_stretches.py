"""A client's clock, stretch by stretch: what is told of one that jumps, and what is no clock at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.client_clock import ClockSample
from mqreplay.core.clock_stretch import SURE_MS, clock_stretches
from mqreplay.judge.clock_stretches import Stretch, Words, stretches

MOST_MS = 60_000
COPY_MS = 5_000
HOUR = 3_600_000
WRITTEN_MS = 3_000  # a commit is shown by a copy of about so long after


def told(off: Callable[[int], int], copies: int = 100, unsure: int = 0) -> Words:
    """A word a copy, said by a clock that is ``off`` by so much at the moment of the copy."""
    shown = np.arange(copies) * COPY_MS + 1_000_000
    off_ms = np.array([off(number) - WRITTEN_MS for number in range(copies)])
    return Words(shown + off_ms, shown, off_ms, np.full(copies, unsure))


def skews(words: Words) -> list[int]:
    return [stretch.skew_ms for stretch in stretches(words, MOST_MS)]


def test_a_clock_that_is_right_or_nearly_so_is_not_told() -> None:
    assert skews(told(lambda n: 0)) == []
    assert skews(told(lambda n: 59_000)) == []
    assert skews(told(lambda n: 100_000, unsure=50_000)) == []


def test_a_clock_that_is_off_all_night_is_one_stretch() -> None:
    assert stretches(told(lambda n: HOUR), MOST_MS) == [Stretch(None, None, None, HOUR, 100)]
    assert skews(told(lambda n: HOUR, copies=3)) == [HOUR]
    assert skews(told(lambda n: HOUR, copies=2)) == []


@pytest.mark.parametrize("since", [6, 50, 94])
@pytest.mark.parametrize("by", [HOUR, -HOUR, 65_000])
def test_a_clock_that_jumps_has_a_stretch_before_and_one_after(since: int, by: int) -> None:
    words = told(lambda n: by if n >= since else 0)
    before, after = stretches(words, MOST_MS)
    assert (before.skew_ms, after.skew_ms) == (0, by)
    assert before.matches + after.matches == 100
    if by > 0:
        assert words.said[since - 1] < before.said_until_ms <= words.said[since]
    else:
        assert before.said_until_ms == words.said[since - 1] + 1
    assert (before.shown_until_ms, after.shown_from_ms) == (words.shown[since - 1], words.shown[since])


def test_a_clock_that_is_set_right_again_has_three() -> None:
    assert skews(told(lambda n: HOUR if 40 <= n < 60 else 0)) == [0, HOUR, 0]


def test_what_shows_for_a_moment_only_is_no_stretch() -> None:
    least = SURE_MS // COPY_MS
    assert skews(told(lambda n: HOUR if 40 <= n < 40 + least else 0)) == []
    assert skews(told(lambda n: HOUR if 40 <= n <= 40 + least else 0)) == [0, HOUR, 0]
    assert skews(told(lambda n: HOUR if n >= 100 - least else 0)) == []


def test_single_words_that_say_otherwise_end_no_stretch() -> None:
    wrong = {10, 11, 30, 50, 70, 71}
    assert skews(told(lambda n: 0 if n in wrong else HOUR)) == [HOUR]
    assert skews(told(lambda n: HOUR if n in wrong else 0)) == []


def test_commits_that_a_broker_lost_while_it_was_down_are_no_clock() -> None:
    """All of ten minutes are in the first copy after its return, a queue's last ones or those of many queues."""
    usual = told(lambda n: 0)
    back, said = usual.shown[50], np.linspace(usual.shown[50] - 600_000, usual.shown[50], 200).astype(np.int64)
    lost = Words(said, np.full(200, back), said - back, np.zeros(200, np.int64))
    pairs = zip(vars(usual).values(), vars(lost).values(), strict=True)
    assert skews(Words(*map(np.concatenate, pairs))) == []


def test_a_word_that_is_unsure_by_the_jump_itself_joins_no_stretches() -> None:
    usual = told(lambda n: HOUR if n >= 50 else 0)
    unsure = usual.unsure.copy()
    unsure[49:51] = HOUR // 2
    assert skews(Words(usual.said, usual.shown, usual.off, unsure)) == [0, HOUR]


def test_the_order_of_words_does_not_matter() -> None:
    words = told(lambda n: HOUR if n >= 50 else 0)
    found = stretches(words, MOST_MS)
    for seed in range(20):
        assert stretches(words.of(np.random.default_rng(seed).permutation(100)), MOST_MS) == found


@st.composite
def jumping_clocks(draw: st.DrawFn) -> list[ClockSample]:
    """Samples of a clock that is set a few times, some of them unsure or wrong, and some of one copy."""
    offs = st.sampled_from([0, 0, 60_000, 60_001, HOUR, -HOUR, -63_000])
    found: list[ClockSample] = []
    shown = 0
    for off in draw(st.lists(offs, min_size=1, max_size=4)):
        for _ in range(draw(st.integers(1, 9))):
            shown += draw(st.sampled_from([0, COPY_MS, COPY_MS, 4 * COPY_MS]))
            wrong = draw(st.sampled_from([0] * 8 + [HOUR, -14_999, 15_000, 15_001]))
            off_ms = off + wrong - WRITTEN_MS + draw(st.integers(-500, 500))
            found.append(ClockSample(shown + off_ms, shown, off_ms, draw(st.sampled_from([0, 0, 0, 1_000, HOUR // 2]))))
    return found


@given(jumping_clocks(), st.sampled_from([1, MOST_MS, HOUR - 1_000]))
def test_stretches_are_those_of_the_law(samples: list[ClockSample], most_ms: int) -> None:
    words = Words(*(np.array(column) for column in zip(*samples, strict=True)))
    found = [tuple(vars(stretch).values()) for stretch in stretches(words, most_ms)]
    assert found == [tuple(stretch) for stretch in clock_stretches(samples, most_ms)]
