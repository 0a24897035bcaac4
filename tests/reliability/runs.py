"""Runs of mqreplay as processes of their own, which tests may stop, signal and kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LIB = Path(__file__).parents[2] / "lib"
PROGRESS = re.compile(r" *\d+\.\d s  ")  # how a progress line begins
PATIENCE_S = 300
VICTIMS = ("driver", "java", "worker", "all")
# The local engine judges small nights in one process: with this, all by processes of their own, as large nights.
MQREPLAY = [
    "-c",
    "from mqreplay.engines import local; local.FEW_BYTES = local.FEW_ROWS = -1; import sys; "
    "from mqreplay.cli.command_line import main; sys.exit(main())",
]
# The driver commits small tables itself: with this, Spark writes all of them, as those of a large night.
SPARK_WRITES_ALL = "from mqreplay.engines import spark_tables; spark_tables.FEW_ROWS = 0"
BY_SPARK_ALONE = f"{SPARK_WRITES_ALL}; import sys; from mqreplay.cli.command_line import main; sys.exit(main())"
WORKERS = (
    "mqreplay.lake.worker_daemon",
    "multiprocessing.spawn",
)  # in the command of a process that runs tasks: Spark's, local's


@dataclass
class Run:
    """A command that runs, its processes, and what it said."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def ended(self) -> bool:
        """Whether the driver has ended."""
        return self.process.poll() is not None

    def wait(self) -> int:
        """Wait for the driver, and return its exit status."""
        return self.process.wait(PATIENCE_S)

    def errors(self) -> list[str]:
        """Return the lines on stderr that are no progress."""
        lines = (self.folder / "stderr").read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.strip() and not PROGRESS.match(line)]

    def pids(self, victim: str) -> list[int]:
        """Return the processes that are one of VICTIMS, of the run's own tree; all are given from the driver down."""
        tree = _tree(self.process.pid)
        if victim == "all":
            return tree
        if victim == "driver":
            return tree[:1]
        if victim == "java":
            return [pid for pid in tree[1:] if _program(pid) == "java"]
        return [pid for pid in tree[1:] if any(words in _command(pid) for words in WORKERS)]

    def kill(self, victim: str, how: signal.Signals = signal.SIGKILL) -> int:
        """Send the signal to the processes, each by its id; return how many there were."""
        pids = self.pids(victim)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
        return len(pids)


@contextmanager
def started(
    folder: Path, command: list[str], environment: dict[str, str] | None = None, program: list[str] | None = None
) -> Iterator[Run]:
    """Run `mqreplay COMMAND` in a group of its own; nothing of it is left when the block ends.

    ``folder`` takes what it says and what it keeps temporarily; ``program`` are Python's arguments before the command.
    """
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *(program or MQREPLAY), *command],
            env={**_environment(scratch), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
            preexec_fn=_default_interrupt,
        )
    run, known = Run(process, folder), set[int]()
    try:
        yield run
    finally:
        known.update(_session(process.pid))
        for pid in sorted(known):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def outlived(run: Run) -> list[int]:
    """Return the processes of the run that are still there after its driver has ended."""
    return [pid for pid in _session(run.process.pid) if pid != run.process.pid]


def wait_until(true: object, patience_s: float = 60) -> bool:
    """Wait until the function ``true`` gives something true; return whether it did."""
    assert callable(true)
    deadline = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _environment(scratch: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_GATEWAY", "COV_"))}
    lib = os.environ.get("PYTHONPATH", "").split(os.pathsep)[0] or str(LIB)
    return {**kept, "PYTHONPATH": lib, "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch), "NO_COLOR": "1"}


def _default_interrupt() -> None:
    """Ctrl-C is ignored in what a shell runs in the background, and so in its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _stat(pid: int) -> tuple[str, int, int] | None:
    """Program, parent and session of a process that lives."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    program, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return None if rest[0] == "Z" else (program, int(rest[1]), int(rest[3]))


def _living() -> dict[int, tuple[str, int, int]]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return {pid: about for pid in pids if (about := _stat(pid)) is not None}


def _session(leader: int) -> list[int]:
    """All processes of the session: also those whose parent has died."""
    return sorted(pid for pid, (_, _, session) in _living().items() if session == leader)


def _tree(pid: int) -> list[int]:
    living, found = _living(), [pid]
    for parent in found:
        found += sorted(child for child, (_, its_parent, _) in living.items() if its_parent == parent)
    return [one for one in found if one in living]


def _program(pid: int) -> str:
    about = _stat(pid)
    return about[0] if about else ""


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
