"""`mqreplay completion SHELL`: a script that asks mqreplay for the words that may follow (argcomplete)."""

from __future__ import annotations

import argparse
import os

from mqreplay.cli.arguments import with_examples

SHELLS = ("bash", "zsh", "fish")
DESCRIPTION = "Print a script that completes the commands and options of mqreplay in a shell."
EXAMPLES = with_examples(
    "mqreplay completion bash > ~/.local/share/bash-completion/completions/mqreplay",
    "mqreplay completion zsh > ~/.zfunc/_mqreplay",
    "mqreplay completion fish > ~/.config/fish/completions/mqreplay.fish",
)


def add(command: argparse.ArgumentParser) -> None:
    """Add the argument of the command."""
    command.add_argument("shell", choices=SHELLS, help="the shell")


def script(shell: str) -> str:
    """Return the script of a shell."""
    from argcomplete.shell_integration import shellcode

    return shellcode(["mqreplay"], shell=shell)


def is_asked() -> bool:
    """Return whether the script of a shell started this process, to learn the words that may follow."""
    return "_ARGCOMPLETE" in os.environ


def answer(parser: argparse.ArgumentParser) -> None:
    """Answer the script of a shell, and end the process."""
    import argcomplete

    argcomplete.autocomplete(parser)
