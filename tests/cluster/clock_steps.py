"""A wall clock that steps for one process, by clock_step.c. Nothing else on the machine sees the step."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_step.c")


class ClockSteps:
    """The clock of the processes that run with `environment`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._library, self._file = folder / "clock_step.so", folder / "step"
        compiler = shutil.which("cc")
        assert compiler, "this test needs a C compiler (Debian: apt-get install gcc libc6-dev)"
        options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([compiler, *options, "-o", str(self._library), str(SOURCE), "-ldl"], check=True)
        self._file.write_bytes(bytes(mmap.PAGESIZE))
        with self._file.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    @property
    def environment(self) -> dict[str, str]:
        """Return what the environment of a process needs."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_STEP_FILE": str(self._file)}

    def step(self, seconds: int) -> None:
        """Set the wall clock forward by this many seconds, or back."""
        struct.pack_into("q", self._shared, 0, seconds)
