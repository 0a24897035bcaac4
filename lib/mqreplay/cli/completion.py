"""`mqreplay completion SHELL`: a script that completes commands, options and their values, made from the parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mqreplay.cli.arguments import with_examples

SHELLS = ("bash", "zsh", "fish")
DESCRIPTION = "Print a script that completes the commands and options of mqreplay in a shell."
EXAMPLES = with_examples(
    "mqreplay completion bash > ~/.local/share/bash-completion/completions/mqreplay",
    "mqreplay completion zsh > ~/.zfunc/_mqreplay",
    "mqreplay completion fish > ~/.config/fish/completions/mqreplay.fish",
)
FILES = ("DIR", "FILE", "RECORDING", "PATH", "CAPTURE")  # metavars whose values are files


class Option(NamedTuple):
    """An option of a command: its names, its choices if it has any, whether it takes a value, and its help."""

    names: tuple[str, ...]
    choices: tuple[str, ...]
    takes_value: bool
    takes_file: bool
    text: str


class Command(NamedTuple):
    """A command: its help, its options, and the values of its arguments."""

    text: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]
    takes_file: bool


def add(command: argparse.ArgumentParser) -> None:
    """Add the argument of the command."""
    command.add_argument("shell", choices=SHELLS, help="the shell")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script of a shell for the commands of a parser."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    return "\n".join(write(commands_of(parser))) + "\n"


def commands_of(parser: argparse.ArgumentParser) -> dict[str, Command]:
    """Return the commands of a parser by name."""
    [action] = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    help_of = {each.dest: each.help or "" for each in action._choices_actions}
    return {name: _command(each, help_of.get(name, "")) for name, each in action.choices.items()}


def _command(parser: argparse.ArgumentParser, text: str) -> Command:
    options = tuple(
        Option(
            tuple(each.option_strings),
            tuple(map(str, each.choices or ())),
            each.nargs != 0,
            each.metavar in FILES,
            _plain(each.help or ""),
        )
        for each in parser._actions
        if each.option_strings
    )
    arguments = [each for each in parser._actions if not each.option_strings]
    choices = tuple(str(choice) for each in arguments for choice in each.choices or ())
    return Command(_plain(text), options, choices, any(each.metavar in FILES for each in arguments))


def _plain(text: str) -> str:
    """Return the beginning of a help, without characters that a shell would change."""
    first = re.split(r"[;.:(]", text)[0]
    return re.sub(r"[^\w ,/-]", "", first).strip()


def _bash(commands: Mapping[str, Command]) -> Iterator[str]:
    yield "# Completion of mqreplay for bash, made by `mqreplay completion bash`."
    yield "_mqreplay() {"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"'
    yield "  COMPREPLY=()"
    yield "  if (( COMP_CWORD == 1 )); then"
    yield f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$word"))'
    yield "    return"
    yield "  fi"
    yield '  case "$command $before" in'
    for name, command in commands.items():
        for option in command.options:
            if option.takes_value:
                cases = " | ".join(f'"{name} {each}"' for each in option.names)
                made = f'-W "{" ".join(option.choices)}"' if option.choices else "-f" if option.takes_file else '-W ""'
                yield f'    {cases}) COMPREPLY=($(compgen {made} -- "$word")); return ;;'
    yield "  esac"
    yield '  case "$command" in'
    for name, command in commands.items():
        names = " ".join([*(each for option in command.options for each in option.names), *command.choices])
        files = ' $(compgen -f -- "$word")' if command.takes_file else ""
        yield f'    {name}) COMPREPLY=($(compgen -W "{names}" -- "$word"){files}) ;;'
    yield "  esac"
    yield "}"
    yield "complete -o filenames -F _mqreplay mqreplay"


def _zsh(commands: Mapping[str, Command]) -> Iterator[str]:
    yield "#compdef mqreplay"
    yield "# Completion of mqreplay for zsh, made by `mqreplay completion zsh`."
    yield "_mqreplay() {"
    yield "  local -a commands=("
    yield from (f"    '{name}:{command.text}'" for name, command in commands.items())
    yield "  )"
    yield "  if (( CURRENT == 2 )); then"
    yield "    _describe command commands"
    yield "    return"
    yield "  fi"
    yield '  local command="$words[2]"'
    yield "  shift words; (( CURRENT-- ))"
    yield '  case "$command" in'
    for name, command in commands.items():
        specs = [f"'*{each}[{option.text}]{_zsh_value(option)}'" for option in command.options for each in option.names]
        rest = f"'*:value:({' '.join(command.choices)})'" if command.choices else "'*:file:_files'"
        yield f"    {name}) _arguments {' '.join([*specs, rest])} ;;"
    yield "  esac"
    yield "}"
    yield '_mqreplay "$@"'


def _zsh_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    return (
        f":value:({' '.join(option.choices)})"
        if option.choices
        else ":file:_files"
        if option.takes_file
        else ":value: "
    )


def _fish(commands: Mapping[str, Command]) -> Iterator[str]:
    yield "# Completion of mqreplay for fish, made by `mqreplay completion fish`."
    yield "complete -c mqreplay -f"
    for name, command in commands.items():
        yield f"complete -c mqreplay -n __fish_use_subcommand -a {name} -d '{command.text}'"
    for name, command in commands.items():
        seen = f"complete -c mqreplay -n '__fish_seen_subcommand_from {name}'"
        if command.choices:
            yield f"{seen} -a '{' '.join(command.choices)}'"
        if command.takes_file:
            yield f"{seen} -F"
        for option in command.options:
            names = " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in option.names)
            value = (
                f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r -F" if option.takes_file else " -x"
            )
            yield f"{seen} {names}{value if option.takes_value else ''} -d '{option.text}'"
