"""A step that says which tables it may change commits to no other one: a rollback would leave its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqreplay.lake.journal import Journal
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import load_settings
from reliability.recordings import State, make_recordings
from tests_shared import run


def test_a_night_that_grows_and_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transaction, commit = Journal.transaction, Warehouse._commit
    allowed: list[frozenset[str]] = []
    committed: dict[str, bool] = {}

    @contextmanager
    def noted(journal: Journal, name: str, tables: Iterable[str] | None = None) -> Iterator[None]:
        listed = None if tables is None else list(tables)
        allowed.append(frozenset(journal._warehouse.contracts if listed is None else listed))
        with transaction(journal, name, listed):
            yield
        allowed.pop()

    def checked(warehouse: Warehouse, name: str, changes: Callable[[], Any]) -> None:
        committed[name] = committed.get(name, True) and bool(allowed) and name in allowed[-1]
        commit(warehouse, name, changes)

    monkeypatch.setattr(Journal, "transaction", noted)
    monkeypatch.setattr(Warehouse, "_commit", checked)
    recordings = make_recordings(tmp_path / "recordings")
    for state in (State(0), State(1), State(1, moved=True)):
        with recordings.placed(state) as recording:
            run("nightly", str(tmp_path / "w"), load_settings(), lambda what: None, recordings=[recording])
    assert len(committed) > 30
    assert [name for name, is_allowed in committed.items() if not is_allowed] == []
