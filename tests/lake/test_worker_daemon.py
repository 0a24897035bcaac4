"""Python workers of Spark end without a traceback when Java closes their sockets."""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import zipfile
import zipimport
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqreplay.lake.worker_daemon import forget_zip_importers
from tests_shared import ROOT

DAEMON = "mqreplay.lake.worker_daemon"


@contextmanager
def daemon(folder: Path, module: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process that forks workers, as Java starts it, and the path of its socket."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "lib"),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(folder),
        "SPARK_REUSE_WORKER": "1",
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", module, "pyspark.worker"]
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        length = int.from_bytes(process.stdout.read(4), "big")
        yield process, process.stdout.read(length).decode()


def worker_end(module: str, sent: bytes) -> str:
    """Start a worker, send it ``sent``, close the socket; return what the daemon and the worker wrote on stderr."""
    # The path of a socket has at most 107 bytes, fewer than those of pytest's folders.
    with tempfile.TemporaryDirectory() as folder, daemon(Path(folder), module) as (process, path):
        with socket.socket(socket.AF_UNIX) as java:
            java.connect(path)
            worker = int.from_bytes(java.recv(4), "big")
            java.sendall(sent)
        # The daemon lets Linux remove workers that ended.
        handle = os.pidfd_open(worker) if Path(f"/proc/{worker}").exists() else None
        if handle is not None:
            assert select.select([handle], [], [], 30)[0]
            os.close(handle)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    return said.decode()


@pytest.mark.parametrize("sent", [b"", b"\0\0\0\0"], ids=["idle", "at the begin of a task"])
def test_a_worker_whose_socket_is_closed_says_nothing(sent: bytes) -> None:
    assert worker_end(DAEMON, sent) == ""


def test_pysparks_own_prints_a_traceback() -> None:
    # Once it does not, mqreplay's is needed no more.
    assert "BrokenPipeError" in worker_end("pyspark.daemon", b"")


def test_zips_are_not_listed_again_and_still_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("zipped_one.py", "")
        made.writestr("zipped_two.py", "")
    monkeypatch.syspath_prepend(str(archive))
    importlib.import_module("zipped_one")
    assert isinstance(sys.path_importer_cache[str(archive)], zipimport.zipimporter)
    forget_zip_importers()
    assert not [path for path, one in sys.path_importer_cache.items() if isinstance(one, zipimport.zipimporter)]
    assert importlib.import_module("zipped_two").__file__ == f"{archive}{os.sep}zipped_two.py"


def test_the_session_uses_it(spark) -> None:
    assert spark.sparkContext.getConf().get("spark.python.daemon.module") == DAEMON
    ours = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.modules["__main__"].__file__).collect()
    assert [Path(path).name for path in ours] == ["worker_daemon.py"]
