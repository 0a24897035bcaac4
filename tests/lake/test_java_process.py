"""Java is started with the folder, the lock, the character set and the secret that it needs, in the running session."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from mqreplay.lake import java_process
from mqreplay.lake.java_process import check_java_names
from mqreplay.lake.scratch import MARKER, scratch
from mqreplay.lake.session import AUTHENTICATE, LOCAL_DIR, _one_process, _user_sets
from mqreplay.words.errors import InputError

STREAM_REQUEST = 6  # of the types of Spark's messages between its processes


def ask_for_a_file(port: int) -> bytes:
    """What Spark's driver answers to someone without the secret who asks it for a file."""
    name = b"/files/none"
    body = struct.pack(">bi", STREAM_REQUEST, len(name)) + name
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall(struct.pack(">q", 8 + len(body)) + body)
        size, _, told = struct.unpack(">qbi", line.recv(13, socket.MSG_WAITALL))
        return line.recv(size - 13, socket.MSG_WAITALL)[told:]


def test_driver_answers_nobody_without_its_secret(spark) -> None:
    assert b"Unauthenticated" in ask_for_a_file(int(spark.conf.get("spark.driver.port")))
    assert spark.conf.get("spark.authenticate.secret", None) is None  # nobody finds it on the command line


def test_java_holds_the_lock_of_the_temporary_files(spark) -> None:
    java = spark.sparkContext._gateway.proc.pid
    marker = scratch().folder / MARKER
    open_files = set()
    for path in Path(f"/proc/{java}/fd").iterdir():
        with suppress(FileNotFoundError):  # Java opens and closes others meanwhile
            open_files.add(os.readlink(path))
    assert str(marker) in open_files
    with marker.open("r+") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_all_that_is_temporary_lies_in_the_folder_of_the_process(spark) -> None:
    system = spark.sparkContext._jvm.java.lang.System
    given = {
        "java": system.getProperty("java.io.tmpdir"),
        "spark": spark.conf.get(LOCAL_DIR),
        "sockets": spark.conf.get("spark.python.unix.domain.socket.dir"),
        "tables": spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"),
    }
    assert given == {name: str(scratch().part(name)) for name in given}
    assert system.getProperty("derby.system.home") == given["java"]
    worker = spark.range(1).mapInArrow(_temporary_folder, "folder STRING").collect()[0].folder
    assert worker == given["java"]
    assert system.getProperty("sun.jnu.encoding") == "UTF-8"


def _temporary_folder(batches):
    import tempfile

    import pyarrow

    for _ in batches:
        yield pyarrow.record_batch({"folder": [tempfile.gettempdir()]})


def test_java_that_names_files_otherwise_is_refused(spark) -> None:
    system = spark.sparkContext._jvm.java.lang.System
    check_java_names("/w/é")
    before = system.setProperty("sun.jnu.encoding", "ANSI_X3.4-1968")
    try:
        check_java_names("/w/plain")
        with pytest.raises(InputError, match="set LC_ALL to a UTF-8 locale"):
            check_java_names("/w/é")
    finally:
        system.setProperty("sun.jnu.encoding", before)


@pytest.mark.parametrize("master", ["spark://h:7077", "local-cluster[1,1,1024]", "yarn", ""])
def test_clusters_keep_their_own_folders_and_secrets(master: str) -> None:
    assert _one_process(master) == {}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]"])
def test_one_process_has_a_folder_and_a_secret(master: str) -> None:
    assert _one_process(master) == {AUTHENTICATE: "true", LOCAL_DIR: str(scratch().part("spark"))}


def test_folders_that_the_user_gave_spark_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not _user_sets(LOCAL_DIR)
    (tmp_path / "spark-defaults.conf").write_text("# spark.local.dir /no\n spark.local.dir  /fast\n")
    assert _user_sets(LOCAL_DIR)
    assert _one_process("local[*]") == {AUTHENTICATE: "true"}
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.local.dir=/fast pyspark-shell")
    assert _user_sets(LOCAL_DIR)


@pytest.mark.parametrize(("ours", "locale", "given"), [("utf-8", "ANSI_X3.4-1968", True), ("utf-8", "UTF-8", False)])
def test_java_gets_a_locale_of_utf8_where_it_would_have_another(ours, locale, given, monkeypatch) -> None:
    monkeypatch.setattr(java_process.sys, "getfilesystemencoding", lambda: ours)
    monkeypatch.setattr(java_process.locale, "getencoding", lambda: locale)
    assert ("LC_ALL" in java_process._child_environment()) == given
