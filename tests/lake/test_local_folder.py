"""Folders given by a user: a path that is not a local folder is refused in one line, before anything is made."""

from __future__ import annotations

import locale
import os
from pathlib import Path

import pytest

from mqreplay.cli import command_line as cli
from mqreplay.lake.local_folder import check_folders, folder
from mqreplay.machine.local_files import check_on_disk, local_folder, output_folder
from mqreplay.words.errors import InputError

UNKNOWN = ["file:///x", "file:/x", "dbfs:/x", "viewfs:/x"]


@pytest.mark.parametrize("uri", [*UNKNOWN, "s3://b/w", "hdfs://namenode:8020/x"])
def test_uri_is_no_local_folder(uri: str) -> None:
    with pytest.raises(InputError, match=r"warehouse '.*' is a URI, but a local folder is needed here") as error:
        local_folder(uri, "warehouse")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("uri", "taken"),
    [
        ("s3://bucket/night/", "s3://bucket/night"),
        ("S3A://bucket", "s3a://bucket"),
        ("hdfs://namenode:8020/x", "hdfs://namenode:8020/x"),
        ("abfss://c@a.example/x y", "abfss://c@a.example/x y"),
        ("gs://b/x", "gs://b/x"),
    ],
)
def test_uri_of_a_store_is_a_folder(uri: str, taken: str) -> None:
    assert folder(uri, "warehouse") == taken


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("s3:///x", "names no bucket: write s3://BUCKET/FOLDER"),
        ("hdfs:///x", "names no host: write hdfs://HOST/FOLDER"),
        ("ftp://a/x", "no store of this scheme is supported; there are s3,"),
        ("s3://b//x", "has an empty part"),
        ("s3://b/a/../x", r"has an empty part, '.', '..'"),
        ("s3://b/a\nb", "control character"),
        ("dbfs:/x", "a local folder is needed here"),
        ("file:///x", "write /x for it"),
    ],
)
def test_uri_that_names_no_folder_is_refused_in_one_line(uri: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        folder(uri, "warehouse")
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("warehouse", "recording"),
    [("s3://b/w", "s3://b/w/night"), ("s3://b/night/w", "s3://b/night"), ("s3://b", "s3://b/night")],
)
def test_uris_do_not_overlap(warehouse: str, recording: str) -> None:
    with pytest.raises(InputError, match="is inside"):
        check_folders(warehouse, [recording])
    check_folders("s3://b/night-w", ["s3://b/night", "/b/night-w"])


@pytest.mark.parametrize(
    "name",
    [
        "a:b",
        "./a:b",
        "./s3a://b",
        "C:/x",
        "a%20b",
        "a b",
        "-x",
        "#a?b*[c]{d}\\e",
        "`${env:HOME}'\"",
        "é東京",
        "x" * 255,
    ],
)
def test_other_names_are_folders(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_folder(name, "warehouse") == tmp_path / name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is empty"),
        ("a\nb", "control character"),
        ("a\x1b]0;x\x07", "control character"),
        ("a\x9bb", "control character"),
        ("a\x00b", "is not a valid folder name"),
        ("\udce9", "not UTF-8; rename it"),
        ("x" * 256, "too long"),
        ("é" * 128, "too long"),
        ("x/" * 2000, "too long"),
    ],
)
def test_names_that_some_program_cannot_use_are_refused_in_one_line(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        local_folder(name, "warehouse")
    assert str(error.value).isprintable()


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="is not a valid folder name"):
        local_folder(str(tmp_path / "a" / "w"), "warehouse")


def test_warehouse_and_recording_do_not_overlap(tmp_path: Path) -> None:
    recording = tmp_path / "night"
    recording.mkdir()
    (tmp_path / "link").symlink_to(recording)
    for warehouse in (recording, recording / "w", tmp_path / "link" / "w", recording / "a" / ".." / "w"):
        with pytest.raises(InputError, match=r"warehouse .* is inside the recording .*/night"):
            check_folders(str(warehouse), [str(tmp_path), str(recording)][1:])
    with pytest.raises(InputError, match=r"recording .*/night is inside the warehouse"):
        check_folders(str(tmp_path), [str(recording)])
    check_folders(str(tmp_path / "night-tables"), [str(recording)])


@pytest.mark.parametrize("path", ["/w/é", "/w/??", "/w/\ufffd"])
def test_spark_submit_with_another_character_set_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locale, "getencoding", lambda: "ANSI_X3.4-1968")
    local_folder(path, "warehouse")
    monkeypatch.setitem(os.environ, "PYSPARK_GATEWAY_PORT", "1")
    local_folder("/w/plain", "warehouse")
    with pytest.raises(InputError, match=r"set LC_ALL=C.UTF-8 for spark-submit"):
        local_folder(path, "warehouse")


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest", "night", "--warehouse", "ftp://b/w"],
        ["ingest", "file:///b/night", "--warehouse", "w"],
        ["validate", "--warehouse", "file:///w"],
        ["sql", "SELECT 1", "--warehouse", "hdfs:///w"],
        ["explain", "f", "--warehouse", "dbfs:/w"],
        ["import", "x.pcap", "--out", "gs://b/night"],
        ["ingest", "night", "--warehouse", "night/w"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_commands_refuse_before_they_make_anything(arguments, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "night").mkdir()
    (tmp_path / "night" / "pull_log.jsonl").write_bytes(b"{}\n")
    assert cli.main(arguments) == 2
    out, err = capfd.readouterr()
    *progress, said = err.splitlines()
    assert (out, [line for line in progress if "starting Spark" not in line]) == ("", [])
    told = (
        "is a URI: make the recording in a local folder",
        "is a URI, but a local folder",
        "no store of this scheme",
        "names no host",
        "is inside the recording",
    )
    assert any(words in said for words in told), said
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["night", "night/pull_log.jsonl"]


def test_recordings_are_made_in_local_folders(tmp_path):
    with pytest.raises(InputError, match=r"is a URI: make the recording in a local folder and copy it"):
        output_folder("s3://b/x")
    assert output_folder(str(tmp_path)) == tmp_path
    check_on_disk([str(tmp_path), "a:b"], "import")
    with pytest.raises(InputError, match=r"import reads files of this machine: copy hdfs://h/x to a local folder"):
        check_on_disk([str(tmp_path), "hdfs://h/x"], "import")
