"""The twin of status_windows against the law: row by row the same, to the last bit of a double."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from bench.bind_faces import night_of_queues
from mqreplay.bind import functions
from mqreplay.core.status_windows import STATUSES, status_windows
from mqreplay.decisions import status_windows as twin
from mqreplay.decisions.status_windows import WINDOWS, status_windows_arrow

LIMIT = 2**44
LISTS, LONG = pa.list_(pa.int64()), pa.int64()
KINDS = [LISTS, LISTS, LISTS, LISTS, LONG, LONG]
Row = tuple[Any, ...]
MINUTE = 60_000
BEATS = range(1_000, 180_000, 1_000)


def columns(rows: Sequence[Row]) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(KINDS)]


def texts(*arguments: pa.Array) -> list[str]:
    """As text: equal only where every bit is."""
    found = status_windows_arrow(*arguments)
    found.validate(full=True)
    assert found.type == WINDOWS
    return [None if row is None else repr([tuple(window.values()) for window in row]) for row in found.to_pylist()]


def law(row: Row) -> str | None:
    return None if None in row else repr([tuple(window) for window in status_windows(*row)])


@pytest.fixture
def without_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays answer, not the law."""
    monkeypatch.setattr(twin.law, "status_windows", None)


@st.composite
def rows(draw: st.DrawFn, least: tuple[int, int], edges: Sequence[int] = ()) -> Row:
    """Few numbers, so that times and offsets are often equal; ``least`` steps in time of commits and of ends."""
    drawn: list[list[int]] = []
    for least_step, start, base in ((least[0], st.integers(-5, 40), 0), (least[1], st.integers(-30, 20), 10)):
        length = draw(st.integers(0, 40))
        steps = draw(st.lists(st.integers(least_step, 5), min_size=length, max_size=length))
        if draw(st.booleans()):
            moves = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, -1, -9]), min_size=length, max_size=length))
            offsets = list(itertools.accumulate(moves, initial=base))[1:]
        else:
            few = st.integers(0, 6) | st.integers(0, 40) | st.sampled_from([1, *edges])
            offsets = draw(st.lists(few, min_size=length, max_size=length))
        drawn += [list(itertools.accumulate(steps, initial=draw(start)))[1:], offsets]
    return (*drawn, draw(st.integers(1, 25)), draw(st.integers(-20, 150)))


REGULAR = rows((0, 1))
# Times that fall or stand, and numbers at the limit.
ANY = rows((-1, -1), (LIMIT - 1, LIMIT, 1 - LIMIT, -LIMIT))


@given(st.lists(REGULAR, max_size=8), st.integers(0, 3))
def test_every_row_is_answered_as_by_the_law(drawn: list[Row], skipped: int) -> None:
    want = [law(row) for row in drawn[skipped:]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.law, "status_windows", None)
        assert texts(*(column.slice(skipped) for column in columns(drawn))) == want


@given(st.lists(REGULAR, min_size=2, max_size=8), st.integers(1, 200))
def test_pieces_change_nothing(drawn: list[Row], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin, "PIECE", piece)
        assert texts(*columns(drawn)) == [law(row) for row in drawn]


@given(st.lists(REGULAR | ANY, max_size=8), st.integers(0, 3))
def test_what_the_arrays_do_not_hold_for_is_answered_too(drawn: list[Row], skipped: int) -> None:
    assert texts(*(column.slice(skipped) for column in columns(drawn))) == [law(row) for row in drawn[skipped:]]


def test_a_made_up_night(without_the_law: None) -> None:
    night = night_of_queues(40, 7)
    found = texts(*night)
    assert found == [law(row) for row in zip(*(column.to_pylist() for column in night), strict=True)]
    assert [status for status in STATUSES if not any(f"'{status}'" in row for row in found)] == []


@pytest.mark.parametrize(
    "row",
    [
        (range(5_000, 60_000, 5_000), range(5, 60, 5), BEATS, range(1, 180), MINUTE, 170_000),
        (range(5_000, 120_000, 5_000), [30] * 23, range(1_000, 120_000, 1_000), range(41, 160), MINUTE, 119_000),
        ([1_000, 6_000], [5, 6], [], [], MINUTE, 7_000),
        ([50_000], [150], [0, 40_000, 59_000], [100, 200, 300], MINUTE, 59_000),
        ([50_000], [60], [10_000, 20_000, 30_000], [100, 110, 200], MINUTE, 59_000),
        ([60_000], [150], [0, 60_000, 120_000], [100, 200, 300], MINUTE, 240_000),
        ([10_000, 20_000, 30_000], [5, 6, 7], [9_000, 19_000, 29_000], [6, 9, 12], 40_000, 39_999),
        ([], [], [1], [1], 1_000, 9_000),
        ([5_000], [1], [1], [1], 1_000, 4_999),
        ([5_000], [1], [1], [1], 1_000, 5_000),
        ([LIMIT - 2, LIMIT - 1], [1 - LIMIT, LIMIT - 1], [LIMIT - 3, LIMIT - 1], [0, LIMIT - 1], 9, LIMIT - 1),
        # The lag falls, though not all lags are known.
        ([1, 5, 6, 7], [1, 2, 3, 9], [4, 5, 6, 7], [9, 20, 20, 25], 10, 9),
        # Recovered by the last of the ten, and by none of them.
        (range(11), [9, 9, *[1] * 8, 9], range(11), [30] * 11, 20, 11),
        (range(12), [9, 9, *[1] * 9, 9], range(12), [30] * 12, 20, 12),
        (range(11), [9, 9, *[1] * 8, 8], range(11), [30] * 11, 20, 11),
        # The tenth end from the last was not past the commit, and then the eleventh.
        ([1], [5], range(1, 12), [5, 5, *[9] * 9], 20, 12),
        ([1], [5], range(1, 13), [5, 5, *[9] * 10], 20, 13),
        # Asked before the end was there.
        ([5_000], [150], [1, 50_000], [100, 200], MINUTE, 12_000),
        ([1 - LIMIT], [LIMIT - 1], [1 - LIMIT, 2 - LIMIT], [1 - LIMIT, LIMIT - 1], LIMIT - 1, LIMIT - 1),
    ],
)
def test_examples(without_the_law: None, row: Row) -> None:
    row = tuple(list(each) if isinstance(each, range) else each for each in row)
    beside = ([7, 8], [1, 2], [6, 7, 8], [4, 5, 6], 3, 30)
    assert texts(*columns([beside, row, beside])) == [law(beside), law(row), law(beside)]


