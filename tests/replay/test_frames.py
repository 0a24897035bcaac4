"""Frames are handed to functions by the names of their parameters, and computed once."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.decisions.decision import by_name
from mqreplay.replay.frames import Frames, joined, outputs


@dataclass(frozen=True)
class Parts:
    """Two frames of one step."""

    small: int
    large: int


def parts(number: int) -> Parts:
    """Return a number, and ten times as much."""
    return Parts(number, 10 * number)


def added(small: int, large: int, more: int = 1, unknown: int = 0) -> int:
    """Return a sum."""
    return small + large + more + unknown


def test_a_step_runs_once_for_all_that_need_it() -> None:
    calls = []

    def counted(number: int) -> int:
        calls.append(number)
        return number

    frames = Frames(
        {"number": 3}, {"counted": by_name(counted), "sum": by_name(added, small="counted", large="counted")}
    )
    assert frames["sum"] == 7
    assert frames["counted"] == 3
    assert calls == [3]


def test_a_step_that_nothing_needs_does_not_run() -> None:
    def fails() -> int:
        raise AssertionError

    frames = Frames({"small": 1, "large": 2}, {"fails": by_name(fails)})
    assert frames.call(by_name(added)) == 4


def test_a_default_gives_way_to_a_value_of_its_name() -> None:
    assert Frames({"small": 1, "large": 2, "more": 5}, {}).call(by_name(added)) == 8


def test_the_fields_of_a_result_are_frames() -> None:
    steps = joined(outputs("parts", Parts), {"parts": by_name(parts)})
    frames = Frames({"number": 4}, steps)
    assert (frames["large"], frames["parts.small"]) == (40, 4)


def test_several_names_are_frames_to_append() -> None:
    one, other = (pl.DataFrame({"n": [number]}) for number in (1, 2))
    assert_frame_equal(Frames({"a": one, "b": other}, {"both": ("b", "a")})["both"], pl.DataFrame({"n": [2, 1]}))


def test_a_value_comes_before_a_step() -> None:
    assert Frames({"parts": Parts(7, 8)}, {"parts": by_name(parts)})["parts.small"] == 7


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"a": by_name(parts)}, "no step gives the frame number, which a needs"),
        ({"a": by_name(parts, number="b"), "b": "a"}, "frame a needs itself: a -> b -> a"),
    ],
)
def test_what_is_missing_is_named(steps: dict[str, object], message: str) -> None:
    with pytest.raises(LookupError, match=message):
        Frames({}, steps)["a"]  # type: ignore[arg-type]


def test_two_steps_for_one_frame_are_an_error() -> None:
    with pytest.raises(ValueError, match="two steps give \\['parts'\\]"):
        joined({"parts": by_name(parts)}, {"parts": "other"})
