"""What the README and docs tell to type is there: make's targets, commands and their options, jobs, files."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

from mqreplay.cli.command_line import parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def lines_to_type() -> list[tuple[str, str]]:
    """(page, command) of each line of a code block, and of each `command` in a sentence, without its comment."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        fenced = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        indented = re.findall(r"^ {4}(.*)", text, re.MULTILINE)
        inline = re.findall(r"`([^`\n]+)`", text)
        lines = [line for block in fenced for line in block.splitlines()] + indented + inline
        found += [(page.name, re.sub(r"\s+#.*", "", line).strip().removeprefix("$ ")) for line in lines]
    return found


def told(pattern: str) -> list[tuple[str, str]]:
    return [(page, line) for page, line in lines_to_type() if re.match(pattern, line)]


def subcommands() -> dict[str, ArgumentParser]:
    (action,) = [a for a in parser()._actions if isinstance(a, _SubParsersAction)]
    return dict(action.choices)


def test_readme_tells_of_the_two_commands_that_matter() -> None:
    assert {"make demo", "make test"} <= {line for _, line in told("make ")}


def test_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wrong = [
        (page, w) for page, line in told("make ") for w in shlex.split(line)[1:] if "=" not in w and w not in targets
    ]
    assert wrong == []


def test_commands_and_their_options_exist() -> None:
    wrong = []
    for page, line in told(r"(\.venv/bin/)?mqreplay [a-z]"):
        _, names, *rest = shlex.split(line)
        known = subcommands()
        given = {word.strip("[]").split("=")[0] for word in rest if word.lstrip("[").startswith("--")}
        for name in names.split("|"):
            if name not in known or not given <= set(known[name]._option_string_actions):
                wrong.append((page, line))
    assert wrong == []


def test_jobs_exist() -> None:
    jobs = [(page, job) for page, line in told(r".*\bspark-submit ") for job in re.findall(r"\S+\.py", line)]
    assert [(page, job) for page, job in jobs if not (ROOT / job).is_file()] == []


def test_links_lead_somewhere() -> None:
    links = [(page, to) for page in PAGES for to in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))]
    assert [(page, to) for page, to in links if not to.startswith("https://") and not (page.parent / to).exists()] == []
