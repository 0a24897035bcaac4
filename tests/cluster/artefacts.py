"""RocketMQ's own JARs, resolved once by Spark's Ivy and kept in this Python's environment.

`make clean` does not remove them; a new virtual environment resolves them again. `python -m cluster.artefacts` resolves
both versions.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mqreplay.lake.jars import PATIENCE_S, RESOLVE
from mqreplay.lake.separate_process import run_separately

GROUP = "org.apache.rocketmq"
# SHA-256 of the artefacts that the tests name. Ivy resolves what these depend on.
ARTEFACTS = {
    "5.3.3": {
        "rocketmq-namesrv": "b6d6f8b61664a358b7cf517aa8981e5e370bdee3eabe137b20e1f253c8b19fb0",
        "rocketmq-broker": "c3a5ee362ce2bf744d88057d6d9e53796e56aa42b9867ef31fc0b102dd01c27e",
        "rocketmq-client": "e15c141ac16812d927c6d4fb17458040304fcef472db11745e670f33bc967fb2",
        "rocketmq-tools": "61d182fabc71c2a9dc69f31b7d40efc6d10a8b7ad2f6dc05caeb9c603d9273e3",
    },
    "4.9.7": {
        "rocketmq-namesrv": "776fa2ecee8af1e3802ee27e6cbc4ac337baabdada80ebd5f68c58f35b94771c",
        "rocketmq-broker": "5b00b38044312fa567a8c5a59270f70ed1707076bbfb39b85d726dff33f780e3",
        "rocketmq-client": "fa1e89c80c2a52fb042711aad47c47d42a1ef53dada2a047a7e6c8eaec42fa87",
        "rocketmq-tools": "e38c9f7ea1522f9a255c0909f731a12f6b2848d30810e3ecffa19239970a64ef",
    },
}
REASONS = (
    r"Server access error.*",
    r"no answer in .*",
    r"Host .* not found.*",
    r".*: not found$",
    r"[\w.]*Exception: .*",
)


class ArtefactError(Exception):
    """The artefacts could not be resolved, or are not the expected ones."""


def class_path(version: str) -> list[str]:
    """Return the JARs of a version. Resolve them if they are not there. Raise ArtefactError."""
    home = Path(sys.prefix) / "rocketmq"
    folder = home / version
    if not folder.is_dir():
        home.mkdir(exist_ok=True)
        with _locked(home / ".lock"):
            if not folder.is_dir():
                _resolve(version, folder)
    return sorted(str(path) for path in folder.glob("*.jar"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _resolve(version: str, folder: Path) -> None:
    coordinates = [f"{GROUP}:{name}:{version}" for name in ARTEFACTS[version]]
    with tempfile.TemporaryDirectory(dir=folder.parent) as ivy:
        try:
            done = run_separately(RESOLVE, ",".join(coordinates), ivy, patience_s=PATIENCE_S)
            output = done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            output = f"no answer in {PATIENCE_S} s"
        jars = Path(ivy, "jars")
        for name, digest in ARTEFACTS[version].items():
            _check(jars / f"{GROUP}_{name}-{version}.jar", digest, output)
        jars.rename(folder)


def _check(path: Path, digest: str, output: str) -> None:
    if not path.exists():
        raise ArtefactError(
            f"{path.name} could not be resolved ({_reason(output)}). The tests against real RocketMQ need a Maven "
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


def main() -> int:
    """Resolve the artefacts of all versions. Return the exit status."""
    try:
        for version in ARTEFACTS:
            class_path(version)
    except ArtefactError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
