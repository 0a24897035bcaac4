"""What `mqreplay doctor` says about the machine, and how it is mended."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pyspark
import pytest

from mqreplay.cli.doctor.machine import examine_machine
from mqreplay.lake.jars import delta_release
from mqreplay.settings import Settings


def checks() -> dict[str, tuple[bool, str]]:
    out = StringIO()
    good = examine_machine(Settings(source=("own.toml",)), out, as_json=True)
    found = {each["what"]: (each["ok"], each["said"]) for each in json.loads(out.getvalue())["checks"]}
    assert good == all(ok for ok, _ in found.values())
    return found


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another Spark, with Delta's JARs and without Spark's own."""
    for name in delta_release().jars:
        (tmp_path / "jars" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "jars" / name).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    return tmp_path


def test_this_machine_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    found = checks()
    assert all(ok for ok, _ in found.values()), found
    assert found["settings"][1] == "own.toml"


def test_missing_jars_and_the_command_of_this_python(spark_home: Path) -> None:
    next(iter((spark_home / "jars").iterdir())).unlink()
    good, text = checks()["jars"]
    assert not good
    assert text.startswith(f"missing from {spark_home}/jars: ")
    assert text.endswith(f"; run `{sys.executable} -m mqreplay.lake.jars`")


@pytest.mark.parametrize(
    ("core", "good", "text"),
    [
        (None, False, "has no Spark; unset SPARK_HOME"),
        ("spark-core_2.13-3.5.1.jar", False, "has Spark 3.5.1; unset SPARK_HOME"),
        (f"spark-core_2.13-{pyspark.__version__}.jar", True, f"Spark {pyspark.__version__} of SPARK_HOME"),
    ],
)
def test_another_spark(spark_home: Path, core: str | None, good: bool, text: str) -> None:
    if core is not None:
        (spark_home / "jars" / core).touch()
    found = checks()
    assert found["jars"][0]
    assert found["spark"][0] == good
    assert text in found["spark"][1]


def test_java_home_that_has_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    good, text = checks()["java"]
    assert not good
    assert text.startswith(f"{tmp_path}/bin/java of JAVA_HOME does not exist; install Java 17")
    assert text.endswith("the local engine needs no Java")


def test_a_machine_without_spark_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    found = checks()
    assert list(found) == ["python", "spark", "disk", "settings"]
    assert found["spark"][0]
    assert found["spark"][1].startswith("not installed: the local engine does not need it; pip install")
