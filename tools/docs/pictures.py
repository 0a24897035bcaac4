"""Take the pictures of README.md and docs/tasks.md anew: terminals, and the first screen of a page.

    make demo && PYTHONPATH=tests .venv/bin/python tools/docs/pictures.py

Terminals are drawn by rich, the page by Chromium. The README's are of warehouse/demo, those of the tasks of nights that
are judged here. The Chinese ones need a Chinese font (Debian: fonts-wqy-microhei).
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.text import Text

from test_documented_commands import two_nights

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
WAREHOUSE: Final = "warehouse/demo"
COLUMNS, LINES = 100, 18  # of the terminal
LINES_OF_TASK: Final = 24
SIZE: Final = "1280,900"  # of the page
SUFFIXES: Final = {"en": "", "zh": ".zh"}
# A command of docs/tasks.md, and the picture that follows it.
TASK: Final = re.compile(r"^ {4}(mqreplay .*)\n\n!\[.*?\]\((tasks/(\w+)\.svg)\)", re.MULTILINE)


def shown(command: str, folder: Path = ROOT) -> str:
    """Return what a terminal with colours shows of a command."""
    programs = Path(sys.executable).parent
    terminal = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PATH": f"{programs}:{os.environ['PATH']}"}
    words = [str(programs / "mqreplay"), *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=folder, env={**os.environ, **terminal}, stdout=subprocess.PIPE, text=True)
    return done.stdout.replace(f"{folder}/", "")


def picture(command: str, text: str, name: str, lines: int = LINES) -> str:
    """Return the picture of a command and the first lines of its answer, in SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(f"$ {command}", style="bold", highlight=False)
    console.print(Text.from_ansi("\n".join(text.strip().splitlines()[:lines])))
    svg = console.export_svg(title=" ".join(command.split()[:2]), unique_id=f"terminal-{name}")
    return re.sub(r"\s*@font-face \{.*?\n    \}", "", svg, flags=re.DOTALL)  # it would ask another host


def page(path: Path) -> None:
    """Write the picture of the page's first screen."""
    html = (ROOT / WAREHOUSE / "report" / "DefaultCluster.html").as_uri()
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}", f"--screenshot={path}"]
    subprocess.run(["chromium", *options, html], check=True, capture_output=True)


def tasks() -> None:
    """Draw the answers of docs/tasks.md, in a folder with the warehouses that it names."""
    (DOCS / "tasks").mkdir(exist_ok=True)
    with TemporaryDirectory() as made:
        folder = Path(made)
        for name in ("data", "conf"):
            (folder / name).symlink_to(ROOT / name)
        shown("mqreplay nightly data/sample/orders-4.9.7 --warehouse warehouse/orders --conf conf/sample.toml", folder)
        two_nights(folder)
        for command, path, name in TASK.findall((DOCS / "tasks.md").read_text(encoding="utf-8")):
            svg = picture(command, shown(command, folder), name, LINES_OF_TASK)
            (DOCS / path).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    for lang, suffix in reversed(SUFFIXES.items()):  # the page stays in English
        answer = shown(f"mqreplay report --warehouse {WAREHOUSE} --lang {lang}")
        (DOCS / f"terminal{suffix}.svg").write_text(picture("mqreplay demo", answer, lang), encoding="utf-8")
        page(DOCS / f"report{suffix}.png")
    tasks()
