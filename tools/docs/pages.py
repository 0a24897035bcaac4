"""Generate all pages that have a source: `python tools/docs/pages.py`, or only some: `... pages.py docs/settings.md`.

docs/development/mutation.md is not among them: `make mutate` takes half an hour.
"""

from __future__ import annotations

import argparse
import os
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
    "docs/messages.md": ("tools/docs/messages.py",),
    "docs/questions.md": ("tools/docs/questions.py",),
    "docs/rules_on_spark.md": ("tools/docs/rules_on_spark.py",),
    "docs/sql.md": ("tools/docs/sql.py",),
    "docs/symptoms.md": ("tools/docs/symptoms.py",),
    "docs/tables.md": ("tools/docs/tables.py",),
    "docs/decisions.md": ("tests/vectors/decisions.py",),
}


def generated(page: str) -> str:
    """Return the text that the command of a page prints."""
    command = [sys.executable, *PAGES[page]]
    search = os.pathsep.join(filter(None, [str(ROOT / "tools"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": search}  # pages use each other's functions
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False)
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
