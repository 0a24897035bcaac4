"""Crash images: the warehouse as it lies on disk at operations of a real run, as a kill at that moment leaves it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reliability.file_faults import FileFaults, Operation
from reliability.runs import started

Wanted = Callable[[Sequence[Operation]], bool]


@dataclass(frozen=True)
class Image:
    """A copy of a warehouse, made right before an operation of a run."""

    root: Path
    operation: Operation


def take_images(library: Path, folder: Path, command: list[str], warehouse: Path, wanted: Wanted) -> list[Image]:
    """Run `mqreplay COMMAND --warehouse WAREHOUSE --engine local`; copy the warehouse before each wanted operation.

    ``wanted`` gets all operations so far, the one that is about to happen at the end. The run itself must succeed.
    """
    layer = FileFaults(library, folder / "layer", warehouse)
    images, seen = [], list[Operation]()
    with started(
        folder / "run", [*command, "--warehouse", str(warehouse), "--engine", "local"], layer.environment
    ) as run:
        while (operation := layer.step(lambda: run.ended)) is not None:
            seen.append(operation)
            if wanted(seen):
                root = folder / "images" / f"{operation.number:05d}"
                if warehouse.exists():
                    shutil.copytree(warehouse, root, symlinks=True)
                else:
                    root.mkdir(parents=True)
                images.append(Image(root, operation))
        assert run.wait() == 0, run.errors()
    return images


def changes_a_file(seen: Sequence[Operation]) -> bool:
    """Whether the last operation is none of the many that write rows; one in 16 of these is taken, too."""
    last = seen[-1]
    is_one_of_many = last.path.endswith(".parquet") and "write" in last.call
    return not is_one_of_many or last.number % 16 == 0


def changes_a_table(seen: Sequence[Operation]) -> bool:
    """Whether the last operation comes first in a table's folder, makes a version, or follows one that made one."""
    last, before = seen[-1], seen[-2] if len(seen) > 1 else None
    return is_commit(last) or (before is not None and is_commit(before)) or _first_in_folder(seen)


def is_commit(operation: Operation) -> bool:
    """Whether the operation makes a version of a table: its file, written under another name, gets its own."""
    path = Path(operation.path)
    return path.parent.name == "_delta_log" and path.suffix == ".json" and operation.call in ("link", "linkat")


def _first_in_folder(seen: Sequence[Operation]) -> bool:
    folder = Path(seen[-1].path).parent
    return folder.name == "_delta_log" and not any(Path(one.path).parent == folder for one in seen[:-1])
