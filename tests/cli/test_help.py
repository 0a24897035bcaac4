"""Help, its examples, and the scripts that complete commands."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mqreplay.cli.command import command_texts
from mqreplay.cli.command_line import BY_NAME, RENAMED, main, parser
from mqreplay.cli.completion import SHELLS, script
from tests_shared import ROOT

(COMMANDS_OF_PARSER,) = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
COMMANDS = sorted(COMMANDS_OF_PARSER.choices)


def examples(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    return re.findall(r"^  (mqreplay .*)", capsys.readouterr().out.partition("\nexamples:\n")[2], re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_examples_that_are_accepted(command: str, capsys) -> None:
    found = examples(command, capsys)
    assert found
    for line in found:
        words = shlex.split(re.split(r" [<>] ", line)[0])
        assert words[1] == command
        assert parser().parse_args(words[1:]).command == command


def test_without_a_command_there_is_help(capsys) -> None:
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: mqreplay")
    assert all(f"    {command}" in out for command in COMMANDS)
    assert err == ""


def test_commands_are_grouped_by_what_people_want() -> None:
    parts = [part.splitlines() for part in parser().format_help().split("\n\n")]
    groups = {lines[0].rstrip(":"): re.findall(r"^    (\w+) ", "\n".join(lines[1:]), re.MULTILINE) for lines in parts}
    texts = command_texts()
    assert texts.keys() == BY_NAME.keys()
    wanted: dict[str, list[str]] = {}
    for name, text in texts.items():
        wanted.setdefault(text["group"], []).append(name)
    assert {title: names for title, names in groups.items() if title in wanted} == wanted
    assert sorted(name for names in wanted.values() for name in names) == COMMANDS


def test_a_command_that_does_not_exist_is_answered_with_the_one_that_was_meant(capsys) -> None:
    for name, says in (("findigs", "did you mean findings?"), ("why", "`mqreplay --help` lists them")):
        assert main([name, "--warehouse", "w"]) == 2
        assert capsys.readouterr() == ("", f"mqreplay: there is no command {name}; {says}\n")


@pytest.mark.parametrize(("words", "usage"), [(["help"], "mqreplay [-h]"), (["help", "ready"], "mqreplay ready [-h]")])
def test_help_is_a_command_too(words: list[str], usage: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {usage}")


def test_an_old_name_answers_with_the_new_one(capsys) -> None:
    for name, new in RENAMED.items():
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        out, err = capsys.readouterr()
        assert ended.value.code == 0
        assert out.startswith(f"usage: mqreplay {new[0]} ")
        command = " ".join(new)
        assert err == f"mqreplay: {name} is deprecated, use {command}: mqreplay {command} --help\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script(shell: str, capsys) -> None:
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^ *complete .*\bmqreplay$|^complete --command mqreplay ", out, re.MULTILINE)
    assert err == ""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the program mqreplay and the script of bash."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "mqreplay"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mqreplay.cli "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (folder / "mqreplay.bash").write_text(script("bash"), encoding="utf-8")
    return folder


def complete(folder: Path, line: str) -> list[str]:
    """Return the words that bash offers at the end of a line."""
    commands = (
        "source ./mqreplay.bash; COMP_WORDBREAKS=$' \\t\\n\"><=;|&(:'; COMP_TYPE=9; "
        f"COMP_LINE={shlex.quote(line)}; COMP_POINT={len(line)}; _python_argcomplete mqreplay; "
        'printf "%s\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "lib")}
    shell = ["bash", "--norc", "-c", commands]
    done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [word.strip() for word in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mqreplay nigh", ["nightly"]),
        ("mqreplay sql --eng", ["--engine"]),
        ("mqreplay sql --engine ", ["duckdb", "spark"]),
        ("mqreplay findings --severity w", ["warning"]),
        ("mqreplay sql --warehouse mqreplay.b", ["mqreplay.bash"]),
        ("mqreplay completion f", ["fish"]),
    ],
)
def test_bash_completes(program: Path, line: str, offered: list[str]) -> None:
    assert complete(program, line) == offered
