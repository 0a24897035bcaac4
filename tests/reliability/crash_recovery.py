"""What must hold of a crash image: its tables can be read, and the next run makes them what one clean run makes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from reliability.crash_images import Image, Wanted, take_images
from reliability.histories import Histories
from reliability.recordings import State
from reliability.table_rows import difference, left_by_maintenance, read_tables, table_names

RECOVERIES = ("same", "grown", "moved")


@dataclass(frozen=True)
class Scenario:
    """A run of the recording with ``content``, on a warehouse that holds what was before ``content``, or nothing.

    ``rounds``: before that, the recording had the first two contents in turn, so many times.
    """

    step: str
    content: int
    rounds: int = 0

    @property
    def before(self) -> tuple[State, ...]:
        """The runs that ended well before this one."""
        return (State(0), State(1)) * self.rounds + tuple(State(content) for content in range(self.content))

    @property
    def killed(self) -> State:
        """What the run that is killed is given."""
        return State(self.content)

    def next(self, recovery: str) -> State:
        """Return what the next run is given."""
        return State(self.content + (recovery == "grown"), moved=recovery == "moved")

    def images(
        self, library: Path, folder: Path, histories: Histories, wanted: Wanted, start: Path | None = None
    ) -> list[Image]:
        """Run it as a process of its own, and return the images at the operations that are wanted.

        ``start`` is a warehouse to begin with, as a killed run of the scenario left it.
        """
        warehouse = folder / "warehouse"
        if start is not None:
            shutil.copytree(start, warehouse, symlinks=True)
        elif self.before:
            shutil.copytree(histories.warehouse(self.before), warehouse)
        with histories.recordings.placed(self.killed) as recording:
            return take_images(library, folder, [self.step, recording], warehouse, wanted)


def broken(image: Image, scenario: Scenario, recovery: str, histories: Histories, *, again: bool = True) -> str:
    """Recover an image, and return what is wrong with it in words; empty if nothing is. ``again``: run once more."""
    try:
        wrong = unreadable(image.root, histories.tables(*scenario.before) if scenario.before else ())
        wrong = wrong or wrong_after(image.root, scenario, recovery, histories, again=again)
    except Exception as error:
        wrong = f"{type(error).__name__}: {str(error)[:1500]}"
    return f"{scenario.step} of content {scenario.content}, {image.operation}, {recovery}: {wrong}" if wrong else ""


def unreadable(root: Path, names: Iterable[str]) -> str:
    """Return what readers cannot read of these tables, and of all that have a version; empty if nothing."""
    for name in sorted({*names, *table_names(root)}):
        try:
            DeltaTable(str(Path(root, *name.split(".")))).to_pyarrow_table()
        except Exception as error:
            return f"{name} cannot be read before the next run: {error}"
    return ""


def wrong_after(root: Path, scenario: Scenario, recovery: str, histories: Histories, *, again: bool = False) -> str:
    """Run again, and return what is wrong with the tables in words; empty if nothing is. ``again``: run once more."""
    after = scenario.next(recovery)
    histories.run(root, after)
    tables, wanted = read_tables(root), histories.tables(*scenario.before, after)
    wrong = difference(tables, wanted)
    if (
        wrong
        and recovery != "same"
        and not difference(tables, histories.tables(*scenario.before, scenario.killed, after))
    ):
        wrong = ""  # the run had ended in all but its last words: the ledger knows its files
    if wrong or not again:
        return wrong
    if left := left_by_maintenance(root):
        return f"maintenance leaves {', '.join(left)}"
    files = _files(root)
    histories.run(root, after)
    changed = sorted(set(_files(root).items()) ^ set(files.items()))
    return f"one more run changes {', '.join(name for name, _ in changed)}" if changed else ""


def _files(root: Path) -> dict[str, tuple[int, int]]:
    """Size and time of each file of the tables."""
    paths = [path for layer in ("bronze", "silver", "gold") for path in (root / layer).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}
