"""Take the pictures of README.md anew: the terminal after a night, and the first screen of its page.

    make demo && .venv/bin/python tools/docs/pictures.py

The terminal is drawn by rich, the page by Chromium. Both are of warehouse/demo. The Chinese ones need a Chinese font
(Debian: fonts-wqy-microhei).
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
WAREHOUSE: Final = "warehouse/demo"
COLUMNS, LINES = 100, 18  # of the terminal
SIZE: Final = "1280,900"  # of the page
SUFFIXES: Final = {"en": "", "zh": ".zh"}


def report(lang: str) -> str:
    """Make the page in a language; return what a terminal with colours shows."""
    programs = Path(sys.executable).parent
    shown = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PATH": f"{programs}:{os.environ['PATH']}"}
    command = [str(programs / "mqreplay"), "report", "--warehouse", WAREHOUSE, "--lang", lang]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **shown}, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def terminal(text: str, lang: str) -> str:
    """Return the picture of the first lines of a terminal, in SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print("$ mqreplay demo", style="bold")
    console.print(Text.from_ansi("\n".join(text.strip().splitlines()[:LINES])))
    picture = console.export_svg(title="mqreplay demo", unique_id=f"terminal-{lang}")
    return re.sub(r"\s*@font-face \{.*?\n    \}", "", picture, flags=re.DOTALL)  # it would ask another host


def page(path: Path) -> None:
    """Write the picture of the page's first screen."""
    html = (ROOT / WAREHOUSE / "report" / "DefaultCluster.html").as_uri()
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}", f"--screenshot={path}"]
    subprocess.run(["chromium", *options, html], check=True, capture_output=True)


if __name__ == "__main__":
    for name, suffix in reversed(SUFFIXES.items()):  # the page stays in English
        (DOCS / f"terminal{suffix}.svg").write_text(terminal(report(name), name), encoding="utf-8")
        page(DOCS / f"report{suffix}.png")
