"""The house keeps its shape: arrows of imports, a pure core, files of one idea, locks that name no host."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from each_case import for_each

ROOT = Path(__file__).parents[1]
LIB = ROOT / "lib" / "mqreplay"
SOURCES = sorted(LIB.rglob("*.py"))
LOCKS = sorted((ROOT / "requirements").glob("*"))
LONGEST = 350
HEAVY = ("pyspark", "py4j", "delta", "deltalake", "pandas", "polars", "numpy", "pyarrow", "great_expectations")


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


def test_the_page_has_the_rooms_and_their_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in LIB.glob("*/__init__.py")}
    folders = re.findall(r"^\| (`lib/.*?) \|", page, re.MULTILINE)
    assert sorted(name.rpartition("/")[2] for each in folders for name in re.findall(r"`(.+?)`", each)) == sorted(rooms)
    storeys = [set(line.split(", ")) for line in re.findall(r"^\d+\. (.+)$", page, re.MULTILINE)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (house,) = [each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    layers = [set(layer.split(" | ")) for layer in reversed(house["layers"])]
    assert storeys == [layer & rooms for layer in layers if layer & rooms]  # without __main__


@pytest.mark.parametrize("package", ["core", "decode"])
def test_pure_package_loads_nothing_heavy(package: str) -> None:
    # Every module of it, in a Python of its own: here the tests may have loaded Spark already.
    modules = [
        ".".join(path.relative_to(LIB.parent).with_suffix("").parts)
        for path in (LIB / package).rglob("*.py")
        if path.stem != "__init__"
    ]
    script = (
        f"import importlib, sys; [importlib.import_module(m) for m in {modules!r}]; "
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert modules
    assert done.stdout.strip() == "[]"


def run_without_tables(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python that cannot load Spark, polars and the libraries of tables."""
    missing = ("pyspark", "py4j", "delta", "deltalake", "polars", "pyarrow", "pandas", "numpy", "duckdb", "obstore")
    block = f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\n"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    return subprocess.run(
        [sys.executable, "-c", block + script], env=env, capture_output=True, text=True, check=False, cwd=ROOT
    )


def test_makers_of_recordings_load_without_spark_and_polars() -> None:
    rooms = ("recorder", "importer", "bundle")
    paths = [path.relative_to(LIB.parent).with_suffix("") for room in rooms for path in (LIB / room).rglob("*.py")]
    modules = [".".join(path.parts) for path in paths if path.name != "__init__"]
    done = run_without_tables(f"import importlib; [importlib.import_module(m) for m in {modules!r}]")
    assert modules
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["record --help", "import --help", "import"])
def test_recordings_are_made_without_spark_and_polars(command: str, tmp_path: Path) -> None:
    arguments = command.split()
    if command == "import":
        arguments += ["data/sample/orders-4.9.7/mqadmin", "--out", str(tmp_path / "recording")]
    done = run_without_tables(f"from mqreplay.cli.command_line import main; sys.exit(main({arguments!r}))")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "recording" / "topic_stats.jsonl.gz").exists() == (command == "import")


def test_who_validates_nothing_does_not_wait_for_great_expectations() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    script = "import sys, mqreplay.night, mqreplay.terminal.outcome; print('great_expectations' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_pure_tests_are_collected_without_spark() -> None:
    script = (
        "import sys, pytest; sys.modules.update(dict.fromkeys(['pyspark', 'delta', 'great_expectations'])); "
        "sys.exit(pytest.main(['--collect-only', '-qq', '-p', 'no:cacheprovider', *sys.argv[1:]]))"
    )
    command = [sys.executable, "-c", script, "tests/core", "tests/decode", "tests/vectors"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@for_each(sorted((ROOT / "jobs").glob("*.py")))
def test_job_is_thin(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    tree = ast.walk(ast.parse(text))
    ours = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
    assert ours <= {"__future__", "mqreplay.cli.job", "mqreplay.night", "mqreplay.settings", "mqreplay.words.errors"}


def tracked() -> list[Path]:
    """Every text of ours in the repository; not what was recorded elsewhere."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and "/data/" not in name and not name.startswith("data/")]
    return [ROOT / name for name in names if not name.endswith(".gz") and (ROOT / name).is_file()]


def test_no_file_names_where_packages_come_from() -> None:
    # In two halves, or this file would name them itself.
    hosts = [
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "maven" + ".org",
        "maven" + ".apache.org",
        "spark-packages" + ".org",
    ]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in tracked()}
    assert texts
    assert [(str(path), host) for path, text in texts.items() for host in hosts if host in text] == []


@for_each(SOURCES)
def test_file_is_of_a_length_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert path.stem not in {"helpers", "utils", "common", "misc"}


@for_each(LOCKS)
def test_requirements_name_no_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["build", "runtime", "dev", "airflow"])
def test_every_pin_has_its_digests(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = [e for e in text.replace("\\\n", " ").splitlines() if re.match(r"[A-Za-z0-9]", e)]
    assert entries
    assert [e for e in entries if "==" not in e or "--hash=sha256:" not in e] == []


def test_direct_dependencies_are_locked_within_their_ranges() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    lines = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8").splitlines()
    locked = {canonicalize_name(line.split("==")[0]): line.split("==")[1].split()[0] for line in lines if "==" in line}
    for requirement in map(Requirement, wanted):
        version = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} does not allow {version}"
        assert str(requirement.specifier), f"{requirement.name} has no range"
