"""`make bench-check` compares nights of two trees, in turns."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "tools" / "bench"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCH)  # it imports its neighbours as a script does
    return importlib.import_module("check")


def test_each_tree_begins_every_other_turn(check: ModuleType) -> None:
    order: list[str] = []
    trees = {"v1": Path("old"), "this tree": Path("new")}
    found = check.in_turns(trees, 3, lambda tree: order.append(tree.name) or float(len(order)))
    assert order == ["old", "new", "new", "old", "old", "new"]
    assert found == {"v1": [1.0, 4.0, 5.0], "this tree": [2.0, 3.0, 6.0]}
    assert doctest.testmod(check)[:2] == (0, 1)


@pytest.mark.long
def test_a_commit_and_this_tree_are_compared(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["check.py", "HEAD", "--nights", "XS", "--runs", "1"])
    check.main()
    found = re.fullmatch(r"XS: HEAD (\S+) CPU s, this tree (\S+) CPU s: (\S+)\n", capsys.readouterr().out)
    assert found is not None
    before, now, ratio = map(float, found.groups())
    assert ratio == pytest.approx(now / before, rel=0.05)
