"""Delta's JARs: missing ones are downloaded, checked and installed completely or not at all. No Spark, no network."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pyspark
import pytest

from mqreplay.lake import jars
from mqreplay.lake.session import build_session
from mqreplay.settings import SparkSettings
from mqreplay.words.errors import MqreplayError

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
LOCKS = [REQUIREMENTS / "runtime.txt", *REQUIREMENTS.glob("spark-*.txt")]
IVY_OUTPUT = """
:: loading settings ::
        module not found: io.delta#delta-spark
    Server access error at url somewhere (java.net.ConnectException: Connection refused)
pyspark.errors.PySparkRuntimeError: [JAVA_GATEWAY_EXITED] Java gateway process exited
"""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch):
    """registry({name: content}): what a resolution brings, named as Ivy names it."""

    def holds(content: dict[str, bytes], output: str = IVY_OUTPUT) -> None:
        def resolve(ivy: str) -> str:
            Path(ivy, "jars").mkdir()
            for name, data in content.items():
                Path(ivy, "jars", f"org.group_{name}").write_bytes(data)
            return output

        monkeypatch.setattr(jars, "_resolve", resolve)

    pinned = {"other-1.0.jar": b"o", "thing_2.13-4.2.jar": b"2"}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in pinned.items()}
    monkeypatch.setattr(jars, "delta_release", lambda: jars.DeltaRelease("thing_2.13", "4.2", digests))
    return holds


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_those_of_this_python_are_there() -> None:
    assert jars.missing_jars() == []
    assert jars.install_jars() == []
    expected = jars.delta_release().jars
    assert {name: hashlib.sha256((jars.jars_folder() / name).read_bytes()).hexdigest() for name in expected} == expected


@pytest.mark.parametrize(
    ("version", "package"),
    [
        ("3.5.9", "io.delta:delta-spark_2.12:3.3.3"),
        ("4.0.0", "io.delta:delta-spark_2.13:4.0.1"),
        ("4.1.4", "io.delta:delta-spark_4.1_2.13:4.4.0"),
    ],
)
def test_each_version_of_spark_has_a_release_of_delta(
    version: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    release = jars.delta_release()
    assert release.package == package
    assert f"{release.artifact}-{release.version}.jar" in release.jars


@pytest.mark.parametrize("version", ["3.4.4", "4.10.0", "5.0.0.dev1"])
def test_another_version_of_spark_is_refused_in_one_line(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(MqreplayError, match=rf"^pyspark {version} is not supported; install one of 3\.5, 4\.0, 4\.1$"):
        jars.delta_release()


def test_locked_versions_of_spark_are_those_with_jars() -> None:
    locked = {re.search(r"^pyspark==(\d+\.\d+)\.", path.read_text(encoding="utf-8"), re.MULTILINE)[1] for path in LOCKS}
    assert locked == set(jars.RELEASES)


def test_missing_ones_are_put_in_and_other_versions_make_way(registry, tmp_path: Path) -> None:
    (tmp_path / "thing_2.13-4.1.jar").write_bytes(b"1")
    (tmp_path / "thing_2.13-extra-4.1.jar").write_bytes(b"another artifact")
    registry({"other-1.0.jar": b"o", "thing_2.13-4.2.jar": b"2", "more-9.jar": b""})
    assert jars.install_jars(tmp_path) == ["other-1.0.jar", "thing_2.13-4.2.jar"]
    assert names(tmp_path) == ["other-1.0.jar", "thing_2.13-4.2.jar", "thing_2.13-extra-4.1.jar"]
    assert jars.install_jars(tmp_path) == []


def test_without_a_network_the_reason_is_one_line(registry, tmp_path: Path) -> None:
    registry({})
    with pytest.raises(MqreplayError) as error:
        jars.install_jars(tmp_path)
    assert "other-1.0.jar could not be downloaded (Server access error at url somewhere" in str(error.value)
    assert "\n" not in str(error.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "no reason was given"),
        ("no answer in 600 s", "no answer in 600 s"),
        ("\t\t:: io.delta#delta-spark;4.4.0: not found", "io.delta#delta-spark;4.4.0: not found"),
        (
            "  raise PySparkRuntimeError(\npyspark.errors.SomeError: Java is gone",
            "pyspark.errors.SomeError: Java is gone",
        ),
    ],
)
def test_reason_is_the_line_that_tells(output: str, reason: str) -> None:
    assert jars._reason(output) == reason


def test_jar_of_other_bytes_is_refused_and_nothing_put_in(registry, tmp_path: Path) -> None:
    registry({"other-1.0.jar": b"o", "thing_2.13-4.2.jar": b"not what was pinned"})
    with pytest.raises(MqreplayError, match=r"thing_2\.13-4\.2\.jar has SHA-256 .* nothing was installed"):
        jars.install_jars(tmp_path)
    assert names(tmp_path) == []


def test_session_without_them_fetches_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jars, "jars_folder", lambda: tmp_path)
    with pytest.raises(
        MqreplayError, match=r"missing from .*delta-spark.*`\S*python\S* -m mqreplay.lake.jars` downloads and"
    ):
        build_session("none", SparkSettings(extra={"spark.jars": "/x/other.jar"}))
    jars.require_jars({"spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0"})
    jars.require_jars({"spark.jars": "/x/delta-spark_4.1_2.13-4.4.0.jar,/x/delta-storage-4.4.0.jar"})


def test_executors_get_them_unless_the_user_brings_delta() -> None:
    names = list(jars.delta_release().jars)
    handed = jars.for_executors({"spark.jars": "s3a://b/own.jar"})["spark.jars"].split(",")
    assert handed[0] == "s3a://b/own.jar"
    assert [each.rsplit("/", 1)[1] for each in handed[1:]] == names
    assert jars.for_executors({"spark.jars.packages": jars.delta_release().package}) == {}


def test_module_says_nothing_when_all_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert jars.main() == 0
    assert capfd.readouterr() == ("", "")


def test_module_fails_with_one_line(registry, capfd: pytest.CaptureFixture[str]) -> None:
    registry({})
    assert jars.main() == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("mqreplay: Delta's JAR")
    assert err.count("\n") == 1
