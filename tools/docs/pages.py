"""Generate all pages that have a source: `python tools/docs/pages.py`, or only some: `... pages.py docs/settings.md`.

docs/development/mutation.md is not among them: `make mutate` takes half an hour.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Page -> arguments of Python. The command prints the whole page.
PAGES: Mapping[str, tuple[str, ...]] = {
    "conf/local.toml": ("tools/docs/settings.py", "--toml"),
    "docs/settings.md": ("tools/docs/settings.py",),
    "docs/findings.md": ("tools/docs/findings.py",),
    "docs/known_issues.md": ("tools/docs/known_issues.py",),
    "docs/questions.md": ("tools/docs/questions.py",),
    "docs/sql.md": ("tools/docs/sql.py",),
    "docs/tables.md": ("-m", "mqreplay.lake.table_docs"),
    "docs/decisions.md": ("tests/vectors/decisions.py",),
}


def generated(page: str) -> str:
    """Return the text that the command of a page prints."""
    command = [sys.executable, *PAGES[page]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(f"{page}: {' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Write the pages that are named, or all."""
    parser = argparse.ArgumentParser(description="Generate the pages of docs/ that have a source.")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"one of {', '.join(PAGES)}; all without it")
    for page in parser.parse_args().pages or PAGES:
        (ROOT / page).write_text(generated(page), encoding="utf-8")


if __name__ == "__main__":
    main()
