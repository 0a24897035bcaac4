"""mqreplay in a real terminal of a given size."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from tests_shared import ROOT

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def in_terminal(columns: int, *arguments: str, typed: str = "", lines: int = 40, **environment: str) -> str:
    """Return what a command shows in a terminal, without colours, while somebody types. It must succeed."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    inherited |= {"PYTHONPATH": str(ROOT / "lib"), "TERM": "xterm", **environment}
    os.write(ours, typed.encode())
    command = [sys.executable, "-m", "mqreplay.cli", *arguments]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=inherited) as program:
        os.close(its)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the end of a terminal
            pass
    os.close(ours)
    text = STYLE.sub("", shown.decode()).replace("\r\n", "\n")
    assert program.returncode == 0, text
    return text
