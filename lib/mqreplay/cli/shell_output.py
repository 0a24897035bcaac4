"""How the shell of `mqreplay sql` prints rows: their form, and the pager for what does not fit into the terminal."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence

from mqreplay.cli.arguments import FORMS
from mqreplay.cli.rows import print_rows
from mqreplay.words.printable import printable

# It ends at once if all fits, keeps colours, and leaves the text on the terminal.
DEFAULT_PAGER = "less -FRX"


class ShellOutput:
    """Prints rows in the form that was last chosen."""

    def __init__(self, form: str) -> None:
        """Begin with a form, and with the pager."""
        self.form = form
        self.pager = True

    def choose_form(self, form: str) -> None:
        """Print rows in another form from now on. Without a name, print the present one."""
        if form in FORMS:
            self.form = form
        elif form:
            print(f"there is no form {printable(form)}; the forms are {', '.join(FORMS)}", file=sys.stderr)
        else:
            print(self.form)

    def choose_pager(self, word: str) -> None:
        """Use the pager from now on, or not. Without a word, print whether it is used."""
        if word in ("on", "off"):
            self.pager = word == "on"
        elif word:
            print("write .pager on or .pager off", file=sys.stderr)
        else:
            print("on" if self.pager else "off")

    def show(self, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows; through the pager if stdout is a terminal that has fewer lines."""
        if not (self.pager and sys.stdout.isatty()):
            print_rows(names, rows, self.form, line_form=".mode line")
            return
        made = io.StringIO(newline="")
        print_rows(names, rows, self.form, made, ".mode line")
        text = made.getvalue()
        if _terminal_lines(text) < shutil.get_terminal_size().lines or not _page(text):
            sys.stdout.write(text)


def _terminal_lines(text: str) -> int:
    """Return how many lines of the terminal a text needs: longer ones are wrapped."""
    width = shutil.get_terminal_size().columns
    return sum(max(1, -(-len(line) // width)) for line in text.splitlines())


def _page(text: str) -> bool:
    """Show a text in the pager until the user ends it. Return False if there is no pager."""
    try:
        command = shlex.split(os.environ.get("PAGER") or DEFAULT_PAGER)
        sys.stdout.flush()
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError):
        return False
    # Ctrl-C ends what the pager does, and neither the pager nor the shell.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        pager.communicate(text)  # a user who leaves the pager early has seen enough
    except KeyboardInterrupt:  # SIGTERM
        pager.terminate()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    return True
