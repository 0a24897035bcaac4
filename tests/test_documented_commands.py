"""The commands of the README and of docs/ run as they are written, in a fresh folder, in the order of the pages.

Pages share one folder, so that each night runs once.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests_shared import ROOT

PAGES = (
    "README.md",
    "README.zh.md",
    "docs/tutorial.md",
    "docs/operations.md",
    "docs/metrics.md",
    "docs/troubleshooting.md",
)
# Commands that need more than this machine has, and the tests that run them.
ELSEWHERE = {
    r'mqreplay record "10\.': "tests/cluster/test_record.py",
    r"mqreplay \w+ .*(recordings|warehouse)/night\b": "the recording of a cluster: tests/cluster/test_record.py",
    r"mqreplay .*/live\b": "a recording that grows: tests/cli/test_watch_command.py",
    r"mqreplay nightly 'recordings/": "many clusters: tests/night/test_estate.py",
    r"mqreplay: ": "a message, not a command",
}
RUNNABLE = re.compile(r"^(mqreplay|cp|rm) ")


def commands(page: str) -> list[str]:
    """Return the indented lines of a page that are commands of this machine, without comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [re.sub(r"\s+#.*", "", line).strip() for line in re.findall(r"^ {4}(.*)", text, re.MULTILINE)]
    return [line for line in lines if RUNNABLE.match(line) and not any(re.match(each, line) for each in ELSEWHERE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that has only the sample and the settings of the checkout."""
    made = tmp_path_factory.mktemp("checkout")
    for name in ("data", "conf"):
        (made / name).symlink_to(ROOT / name)
    return made


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    name, *arguments = shlex.split(command)
    program = [sys.executable, "-m", "mqreplay"] if name == "mqreplay" else [name]
    return subprocess.run([*program, *arguments], cwd=folder, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize(("page", "command"), [(page, each) for page in PAGES for each in commands(page)])
def test_command_runs(page: str, command: str, folder: Path) -> None:
    done = run(command, folder)
    assert done.returncode == int("--fail-on" in command), done.stderr
    assert "Traceback" not in done.stderr
    if command.startswith("mqreplay"):
        assert done.stdout.strip()
    if "--json" in command:
        assert json.loads(done.stdout)["clusters"][0]["findings"]


def test_each_page_has_commands() -> None:
    assert [page for page in PAGES if not commands(page)] == []
