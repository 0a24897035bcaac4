"""The commands of docs/what_if.md answer as the page says, on the samples."""

from __future__ import annotations

import itertools
import re
import shlex
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


def test_the_page_has_twelve_questions_and_advises() -> None:
    assert len(re.findall("^## ", PAGE, re.MULTILINE)) == 13
    assert len(answers()) >= 15
    assert sum(command.startswith("mqreplay advise") for command, _ in answers()) == 3


@pytest.mark.parametrize(("command", "shown"), answers())
def test_answer(
    command: str, shown: list[str], night: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    arguments = shlex.split(command)[1:]
    assert main([night.root if each == WAREHOUSE else each for each in arguments]) == 0
    lines = capsys.readouterr().out.replace(night.root, WAREHOUSE).rstrip().splitlines()
    if shown[-1].strip() == LEFT_OUT:
        shown = shown[:-1]
        lines = lines[: len(shown)]
    assert [line.rstrip() for line in lines if line.strip()] == [line.rstrip() for line in shown]
