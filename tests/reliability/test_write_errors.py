"""A write that fails: one line says so, readers can read, and the next run makes the tables of one clean run."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reliability.crash_images import is_commit
from reliability.crash_recovery import Scenario, unreadable, wrong_after
from reliability.file_faults import ERRORS, FileFaults, Operation
from reliability.histories import Histories
from reliability.runs import started
from tests_shared import SAMPLE

SCENARIO = Scenario("ingest", 1)  # on a warehouse that has tables already
OPERATIONS = 1_100  # of the files of that ingest, which has some more
ONCE, ON = 1, None  # one operation fails, or all from then on
LONG = 52
CAPTURE = next(SAMPLE.glob("*/wire.pcap.gz"))
FAILED = (2, 4)  # exit status


# Once: the commit gets its name by a rename.
@pytest.mark.long
@pytest.mark.parametrize("count", [ON, pytest.param(ONCE, marks=pytest.mark.long)])
def test_disk_gets_full_at_a_commit(
    library: Path, histories: dict[str, Histories], tmp_path: Path, count: int | None
) -> None:
    wrong = failed_run(library, histories["ingest"], tmp_path, is_commit, errno.ENOSPC, count)
    assert not wrong


@pytest.mark.long
def test_one_write_of_rows_fails(library: Path, histories: dict[str, Histories], tmp_path: Path) -> None:
    def rows(operation: Operation) -> bool:
        return operation.call == "write" and operation.path.endswith(".parquet")

    wrong = failed_run(library, histories["ingest"], tmp_path, rows, errno.EIO, ONCE)
    assert not wrong


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LONG))
def test_any_write_fails(library: Path, histories: dict[str, Histories], tmp_path: Path, seed: int) -> None:
    first = random.Random(seed).randrange(1, OPERATIONS)
    error, count = list(ERRORS)[seed % len(ERRORS)], (ONCE, ON)[seed // len(ERRORS) % 2]
    wrong = failed_run(library, histories["ingest"], tmp_path, lambda one: one.number >= first, error, count)
    assert not wrong


def test_import_on_a_full_disk_keeps_no_file(library: Path, tmp_path: Path) -> None:
    out = tmp_path / "recordings"
    out.mkdir()
    layer = FileFaults(library, tmp_path / "layer", out)
    layer.fail(errno.ENOSPC, 20)
    with started(tmp_path / "run", ["import", str(CAPTURE), "--out", str(out / "night")], layer.environment) as run:
        assert (run.wait(), layer.failed > 0) == (4, True)
        [said] = run.errors()
    assert said.startswith("mqreplay: the disk is full (OSError: [Errno 28] No space left on device")
    assert [path.name for path in out.iterdir() if path.suffix != ".log"] == []


def failed_run(
    library: Path,
    its: Histories,
    folder: Path,
    wanted: Callable[[Operation], bool],
    error: int,
    count: int | None,
) -> str:
    """Make the wanted operation of a run fail, and return what is wrong then or after the next run, in words."""
    warehouse = folder / "warehouse"
    shutil.copytree(its.warehouse(SCENARIO.before), warehouse)
    layer = FileFaults(library, folder / "layer", warehouse)
    with its.recordings.placed(SCENARIO.killed) as night:
        command = [SCENARIO.step, night, "--warehouse", str(warehouse), "--engine", "local"]
        with started(folder / "run", command, layer.environment) as run:
            operation = layer.step_to(wanted, lambda: run.ended)
            if operation is not None:
                layer.fail(error, operation.number, count)
                layer.release()
            status, said = run.wait(), run.errors()
    assert operation is not None, "the run ended before the operation that was to fail"
    wrong = [unreadable(warehouse, its.tables(*SCENARIO.before))]
    # What a run can do without may fail: a link, a checkpoint, a digest for the next run.
    if status in FAILED and (len(said) != 1 or not said[0].startswith("mqreplay: ")):
        wrong.append(f"{len(said)} lines on stderr:\n" + "\n".join(said[:20]))
    elif status not in (0, *FAILED):
        wrong.append(f"exit status {status}: " + "\n".join(said[:20]))
    elif status == 0 and said:
        wrong.append("it succeeded and said:\n" + "\n".join(said[:20]))
    wrong.append(wrong_after(warehouse, SCENARIO, "same", its))
    case = f"{errno.errorcode[error]} {'once' if count else 'from then on'} at {operation}, {layer.failed} calls failed"
    return f"{case}: " + "\n".join(filter(None, wrong)) if any(wrong) else ""
