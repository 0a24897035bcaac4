"""What is installed from the wheel works anywhere: contracts, settings and sample travel with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("lib", "schemas", "conf", "data/sample")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
ASK = """
import json, mqreplay
from importlib.resources import files
from mqreplay.lake.contract import load_contracts
from mqreplay.machine.places import conf_dir, sample_dir
from mqreplay.settings import load_settings
load_settings()
print(json.dumps({
    "package": mqreplay.__file__,
    "contracts": sorted(load_contracts()),
    "texts": sorted(p.name for p in files("mqreplay.findings").iterdir() if p.name.endswith(".toml")),
    "conf": sorted(p.name for p in conf_dir().iterdir()),
    "sample": sorted(str(p.relative_to(sample_dir())) for p in sample_dir().rglob("*") if p.is_file()),
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the wheel's content and nothing else. Built from a copy: building litters its folder."""
    copy, wheels, target = (tmp_path_factory.mktemp(name) for name in ("copy", "wheels", "target"))
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "-w", str(wheels), str(copy)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.glob("mqreplay-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(target)
    return target


def test_contracts_settings_and_sample_are_there(installed: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["package"].startswith(str(installed))
    assert said["contracts"] == sorted(f"{p.parent.name}.{p.stem}" for p in (ROOT / "schemas").glob("*/*.yaml"))
    assert said["texts"] == sorted(p.name for p in (ROOT / "lib/mqreplay/findings").glob("*.toml"))
    assert said["conf"] == sorted(p.name for p in (ROOT / "conf").iterdir())
    sample = ROOT / "data" / "sample"
    assert said["sample"] == sorted(str(p.relative_to(sample)) for p in sample.rglob("*") if p.is_file())


def test_doctor_finds_nothing_wrong_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "PYTHONPATH": str(installed)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "mqreplay.cli", "doctor", "--json"]
    done = subprocess.run(
        command, cwd=tmp_path / "home", env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )
    found = {check["what"]: check for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, done.stderr) == (0, ""), found
    assert found["settings"]["said"] == str(installed / "mqreplay" / "shipped" / "conf" / "local.toml")
    assert list((tmp_path / "home").iterdir()) == []


def test_nothing_but_the_package(installed: Path) -> None:
    assert {path.name.split("-")[0] for path in installed.iterdir()} == {"mqreplay"}
    assert [p for p in installed.rglob("*") if p.name in {"tests", "shared", "__pycache__"}] == []
    assert list(installed.glob("*.dist-info/licenses/LICENSE"))


def test_what_is_read_beside_the_code_is_packed(installed: Path) -> None:
    package = ROOT / "lib" / "mqreplay"
    beside = [p.relative_to(package) for p in package.rglob("*") if p.is_file() and p.suffix not in {".py", ".pyc"}]
    assert [str(p) for p in beside if not (installed / "mqreplay" / p).is_file()] == []
