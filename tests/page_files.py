"""The files that a page of docs/ shows, and their use in a Python of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests_shared import ROOT

_FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files_of(page: str) -> dict[str, str]:
    """Return the files that a page shows by name: a code block under a line that has only the name."""
    return dict(_FILE.findall((ROOT / page).read_text(encoding="utf-8")))


def install(site: Path, files: dict[str, str]) -> None:
    """Install the modules and texts of a package, as pip does: the files, and metadata made of its pyproject.toml."""
    site.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        if name.endswith((".py", ".toml")) and name != "pyproject.toml":
            (site / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join([*groups, ""]), encoding="utf-8")


def run(arguments: Sequence[str], *paths: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with these folders on its path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, check=False, timeout=300
    )