def test_a_window_that_ends_past_the_limit_ends_before_the_next_row(without_the_law: None) -> None:
    late = ([LIMIT - 1], [1], [LIMIT - 1], [1], LIMIT - 1, LIMIT - 1)
    early = ([1 - LIMIT], [1], [1 - LIMIT, 2 - LIMIT], [1, 2], LIMIT - 1, 0)
    assert texts(*columns([late, early])) == [law(late), law(early)]


@pytest.mark.parametrize(
    "odd",
    [
        ([7, 6], [1, 2], [6, 7], [4, 5], 3, 30),
        ([7, 8], [1, 2], [7, 7], [4, 5], 3, 30),
        ([7, 8], [1, 2], [7, 6], [4, 5], 3, 30),
        ([-LIMIT], [1], [6, 7], [4, 5], LIMIT - 1, 30),
        ([7, 8], [1, LIMIT], [6, 7], [4, 5], 3, 30),
        ([7, 8], [1, 2], [6, LIMIT], [4, 5], 3, 30),
        ([7, 8], [1, 2], [6, 7], [-LIMIT, 5], 3, 30),
        ([7, 8], [1, 2], [6, 7], [4, 5], LIMIT, 30),
        ([7, 8], [1, 2], [6, 7], [4, 5], 3, -LIMIT),
    ],
)
def test_the_law_is_asked_for_just_those_rows(monkeypatch: pytest.MonkeyPatch, odd: Row) -> None:
    asked = []
    monkeypatch.setattr(twin.law, "status_windows", lambda *row: asked.append(row) or status_windows(*row))
    regular = ([7, 7], [1, 2], [6, 7], [4, 3], 3, 30)
    assert texts(*columns([regular, odd, regular])) == [law(regular), law(odd), law(regular)]
    assert asked == [odd]


def test_a_thing_that_is_null_has_no_windows() -> None:
    row = ([1], [1], [1], [1], 10, 20)
    nulls = [(*row[:place], None, *row[place + 1 :]) for place in range(len(row))]
    assert texts(*columns([row, *nulls, row])) == [law(row), *[None] * len(nulls), law(row)]
    # A list that is null may still have items behind it.
    items = pa.array([1, 9, 3, 3])
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), items, mask=pa.array([True, False]))
    others = [pa.array([[1, 1], [1, 1]], LISTS), *columns([row, row])[2:]]
    assert texts(hidden, *others) == [None, law(([3, 3], [1, 1], *row[2:]))]


def test_a_null_among_the_offsets_is_the_laws_to_judge() -> None:
    assert texts(*columns([([], [], [1], [None], 10, 20)])) == ["[]"]
    with pytest.raises(TypeError):
        texts(*columns([([1], [None], [1], [1], 10, 20)]))


def test_a_window_of_no_length_is_no_window() -> None:
    with pytest.raises(ZeroDivisionError):
        texts(*columns([([1], [1], [1], [1], 0, 20)]))
    assert texts(*columns([([1], [1], [1], [1], -10, -20)])) == ["[]"]


def test_no_rows_at_all() -> None:
    assert texts(*columns([])) == []


@pytest.mark.parametrize("row", [([1, 2], [1], [1], [1], 1_000, 500), ([1], [1], [1, 2], [1], 1_000, 500)])
def test_every_time_has_its_offset(row: Row) -> None:
    with pytest.raises(ValueError, match="zip"):
        texts(*columns([([1], [1], [1], [1], 10, 20), row]))
    assert texts(*columns([([], *row[1:])])) == ["[]"], "as the law, which then looks no further"


def test_spark_gets_the_type_of_the_law() -> None:
    kind = from_arrow_type(WINDOWS)
    assert kind.simpleString() == functions.status_windows.value_type.lower().replace(" ", "")
    assert to_arrow_type(kind).equals(WINDOWS, check_metadata=True)
