"""Help, its examples, and the scripts that complete commands."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from mqreplay.cli.command_line import main, parser
from mqreplay.cli.completion import SHELLS, commands_of, script

COMMANDS = sorted(commands_of(parser()))


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


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_all_commands_and_options(shell: str, capsys) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for name, command in commands_of(parser()).items():
        assert name in text
        for option in command.options:
            for each in option.names:
                assert each.lstrip("-") in text


def complete(folder: Path, line: str) -> list[str]:
    """Return what bash would offer for the last word of a line."""
    file = folder / "mqreplay.bash"
    file.write_text(script(parser(), "bash"))
    words = line.split(" ")
    quoted = " ".join(map(shlex.quote, words))
    program = (
        f"source {shlex.quote(str(file))}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _mqreplay; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mqreplay nigh", ["nightly"]),
        ("mqreplay sql --eng", ["--engine"]),
        ("mqreplay sql --engine ", ["duckdb", "spark"]),
        ("mqreplay findings --severity w", ["warning"]),
        ("mqreplay sql --warehouse mq", ["mqreplay.bash"]),
        ("mqreplay completion f", ["fish"]),
        ("mqreplay findings --kind ", []),
    ],
)
def test_bash_completes(tmp_path: Path, line: str, offered: list[str]) -> None:
    assert complete(tmp_path, line) == offered


def test_the_other_scripts_have_whole_words(tmp_path: Path) -> None:
    for line in script(parser(), "fish").splitlines():
        assert shlex.split(line, comments=True)[:3] in ([], ["complete", "-c", "mqreplay"])
    file = tmp_path / "_mqreplay"
    file.write_text(script(parser(), "zsh"))
    done = subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True, check=False)  # the same grammar
    assert (done.returncode, done.stderr) == (0, "")
