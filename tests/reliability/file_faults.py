"""Every change of a file in a folder as a numbered operation, at which a run can be stopped, killed or made to fail.

file_faults.c does it inside the run's processes; this module compiles it, tells it what to do, and reads what it saw.
"""

from __future__ import annotations

import errno
import mmap
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("file_faults.c")
# The fields of `struct shared` in file_faults.c, in its order; each has 8 bytes.
FIELDS = (
    "ready",
    "operations",
    "stop_from",
    "stopped",
    "released",
    "fail_from",
    "fail_until",
    "fail_kinds",
    "error",
    "failed",
)
OPEN, WRITE, RENAME, UNLINK, MKDIR, TRUNCATE, LINK, OPEN_TO_READ = (1 << bit for bit in range(8))
NEVER_AGAIN = 2**63  # an operation number that no run reaches
# What each error can hit. A full disk still lets files be removed; "too many open files" hits files that are read, too.
ERRORS = {
    errno.ENOSPC: OPEN | WRITE | RENAME | MKDIR | TRUNCATE | LINK,
    errno.EIO: OPEN | WRITE | RENAME | UNLINK | MKDIR | TRUNCATE | LINK,
    errno.EROFS: OPEN | WRITE | RENAME | UNLINK | MKDIR | TRUNCATE | LINK,
    errno.EMFILE: OPEN | OPEN_TO_READ,
}


@dataclass(frozen=True)
class Operation:
    """A call that changed a file, or was about to. ``path`` is relative to the folder that is watched."""

    number: int
    pid: int
    program: str
    call: str
    path: str

    def __str__(self) -> str:
        return f"{self.number}: {self.program} {self.call} {self.path}"


def compile_layer(folder: Path) -> Path:
    """Compile file_faults.c into the folder, and return the library."""
    compiler, library = shutil.which("cc"), folder / "file_faults.so"
    assert compiler, "these tests need a C compiler (Debian: apt-get install gcc libc6-dev)"
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *options, "-o", str(library), str(SOURCE), "-ldl", "-lpthread"], check=True)
    return library


class FileFaults:
    """The layer of one run. Set it up before the run starts, or while the run stands at an operation."""

    def __init__(self, library: Path, folder: Path, below: Path) -> None:
        """Watch files below ``below``; ``folder`` takes the layer's own two files."""
        folder.mkdir(parents=True, exist_ok=True)
        self._library, self._state, self._log = library, folder / "state", folder / "operations"
        self.below = below.resolve()
        self._state.write_bytes(bytes(mmap.PAGESIZE))
        self._log.touch()
        with self._state.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._lines, self._passed = self._log.open(encoding="utf-8"), 0

    @property
    def environment(self) -> dict[str, str]:
        """What the run's environment needs."""
        return {
            "LD_PRELOAD": str(self._library),
            "FILE_FAULTS_STATE": str(self._state),
            "FILE_FAULTS_LOG": str(self._log),
            "FILE_FAULTS_BELOW": str(self.below),
        }

    def step(self, ended: Callable[[], bool]) -> Operation | None:
        """Let the run go on to its next operation, and return that, not yet done; None if the run ends before it."""
        self._set("stop_from", self._get("stopped") + 1)
        self._set("released", self._get("stopped"))
        while self._get("stopped") == self._get("released"):
            if ended():
                return None
            time.sleep(0.0005)
        return self._operation_of(self._get("stopped"))

    def step_to(self, wanted: Callable[[Operation], bool], ended: Callable[[], bool]) -> Operation | None:
        """Let the run go on to an operation that is wanted, and return that, not yet done; None if there is none."""
        while (operation := self.step(ended)) is not None and not wanted(operation):
            pass
        return operation

    def release(self) -> None:
        """Let the run go on to its end."""
        self._set("stop_from", 0)
        self._set("released", self._get("stopped"))

    def fail(self, error: int, first: int, count: int | None = None) -> None:
        """Make operations from number ``first`` on fail with the error (errno): ``count`` of them, or all."""
        self._set("error", error)
        self._set("fail_kinds", ERRORS[error])
        self._set("fail_until", NEVER_AGAIN if count is None else first + count)
        self._set("fail_from", first)

    @property
    def failed(self) -> int:
        """How many calls were made to fail."""
        return self._get("failed")

    @property
    def count(self) -> int:
        """How many operations there were."""
        return self._get("operations")

    def _operation_of(self, number: int) -> Operation:
        while self._passed < number:
            self._last, self._passed = self._operation(self._lines.readline()), self._passed + 1
        return self._last

    def _operation(self, line: str) -> Operation:
        number, pid, program, call, path = line.rstrip("\n").split("\t", 4)
        return Operation(int(number), int(pid), program, call, str(Path(path).relative_to(self.below)))

    def _get(self, field: str) -> int:
        return int(struct.unpack_from("Q", self._shared, 8 * FIELDS.index(field))[0])

    def _set(self, field: str, value: int) -> None:
        struct.pack_into("Q", self._shared, 8 * FIELDS.index(field), value)
