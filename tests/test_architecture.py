"""The house keeps its shape: arrows of imports, a pure core, files of one idea, locks that name no host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIB = ROOT / "lib" / "mqreplay"
SOURCES = sorted(LIB.rglob("*.py"))
LOCKS = sorted((ROOT / "requirements").glob("*"))
LONGEST = 350
HEAVY = ("pyspark", "py4j", "delta", "pandas", "numpy", "pyarrow", "great_expectations")


def test_arrows_of_imports() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "lib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kept = re.search(r"Contracts: (\d+) kept, 0 broken", done.stdout)
    assert kept is not None, done.stdout
    assert int(kept[1]) > 0


@pytest.mark.parametrize("package", ["core", "decode"])
def test_pure_package_loads_nothing_heavy(package: str) -> None:
    # Every module of it, in a Python of its own: here the tests may have loaded Spark already.
    modules = [f"mqreplay.{package}.{path.stem}" for path in (LIB / package).glob("*.py") if path.stem != "__init__"]
    script = (
        f"import importlib, sys; [importlib.import_module(m) for m in {modules!r}]; "
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert modules
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(LIB)))
def test_file_is_of_a_length_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert path.stem not in {"helpers", "utils", "common", "misc"}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_requirements_name_no_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["build", "runtime", "dev"])
def test_every_pin_has_its_digests(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = [e for e in text.replace("\\\n", " ").splitlines() if re.match(r"[A-Za-z0-9]", e)]
    assert entries
    assert [e for e in entries if "==" not in e or "--hash=sha256:" not in e] == []


def test_direct_dependencies_are_locked_as_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8").lower()
    assert [d for d in project["dependencies"] if f"\n{d.lower()} " not in locked] == []
