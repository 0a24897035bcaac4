"""Data Docs made safe to open, and good to read without a network.

Great Expectations writes the values it found into its pages as they are, has the pages load styles and scripts from
hosts on the Internet, and lets such a script draw the index. But a topic may well be named ``<script>``, and the people
who read these pages often sit in a network without a way out. So values are escaped before they are rendered; each page
loses its scripts and everything remote, is forbidden to load or run anything, and gets a plain style of its own; and
the index is written here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mqreplay.quality.scope import UNDATED

NOT_WANTED = re.compile(
    r"<script\b.*?</script\s*>|<footer\b.*?</footer\s*>|<link\b[^>]*>|<img\b[^>]*>|\son\w+=\"[^\"]*\"",
    re.DOTALL | re.IGNORECASE,
)
HEAD = """<head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; }
caption { text-align: left; white-space: nowrap; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 24px auto; padding: 0 16px; }
table { border-collapse: collapse; margin: 6px 0 14px; }
th, td { border: 1px solid #8886; padding: 4px 10px; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
h4, h5 { font-size: 17px; } h6 { font-size: 15px; }
.modal, button, input, label, nav ul:empty, #how-to-edit { display: none; }
.fa-check-circle::before { content: "holds"; color: #1d7a46; }
.fa-times::before { content: "fails"; color: #c5352b; font-weight: 700; }
.fas { font-style: normal; font-family: inherit; }
.text-danger { color: #c5352b; }
.show-scrollbars, .table-responsive { overflow-x: auto; }
</style>"""
INDEX = """<!doctype html>
<html lang="en">
{head}
<meta charset="utf-8">
<title>Expectations</title>
</head>
<body>
<h1>Expectations</h1>
<table>
<caption>Each table on each day, and how many of its expectations fail</caption>
<thead><tr><th scope="col">day</th><th scope="col">table</th><th scope="col">expectations</th>
<th scope="col">failed</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</body>
</html>
"""


def escaped(value: Any) -> Any:
    """A result's values with their text as HTML shows it."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, dict):
        return {key: escaped(v) for key, v in value.items()}
    return [escaped(v) for v in value] if isinstance(value, (list, tuple)) else value


def make_safe(docs_dir: str) -> None:
    """Rewrites every page under ``docs_dir``."""
    for path in sorted(Path(docs_dir).rglob("*.html")):
        page = NOT_WANTED.sub("", path.read_text(encoding="utf-8"))
        path.write_text(page.replace("<head>", HEAD, 1), encoding="utf-8")


def write_index(docs_dir: str, asked: Iterable[tuple[str, str, int, int]]) -> None:
    """The page to begin with: of each day and table its expectations, and how many of them fail.

    What fails comes first, then the newest day.
    """
    root = Path(docs_dir)
    pages = {_of_page(p.relative_to(root).parts): p for p in sorted(root.glob("*/validations/*/*/*/*/*.html"))}
    rows = []
    by_day = sorted(sorted(asked, key=lambda row: row[1]), key=lambda row: (row[0] != UNDATED, row[0]), reverse=True)
    for day, name, expectations, failed in sorted(by_day, key=lambda row: -row[3]):
        page = pages.get((day, name))
        shown = html.escape(name)
        if page is not None:
            shown = f'<a href="{html.escape(page.relative_to(root).as_posix())}">{shown}</a>'
        count = f'<td class="text-danger">{failed}</td>' if failed else "<td>0</td>"
        rows.append(f"<tr><td>{html.escape(day)}</td><td>{shown}</td><td>{expectations}</td>{count}</tr>")
    root.joinpath("index.html").write_text(INDEX.format(head=HEAD, rows="\n".join(rows)), encoding="utf-8")


def _of_page(parts: tuple[str, ...]) -> tuple[str, str]:
    """The day and the table that a page is of."""
    return parts[0], ".".join(parts[2:4])
