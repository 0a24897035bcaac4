"""Copies of tables' rows follow the commits of their run, and leave no file behind."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from mqreplay.lake.local_copies import Copy, LocalCopies
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import TableFile

TABLE = "silver.pull"
ONE, TWO, THREE = (dt.date(2026, 1, day) for day in (1, 2, 3))


@pytest.fixture
def copies() -> LocalCopies:
    return LocalCopies()


def file(folder: Path, cluster: str, day: dt.date | None, name: str = "a") -> TableFile:
    path = folder / f"{cluster}-{day}-{name}"
    path.touch()
    return TableFile(str(path), cluster, day, 1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_copy_has_what_it_covers(copies: LocalCopies, tmp_path: Path) -> None:
    of_a = file(tmp_path, "a", ONE)
    copies.keep(TABLE, Copy("a", (ONE, TWO), [of_a]))
    assert copies.files(TABLE, "a", (ONE, ONE)) == copies.files(TABLE, "a", (ONE, TWO)) == [of_a]
    for cluster, between in (("a", (ONE, THREE)), ("a", None), ("b", (ONE, ONE)), (None, (ONE, ONE))):
        assert copies.files(TABLE, cluster, between) is None
    assert copies.files("silver.send", "a", (ONE, ONE)) is None
    copies.keep(TABLE, Copy(None, None, []))
    assert copies.files(TABLE, None, None) == copies.files(TABLE, "b", (ONE, ONE)) == []


def test_partitions_that_are_replaced_are_replaced_in_copies(copies: LocalCopies, tmp_path: Path) -> None:
    first, second, other = (file(tmp_path, *of) for of in (("a", ONE), ("a", TWO), ("b", ONE)))
    copies.keep(TABLE, Copy(None, None, [first, second, other]))
    copies.keep(TABLE, Copy("a", (ONE, ONE), [first]))
    new, outside = file(tmp_path, "a", ONE, "new"), file(tmp_path, "a", THREE)
    copies.replace(TABLE, RowFilter("a", frozenset({ONE})), [new, outside])
    assert copies.files(TABLE, None, None) == [second, other, new, outside]
    assert copies.files(TABLE, "a", (ONE, ONE)) == [second, other, new, outside]
    assert not Path(first.path).exists()
    copies.replace(TABLE, None, [added := file(tmp_path, "b", ONE, "added")])
    assert copies.files(TABLE, None, None) == [second, other, new, outside, added]


def test_a_copy_of_some_days_takes_no_file_of_others(copies: LocalCopies, tmp_path: Path) -> None:
    copies.keep(TABLE, Copy("a", (ONE, TWO), []))
    inside = file(tmp_path, "a", TWO)
    copies.replace(TABLE, None, [inside, file(tmp_path, "a", THREE), file(tmp_path, "b", ONE)])
    assert copies.files(TABLE, "a", (ONE, TWO)) == [inside]
    assert names(tmp_path) == ["a-2026-01-02-a"]


def test_unknown_rows_end_the_copies_of_their_cluster(copies: LocalCopies, tmp_path: Path) -> None:
    of_a, of_b = file(tmp_path, "a", None), file(tmp_path, "b", None)
    for forgotten, kept in (("a", [of_b]), (None, None)):
        copies.keep(TABLE, Copy("a", None, [of_a]))
        copies.keep(TABLE, Copy("b", None, [of_b]))
        copies.forget(TABLE, forgotten)
        assert copies.files(TABLE, "a", None) is None
        assert copies.files(TABLE, "b", None) == kept
    assert names(tmp_path) == []
    copies.keep(TABLE, Copy(None, None, []))
    copies.forget(TABLE, "a")
    assert copies.files(TABLE, "b", None) is None
