"""The commands of the README and of docs/ run as they are written, in a fresh folder, in the order of the pages.

Pages share one folder, so that each night runs once. The first command of a page is a process of its own, the others
run in this one: they would only start Python again.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
import sys
import tarfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from mqreplay.cli import command_line
from night.later import DAY_MS, moved
from tests_shared import ROOT, unpack

PAGES = (
    "README.md",
    "README.zh.md",
    "docs/tutorial.md",
    "docs/tasks.md",
    "docs/operations.md",
    "docs/metrics.md",
    "docs/troubleshooting.md",
)
# Long: their commands are those of other pages, or tell a long story.
LONG_PAGES = ("README.zh.md", "docs/tutorial.md", "docs/metrics.md")
# Commands that need more than this machine has, and the tests that run them.
ELSEWHERE = {
    r'mqreplay record "10\.': "tests/cluster/test_record.py",
    r"mqreplay \w+ .*(recordings|warehouse)/night\b": "the recording of a cluster: tests/cluster/test_record.py",
    r"mqreplay .*/live\b": "a recording that grows: tests/cli/test_watch_command.py",
    r"mqreplay nightly 'recordings/": "many clusters: tests/night/test_estate.py",
    r"mqreplay: ": "a message, not a command",
}
LEFT_OUT = "..."
TWO_NIGHTS = "warehouse/two-nights"  # made by two_nights()
# The tutorial makes it; other pages use it.
ORDERS = "warehouse/orders"
MAKE_ORDERS = f"mqreplay nightly data/sample/orders-4.9.7 --warehouse {ORDERS} --conf conf/sample.toml"
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


def two_nights(folder: Path) -> None:
    """Make TWO_NIGHTS of two recordings of one cluster: the quiet one is moved to the day before."""
    if (folder / TWO_NIGHTS).exists():
        return
    for name in ("quiet-5.3.3", "resets-5.3.3"):
        with tarfile.open(ROOT / "tests" / "data" / f"{name}.tar.xz") as archive:
            unpack(archive, folder / "recorded" / name)
    moved(folder / "recorded" / "quiet-5.3.3", folder / "recorded" / "day-before", -DAY_MS)
    done = run_here(f"mqreplay nightly recorded/day-before recorded/resets-5.3.3 --warehouse {TWO_NIGHTS}", folder)
    assert done.returncode == 0, done.stderr


def run_here(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of mqreplay in this process."""
    out, err = StringIO(), StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        status = command_line.main(shlex.split(command)[1:])
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    name, *arguments = shlex.split(command)
    program = [sys.executable, "-m", "mqreplay"] if name == "mqreplay" else [name]
    return subprocess.run([*program, *arguments], cwd=folder, capture_output=True, encoding="utf-8", check=False)


def shown_answers(page: str) -> dict[str, list[str]]:
    """Return the lines that a page shows of the answers of commands: the indented block after each."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in re.split(r"\n\n(?=\S|    )", text) if block.strip()]
    return {
        command.strip(): [line[4:].rstrip() for line in answer.splitlines()]
        for command, answer in itertools.pairwise(blocks)
        if command.startswith("    mqreplay ") and answer.startswith("    ") and not answer.startswith("    mqreplay ")
    }


@pytest.mark.parametrize(
    ("page", "command"),
    [
        pytest.param(page, each, marks=[pytest.mark.long] if page in LONG_PAGES or TWO_NIGHTS in each else [])
        for page in PAGES
        for each in commands(page)
    ],
)
def test_command_runs(page: str, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    if TWO_NIGHTS in command:
        two_nights(folder)
    if ORDERS in command and not (folder / ORDERS).exists() and not command.startswith("mqreplay nightly"):
        assert run_here(MAKE_ORDERS, folder).returncode == 0
    is_here = command.startswith("mqreplay ") and command != commands(page)[0]
    done = run_here(command, folder) if is_here else run(command, folder)
    # A broker of the sample may not be restarted.
    assert done.returncode == int("--fail-on" in command or command.startswith("mqreplay ready")), done.stderr
    assert "Traceback" not in done.stderr
    if command.startswith("mqreplay"):
        assert done.stdout.strip()
    if (shown := shown_answers(page).get(command)) is not None:
        lines = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
        if shown[-1] == LEFT_OUT:
            shown = shown[:-1]
            lines = lines[: len(shown)]
        assert lines == shown
    if "--json" in command:
        assert json.loads(done.stdout)["clusters"][0]["findings"]


@pytest.mark.long
def test_a_night_is_shared_as_the_page_says(folder: Path) -> None:
    """The page names a recording of the reader's own; here it is one of the sample."""
    text = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"## Share a night\n[\s\S]*?(?=\n## |$)", text)
    lines = [line.strip() for line in re.findall(r"^ {4}(.*)", section, re.MULTILINE)]
    archived, folders = lines[:3], lines[3:]
    assert [line.split()[:2] for line in archived] == [["mqreplay", "bundle"], ["tar", "xf"], ["mqreplay", "nightly"]]
    assert [line.split()[:2] for line in folders] == [["mqreplay", "bundle"], ["mqreplay", "nightly"]]
    shared = folder / "share"
    (shared / "recordings").mkdir(parents=True)
    (shared / "recordings" / "night").symlink_to(ROOT / "data" / "sample" / "bulk-5.3.3")
    bundled, unpacked = run_here(archived[0], shared), run(archived[1], shared)
    assert (bundled.returncode, unpacked.returncode) == (0, 0), bundled.stderr
    assert re.search(r"[1-9]\d* +topics?\b", bundled.stdout), bundled.stdout
    assert run_here(folders[0], shared).returncode == 0
    for line in (archived[2], folders[1]):
        nightly = run_here(line, shared)
        assert nightly.returncode == 0, nightly.stderr
        assert "slave_pull" in nightly.stdout
        assert "meter-billing" not in nightly.stdout
    assert (shared / "warehouse" / "without-names" / "report" / "cluster-01.html").exists()


def test_each_page_has_commands() -> None:
    assert [page for page in PAGES if not commands(page)] == []


def test_each_task_has_at_most_two_commands() -> None:
    text = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    tasks = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(tasks) == 10
    assert [task for task in tasks if not 1 <= len(re.findall(r"^ {4}\w", task, re.MULTILINE)) <= 2] == []
    pictures = re.findall(r"\((tasks/\w+\.svg)\)", text)
    assert sorted(pictures) == sorted(f"tasks/{path.name}" for path in (ROOT / "docs" / "tasks").iterdir())


def test_the_tutorial_answers_nine_questions() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    questions = re.findall(r"^### .*\?\n\n    (mqreplay .*)", text, re.MULTILINE)
    assert len(questions) == 9
    shown = shown_answers("docs/tutorial.md")
    assert [each for each in questions if each not in shown] == []
