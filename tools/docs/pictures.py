"""Take the pictures of README.md and docs/tasks.md anew: terminals, and the first screen of a page.

    make demo && PYTHONPATH=tests .venv/bin/python -P tools/docs/pictures.py
    PYTHONPATH=tests .venv/bin/python -P tools/docs/pictures.py watch own    # these tasks alone

Terminals are drawn by rich, the page by Chromium. The README's are of warehouse/demo, those of the tasks of nights that
are judged here. The Chinese ones need a Chinese font (Debian: fonts-wqy-microhei).
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.text import Text

from findings.test_a_new_finding import FILES, heartbeats
from night.feed import Feed
from night.later import moved
from page_files import install
from test_documented_commands import two_nights

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
WAREHOUSE: Final = "warehouse/demo"
COLUMNS, LINES = 100, 18  # of the terminal
LINES_OF_TASK: Final = 24
SIZE: Final = "1280,900"  # of the page
SUFFIXES: Final = {"en": "", "zh": ".zh"}
ORDERS: Final = "mqreplay nightly data/sample/orders-4.9.7 --warehouse warehouse/orders --conf conf/sample.toml"
SITE: Final = "my-findings"  # the package of docs/development/a-new-finding.md
GROWN_S, WATCHED_S = 50, 75  # of the recording that is watched
# A command of docs/tasks.md, and the picture that follows it.
TASK: Final = re.compile(r"^ {4}(mqreplay .*)\n\n!\[.*?\]\((tasks/(\w+)\.svg)\)", re.MULTILINE)


def shown(command: str, folder: Path = ROOT, live: Feed | None = None) -> str:
    """Return what a terminal with colours shows of a command; of one that watches ``live``, of its first minute."""
    programs = Path(sys.executable).parent
    terminal = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PATH": f"{programs}:{os.environ['PATH']}"}
    paths = {"PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{folder / SITE}"}
    words = [str(programs / "mqreplay"), *shlex.split(command)[1:]]
    with subprocess.Popen(
        words, cwd=folder, env={**os.environ, **terminal, **paths}, stdout=subprocess.PIPE, text=True
    ) as started:
        if live is not None:
            end = time.time() + WATCHED_S
            while time.time() < end:
                live.until(int(time.time() * 1000))
                time.sleep(1)
            started.send_signal(signal.SIGINT)
        return started.communicate()[0].replace(f"{folder}/", "")


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


def growing(to: Path, folder: Path) -> Feed:
    """Return a recording of the sample that has grown for some time, and grows now."""
    sample = ROOT / "data/sample/bulk-5.3.3"
    begin = Feed(sample, folder / "reach").reach[0]
    by_ms = int(time.time() * 1000) - (begin + GROWN_S * 1000)
    return Feed(moved(sample, folder / "moved", by_ms), to)


def tasks(only: Collection[str] = ()) -> None:
    """Draw the answers of docs/tasks.md, or some of them, in a folder with the warehouses that it names."""
    (DOCS / "tasks").mkdir(exist_ok=True)
    with TemporaryDirectory() as made:
        folder = Path(made)
        for name in ("data", "conf"):
            (folder / name).symlink_to(ROOT / name)
        if not only:
            shown(ORDERS, folder)
            two_nights(folder)
        install(folder / SITE, FILES)
        (folder / "recordings/night").mkdir(parents=True)
        (folder / "recordings/night/heartbeats.jsonl").write_text(heartbeats(), encoding="utf-8")
        for command, path, name in TASK.findall((DOCS / "tasks.md").read_text(encoding="utf-8")):
            if only and name not in only:
                continue
            if name == "watch":
                live = growing(folder / "recordings/live", folder)
                live.until(int(time.time() * 1000))
                answer = shown(f"{command.partition(' --notify')[0]} --every 10s", folder, live)
            else:
                answer = shown(command, folder)
            (DOCS / path).write_text(picture(command, answer, name, LINES_OF_TASK), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        tasks(sys.argv[1:])
        sys.exit()
    for lang, suffix in reversed(SUFFIXES.items()):  # the page stays in English
        answer = shown(f"mqreplay report --warehouse {WAREHOUSE} --lang {lang}")
        (DOCS / f"terminal{suffix}.svg").write_text(picture("mqreplay demo", answer, lang), encoding="utf-8")
        page(DOCS / f"report{suffix}.png")
    tasks()
