"""JARs of the servers that tests run, resolved once by Spark's Ivy and kept in this Python's environment.

`make clean` does not remove them; a new virtual environment resolves them again.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mqreplay.lake.jars import DOWNLOAD_PATIENCE_S, RESOLVE
from mqreplay.lake.separate_process import run_separately

REASONS = (
    r"Server access error.*",
    r"no answer in .*",
    r"Host .* not found.*",
    r".*: not found$",
    r"[\w.]*Exception: .*",
)


class ArtefactError(Exception):
    """The artefacts could not be resolved, or are not the expected ones."""


@dataclass(frozen=True)
class Artefacts:
    """The JARs of one server: those that the tests name, with their SHA-256, and what these depend on.

    ``folder`` is below the environment; ``digests`` are by the names of the artefacts; ``excluded`` are dependencies
    that are not needed, as GROUP:NAME with * for any name.
    """

    folder: str
    group: str
    version: str
    digests: Mapping[str, str]
    excluded: tuple[str, ...] = ()

    def class_path(self) -> list[str]:
        """Return the JARs. Resolve them if they are not there. Raise ArtefactError."""
        folder = Path(sys.prefix, self.folder)
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(folder.with_name(".lock")):
                if not folder.is_dir():
                    self._resolve(folder)
        return sorted(str(path) for path in folder.glob("*.jar"))

    def _resolve(self, folder: Path) -> None:
        coordinates = [f"{self.group}:{name}:{self.version}" for name in self.digests]
        with tempfile.TemporaryDirectory(dir=folder.parent) as ivy:
            try:
                done = run_separately(
                    RESOLVE, ",".join(coordinates), ivy, *self.excluded, patience_s=DOWNLOAD_PATIENCE_S
                )
                output = done.stdout + done.stderr
            except subprocess.TimeoutExpired:
                output = f"no answer in {DOWNLOAD_PATIENCE_S} s"
            jars = Path(ivy, "jars")
            for name, digest in self.digests.items():
                _check(jars / f"{self.group}_{name}-{self.version}.jar", digest, output)
            jars.rename(folder)


def resolve_all(artefacts: Iterable[Artefacts]) -> int:
    """Resolve artefacts. Print the first error, and return the exit status."""
    try:
        for each in artefacts:
            each.class_path()
    except ArtefactError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check(path: Path, digest: str, output: str) -> None:
    if not path.exists():
        raise ArtefactError(
            f"{path.name} could not be resolved ({_reason(output)}). The tests against real servers need a Maven "
            "repository, once."
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        raise ArtefactError(f"{path.name} has SHA-256 {found}, expected {digest}")


def _reason(output: str) -> str:
    """Return the line of Ivy's output that names the cause."""
    lines = [line.strip().removeprefix(":: ") for line in output.splitlines()]
    for pattern in REASONS:
        for line in lines:
            if re.fullmatch(pattern, line):
                return line
    return "no reason was given"
