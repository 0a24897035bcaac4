"""The commands of docs/what_if.md answer as the page says, on the samples."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqreplay.cli.command_line import main
from tests_shared import ROOT

PAGE = (ROOT / "docs" / "what_if.md").read_text(encoding="utf-8")
LEFT_OUT = "..."
WAREHOUSE = "warehouse/sample"


def answers() -> list[tuple[str, list[str]]]:
    """Return the commands of the page, and the lines that it shows of their answers."""
    blocks = [block for block in re.split(r"\n\n(?=\S|    )", PAGE) if block.startswith("    ")]
    texts = [[line[4:] for line in block.splitlines() if line.strip()] for block in blocks]
    pairs = itertools.pairwise(texts)
    return [(command[0], shown) for command, shown in pairs if re.match("mqreplay (whatif|at|sql|advise)", command[0])]


def test_the_page_has_twelve_questions_advice_and_how_to_check_an_answer() -> None:
    titles = re.findall("^## (.+)", PAGE, re.MULTILINE)
    assert (len(titles), titles[-1]) == (14, "Check a prediction")
    assert len(answers()) >= 15
    assert sum(command.startswith("mqreplay advise") for command, _ in answers()) == 3


@pytest.fixture(scope="module")
def warehouse(night: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a copy of the samples' warehouse with the predictions that the page stores."""
    made = tmp_path_factory.mktemp("page") / "warehouse"
    shutil.copytree(Path(night.root).resolve(), made)
    for command, _ in answers():
        if "--save" in command:
            assert main(arguments(command, str(made))) == 0
    return str(made)


def arguments(command: str, root: str) -> list[str]:
    return [root if each == WAREHOUSE else each for each in shlex.split(command)[1:]]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        # A check of a prediction reads a whole recording.
        pytest.param(*each, marks=[pytest.mark.long] if each[0].startswith("mqreplay whatif check") else [])
        for each in answers()
    ],
)
def test_answer(
    command: str, shown: list[str], warehouse: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    status = 1 if shown[-1].endswith("the prediction failed") else 0
    assert main(arguments(command, warehouse)) == status
    out = capsys.readouterr().out.replace(warehouse, WAREHOUSE).rstrip().splitlines()
    lines = [line for line in out if not line.startswith("Page: ")]
    if shown[-1].strip() == LEFT_OUT:
        shown = shown[:-1]
        lines = lines[: len(shown)]
    assert [line.rstrip() for line in lines if line.strip()] == [line.rstrip() for line in shown]
