"""Escape sequences of terminals (ECMA-48), which colour texts and move the cursor."""

from __future__ import annotations

from typing import Final

# Control sequences such as colours; operating system commands such as titles; character sets; modes of the keypad.
ESCAPE: Final = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]?|\x1b[=>]"
