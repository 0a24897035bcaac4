"""Results of tasks are merged field by field, in the order of the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.replay.task_results import FRAMES_AT_ONCE, MergedEarly, merged


@dataclass(frozen=True)
class Inner:
    """Frames of a part of a result."""

    breaks: pl.DataFrame


@dataclass(frozen=True)
class Outer:
    """Frames, and a part with frames of its own."""

    inner: Inner
    signs: pl.DataFrame


def result(number: int) -> Outer:
    """Return a result whose frames have the number."""
    return Outer(Inner(pl.DataFrame({"n": [number]})), pl.DataFrame({"m": [-number]}))


def test_nested_results_are_merged_in_order() -> None:
    whole = merged([result(3), result(1), result(2)])
    assert_frame_equal(whole.inner.breaks, pl.DataFrame({"n": [3, 1, 2]}))
    assert_frame_equal(whole.signs, pl.DataFrame({"m": [-3, -1, -2]}))


def test_one_result_is_the_whole() -> None:
    assert_frame_equal(merged([result(5)]).signs, pl.DataFrame({"m": [-5]}))


def test_frames_of_other_columns_are_an_error() -> None:
    other = Outer(Inner(pl.DataFrame({"n": ["text"]})), pl.DataFrame({"m": [1]}))
    with pytest.raises(pl.exceptions.PolarsError):
        merged([result(1), other])


@pytest.mark.parametrize("count", [1, FRAMES_AT_ONCE - 1, FRAMES_AT_ONCE, 3 * FRAMES_AT_ONCE + 1])
def test_frames_merged_early_are_those_merged_at_the_end(count: int) -> None:
    frames = [pl.DataFrame({"name": ["a", "bc"[number % 2]], "n": [number, 1]}) for number in range(count)]

    def added_up(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        assert len(parts) <= FRAMES_AT_ONCE
        return pl.concat(parts).group_by("name").agg(pl.col("n").sum()).sort("name")

    early = MergedEarly(added_up)
    for frame in frames:
        early.add(frame)
    assert_frame_equal(early.rows(), pl.concat(frames).group_by("name").agg(pl.col("n").sum()).sort("name"))
