"""A process that may write only in folders of its own, and what it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqreplay.lake.confinement import _rights
from tests_shared import ROOT

SCRIPT = """
import os, subprocess, sys
from pathlib import Path
from mqreplay.lake.confinement import confine_writes

own, other = map(Path, sys.argv[1:])
assert confine_writes([own])
(own / "file").write_text("x")
(own / "folder").mkdir()
(own / "file").rename(own / "folder" / "file")
Path("/dev/null").write_text("x")
assert (other / "file").read_text() == "there"
attempts = {
    "write": lambda: (other / "file").write_text("x"),
    "append": lambda: (other / "file").open("a").write("x"),
    "truncate": lambda: os.truncate(other / "file", 0),
    "create": lambda: (other / "new").touch(),
    "remove": lambda: (other / "file").unlink(),
    "rename": lambda: (other / "file").rename(other / "new"),
    "move": lambda: (other / "file").rename(own / "new"),
    "link": lambda: (own / "link").hardlink_to(other / "file"),
    "symlink": lambda: (other / "link").symlink_to("file"),
    "folder": lambda: (other / "new").mkdir(),
    "pipe": lambda: os.mkfifo(other / "new"),
    "child": lambda: subprocess.run(["touch", str(other / "new")], check=True, stderr=-3),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name)
    except (OSError, subprocess.CalledProcessError):
        pass
"""


@pytest.mark.skipif(_rights() is None, reason="this kernel has no Landlock")
def test_nothing_is_written_elsewhere(tmp_path: Path) -> None:
    own, other = tmp_path / "a" / "own", tmp_path / "b"
    own.mkdir(parents=True)
    other.mkdir()
    (other / "file").write_text("there")
    command = [sys.executable, "-c", SCRIPT, str(own), str(other)]
    env = os.environ | {"PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in other.iterdir()] == ["file"]
    assert (other / "file").read_text() == "there"


def test_where_linux_cannot_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from mqreplay.lake import confinement

    monkeypatch.setattr(confinement, "_call", lambda number, *arguments: -1)
    assert not confinement.confine_writes([])
