"""Java loads its classes from the archive that setup made, and prints nothing on stdout if it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqreplay.lake import class_archive
from mqreplay.lake.separate_process import FOREIGN
from mqreplay.words.errors import MqreplayError

LIB = Path(__file__).parents[2] / "lib"
# argv: the archive to start from, and where Java is to write which classes it loaded, and from what.
START = """
import pathlib, sys
from mqreplay.lake import class_archive, session
class_archive.archive_path = lambda: pathlib.Path(sys.argv[1])
session.JAVA += f" -Xlog:class+load:file={sys.argv[2]}"
spark = session.build_session("classes", session.SparkSettings())
print(spark.range(3).count())
spark.stop()
"""


def start(archive: Path, loaded: Path) -> str:
    """Starts a session from it; gives what was said on stdout."""
    foreign = (*FOREIGN, "PYSPARK_PYTHON")
    env = {name: value for name, value in os.environ.items() if name not in foreign} | {"PYTHONPATH": str(LIB)}
    command = [sys.executable, "-c", START, str(archive), str(loaded)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_java_starts_from_the_archive_of_setup(tmp_path: Path) -> None:
    archive = class_archive.archive_path()
    assert archive is not None, "`make setup` makes it"
    assert start(archive, tmp_path / "loaded") == "3\n"
    lines = (tmp_path / "loaded").read_text().splitlines()
    shared = [line for line in lines if line.endswith("shared objects file (top)")]
    assert len(shared) > 5_000
    assert any("org.apache.spark.sql.classic.SparkSession " in line for line in shared)


@pytest.mark.long
def test_what_java_cannot_take_is_passed_over(tmp_path: Path) -> None:
    other = tmp_path / "other.jsa"
    other.write_bytes(b"of another Java" * 1000)
    assert start(other, tmp_path / "loaded") == "3\n"
    assert "shared objects file (top)" not in (tmp_path / "loaded").read_text()


def test_without_an_archive_nothing_is_asked_of_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / 'with "blanks"'
    folder.mkdir()
    monkeypatch.setattr(class_archive, "jars_folder", lambda: folder)
    assert class_archive.archive_options() == ""
    (folder / "mqreplay-classes-3.jsa").write_bytes(b"abc")
    assert class_archive.archive_options().startswith(
        f'"-XX:SharedArchiveFile={tmp_path}/with \\"blanks\\"/mqreplay-classes-3.jsa" -XX:+VerifySharedSpaces '
    )


def ask_java(archive: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["java", f"-XX:SharedArchiveFile={archive}", *options, "-Xlog:cds", "-version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=archive.parent)


def test_archive_that_is_cut_short_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = class_archive.archive_path()
    assert whole is not None
    torn = tmp_path / whole.name
    shutil.copyfile(whole, torn)
    os.truncate(torn, whole.stat().st_size // 2)
    assert ask_java(torn, "-XX:-CreateCoredumpOnCrash").returncode  # Java would crash
    monkeypatch.setattr(class_archive, "jars_folder", lambda: tmp_path)
    assert class_archive.archive_options() == ""


def test_archive_with_changed_bytes_is_not_used(tmp_path: Path) -> None:
    whole = class_archive.archive_path()
    assert whole is not None
    changed = tmp_path / whole.name
    shutil.copyfile(whole, changed)
    with changed.open("r+b") as file:
        file.seek(whole.stat().st_size // 2)
        file.write(b"other bytes")
    checked = class_archive.CHECKED.split()[0]
    assert "Checksum verification failed" not in ask_java(changed).stdout  # Java would not notice
    assert "Checksum verification failed" in ask_java(changed, checked).stdout
    assert "Checksum verification failed" not in ask_java(whole, checked).stdout


def test_one_that_cannot_be_made_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(class_archive, "jars_folder", lambda: tmp_path)
    monkeypatch.setattr(class_archive, "TRAIN", "import sys; open(sys.argv[1], 'w').close(); sys.exit('Java fell ill')")
    with pytest.raises(MqreplayError, match="no archive of Java's classes was made: Java fell ill"):
        class_archive.make_archive()
    assert list(tmp_path.iterdir()) == []
    assert class_archive.main() == 2
    monkeypatch.setattr(class_archive, "jars_folder", lambda: tmp_path / "nowhere")
    with pytest.raises(MqreplayError, match=r"nowhere.* cannot be written: No such file"):
        class_archive.make_archive()
