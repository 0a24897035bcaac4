"""A disk that fills during an import: one line says which, and nothing is left."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqreplay.recorder.durable import open_own, require_free
from mqreplay.words.errors import OwnDiskError
from tests_shared import SAMPLE

NIGHT = SAMPLE / "bulk-5.3.3"
OFFSETS = next(NIGHT.glob("snapshots/*/*/consumerOffset.json")).read_bytes()
LOG = b"2026-11-21 00:00:00 INFO BrokerControllerScheduledThread1 - hello hello\n" * 400_000  # 29 MB


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("nested", [False, True])
def test_a_full_disk_ends_the_import(small_disk: Path, tmp_path: Path, nested: bool) -> None:
    members = {"broker-a-0/1795228794427/consumerOffset.json": OFFSETS, "logs/broker.log": LOG}
    data = zipped(members | {"broker-a-0/1795228799427/consumerOffset.json": OFFSETS})
    (tmp_path / "night.zip").write_bytes(zipped({"in.zip": data}) if nested else data)
    out = small_disk / "out"
    # The reserve of free space is more than this disk has: it must not be what ends the run.
    script = (
        "import sys; from mqreplay.importer.files import archives; archives._KEPT_FREE = 0; "
        "from mqreplay.cli.command_line import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "import", str(tmp_path / "night.zip"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    [output] = done.stderr.splitlines()
    assert output.startswith("mqreplay: the disk is full (")
    assert f"free some space in {small_disk} and run it again" in output
    assert [path.name for path in small_disk.iterdir()] == []


def test_members_that_would_fill_the_disk_end_the_import(tmp_path: Path) -> None:
    with pytest.raises(OwnDiskError, match="No space left on device"):
        require_free(tmp_path, 1 << 62)


def test_a_write_that_fails_is_an_error_of_the_own_disk(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(OwnDiskError, match="File too large"), open_own(tmp_path / "file") as out:
            out.write(b"b" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def zipped(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()
