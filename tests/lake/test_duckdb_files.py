"""DuckDB reads files of stores: its threads share one file object."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mqreplay.lake.duckdb_files import StoredFiles


def test_each_thread_has_its_own_position(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    file = StoredFiles().open(str(path))
    file.seek(4)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(lambda: (file.seek(8), file.read(9), file.tell())).result() == (8, b"89", 10)
    assert (file.read(2), file.tell()) == (b"45", 6)
    file.close()


def test_a_missing_file_is_told_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        StoredFiles().open(str(tmp_path / "file"))
