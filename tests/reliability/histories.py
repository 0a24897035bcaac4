"""Runs in this process, one after the other on one warehouse, and the tables that they leave: what is right."""

from __future__ import annotations

import shutil
from pathlib import Path

from mqreplay.settings import load_settings
from reliability.recordings import Recordings, State
from reliability.table_rows import Tables, read_tables
from tests_shared import run

History = tuple[State, ...]


class Histories:
    """Clean runs, each done once: a history is the states that a warehouse was given, in order."""

    def __init__(self, recordings: Recordings, folder: Path, step: str) -> None:
        """``step`` is ingest or nightly; ``folder`` takes the warehouses."""
        self.recordings, self.step = recordings, step
        self._folder = folder
        self._tables: dict[History, Tables] = {}

    def run(self, root: Path, state: State) -> None:
        """Run the step on a warehouse, with the recording in this state."""
        with self.recordings.placed(state) as recording:
            run(self.step, str(root), load_settings(), lambda what: None, recordings=[recording])

    def warehouse(self, history: History) -> Path:
        """Return the warehouse that these runs left. Copy it before you change it."""
        root = self._folder / ("-".join(f"{s.content}{'m' if s.moved else ''}" for s in history) or "none")
        if history and not root.exists():
            made = self._folder / "made"
            shutil.rmtree(made, ignore_errors=True)  # of a run that failed
            if len(history) > 1:
                shutil.copytree(self.warehouse(history[:-1]), made)
            self.run(made, history[-1])
            made.rename(root)
        return root

    def tables(self, *history: State) -> Tables:
        """Return the rows of all tables that these runs left."""
        if history not in self._tables:
            self._tables[history] = read_tables(self.warehouse(history))
        return self._tables[history]
