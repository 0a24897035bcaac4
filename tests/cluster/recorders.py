"""`mqreplay record` as a process of a test, and what it wrote."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.processes import end, kill

END_S = 30


class Recorder:
    """A recorder that runs."""

    def __init__(self, name_servers: str, out: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.out = out
        self._log = out.with_suffix(".log")
        command = [sys.executable, "-m", "mqreplay.cli", "record", name_servers, "--out", str(out), *arguments]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def finish(self) -> int:
        """Stop it as a service manager does, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_S)

    def wait(self) -> int:
        """Wait until it ends by itself, and return its exit status."""
        return self.process.wait(END_S)

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        kill(self.process)

    def output(self) -> str:
        """Return what it printed."""
        return self._log.read_text(errors="replace")

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of a kind that it has written."""
        return lines_of(self.out, kind)


@contextmanager
def recorder(name_servers: str, out: Path, *arguments: str, env: dict[str, str] | None = None) -> Iterator[Recorder]:
    """Yield a recorder that is ended with the block."""
    running = Recorder(name_servers, out, *arguments, env=env)
    try:
        yield running
    finally:
        end([running.process])


def lines_of(recording: Path, kind: str) -> list[dict[str, Any]]:
    """Return the records of a kind in a recording. A file that is not whole fails."""
    found = []
    for path in sorted(recording.glob(f"{kind}.*")):
        found += [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return found
