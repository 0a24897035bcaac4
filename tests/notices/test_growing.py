"""Files are read as they grow, and each round copies only what is new."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from mqreplay.notices import growing
from mqreplay.notices.growing import GrowingFile
from mqreplay.notices.recent import Recent
from mqreplay.words.errors import InputError

NOW = 1_795_228_800_000


def appended(file: GrowingFile) -> bytes:
    return b"".join(file.appended(os.stat(file.path).st_size))


def test_only_appended_whole_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "routes.jsonl"
    file = GrowingFile(str(path), str(tmp_path))
    path.write_bytes(b"one\ntw")
    assert appended(file) == b"one\n"
    assert appended(file) == b""
    with path.open("ab") as end:
        end.write(b"o\nthree\n")
    assert appended(file) == b"two\nthree\n"


def test_only_complete_members_are_read(tmp_path: Path) -> None:
    path = tmp_path / "routes.jsonl.gz"
    file = GrowingFile(str(path), str(tmp_path))
    members = [gzip.compress(text, mtime=0) for text in (b"one\n", b"two\nthree\n", b"four")]
    path.write_bytes(members[0] + members[1][:-3])
    assert appended(file) == b"one\n"
    path.write_bytes(members[0] + members[1])
    assert appended(file) == b"two\nthree\n"
    path.write_bytes(b"".join(members))
    assert appended(file) == b"four\n", "the last line of a member is whole"


def test_a_file_that_was_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "routes.jsonl"
    file = GrowingFile(str(path), str(tmp_path))
    path.write_bytes(b"one\ntwo\n")
    assert appended(file) == b"one\ntwo\n"
    path.write_bytes(b"other\ntwo\nthree\n")
    assert appended(file) == b"other\ntwo\nthree\n"
    path.write_bytes(b"new\n")
    assert appended(file) == b"new\n"


def test_a_large_member_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "MOST_MEMBER", 1000)
    path = tmp_path / "routes.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 2000))
    with pytest.raises(InputError, match="a gzip member of more than"):
        appended(GrowingFile(str(path), str(tmp_path)))


def recent(tmp_path: Path) -> Recent:
    (tmp_path / "r").mkdir(exist_ok=True)
    return Recent(str(tmp_path / "r"), tmp_path / "window", False, lambda text: None)


def write(path: Path, lines: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines), mtime=0))


def test_a_part_of_polled_offsets_begins_with_the_complete_table(tmp_path: Path) -> None:
    path = tmp_path / "r" / "snapshots" / "b-0" / str(NOW) / "consumerOffset.jsonl.gz"
    write(path, [{"ts": NOW, "offsetTable": {"t@g": {"0": 1, "1": 1}}}, {"ts": NOW + 5, "changed": {"t@g": {"0": 2}}}])
    window = recent(tmp_path)
    ((first, _),) = window.read(NOW - 1000, NOW + 5)
    assert Path(first.full_path).read_bytes().count(b"\n") == 2
    write(path, [{"ts": NOW + 10, "changed": {"t@g": {"0": 3}}, "removed": {"t@g": [1]}}, {"ts": NOW + 15}])
    ((second, _),) = window.read(NOW - 1000, NOW + 15)
    lines = [json.loads(line) for line in Path(second.full_path).read_bytes().splitlines()]
    assert lines == [{"ts": NOW + 10, "offsetTable": {"t@g": {"0": 3}}}, {"ts": NOW + 15}]
    assert second.ts_ms == NOW + 10
    assert window.read(NOW - 1000, NOW + 20) == []


def test_the_first_round_leaves_out_older_lines_and_keeps_the_last_copy_before_them(tmp_path: Path) -> None:
    write(tmp_path / "r" / "routes.jsonl.gz", [{"ts": NOW - 9000, "n": 1}, {"ts": NOW, "n": 2}])
    for ts in (NOW - 9000, NOW - 8000, NOW):
        copy = tmp_path / "r" / "snapshots" / "b-0" / str(ts) / "topics.json"
        copy.parent.mkdir(parents=True)
        copy.write_text("{}")
    window = recent(tmp_path)
    found = window.read(NOW - 1000, NOW)
    assert sorted(file.ts_ms or 0 for file, _ in found) == [0, NOW - 8000, NOW]
    ((lines, _),) = [entry for entry in found if entry[0].kind == "routes"]
    assert Path(lines.full_path).read_bytes() == b'{"ts": 1795228800000, "n": 2}\n'


def test_a_file_that_grows_again_after_the_window_is_read_without_its_older_lines(tmp_path: Path) -> None:
    path = tmp_path / "r" / "routes.jsonl.gz"
    window = recent(tmp_path)
    write(path, [{"ts": NOW}])
    assert len(window.read(NOW - 1000, NOW)) == 1
    os.utime(path, (NOW / 1000, NOW / 1000))
    assert window.read(NOW + 5000, NOW + 6000) == []
    write(path, [{"ts": NOW + 7000}])
    ((lines, _),) = window.read(NOW + 6500, NOW + 7000)
    assert Path(lines.full_path).read_bytes() == b'{"ts": 1795228807000}\n'


def test_only_the_newest_files_of_polled_offsets_are_followed(tmp_path: Path) -> None:
    window = recent(tmp_path)
    for hour in range(4):
        ts = NOW + hour * 3_600_000
        write(
            tmp_path / "r" / "snapshots" / "b-0" / str(ts) / "consumerOffset.jsonl.gz", [{"ts": ts, "offsetTable": {}}]
        )
        assert [file.ts_ms for file, _ in window.read(ts - 1000, ts)] == [ts]
    assert sorted(window._offsets) == [
        f"snapshots/b-0/{NOW + hour * 3_600_000}/consumerOffset.jsonl.gz" for hour in (2, 3)
    ]


def test_a_link_out_of_the_recording_is_not_read(tmp_path: Path) -> None:
    window = recent(tmp_path)
    (tmp_path / "secret").write_bytes(b'{"ts":1}\n')
    (tmp_path / "r" / "routes.jsonl").symlink_to(tmp_path / "secret")
    assert window.read(0, NOW) == []


def test_files_that_end_before_the_window_are_removed(tmp_path: Path) -> None:
    window = recent(tmp_path)
    for i in range(3):
        write(tmp_path / "r" / "routes.jsonl.gz", [{"ts": NOW + i * 1000}])
        copy = tmp_path / "r" / "snapshots" / "b-0" / str(NOW + i * 1000) / "topics.json"
        copy.parent.mkdir(parents=True)
        copy.write_text("{}")
        window.read(NOW - 1000, NOW + i * 1000)
    kept = window.forget(NOW + 2500)
    assert [file.ts_ms for file, _ in kept] == [NOW + 2000], "the last copy is valid until the next"
    assert sorted(p.name for p in (tmp_path / "window").rglob("*") if p.is_file()) == ["topics.json"]


def test_a_missing_recording_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; start mqreplay record first"):
        Recent(str(tmp_path / "none"), tmp_path / "window", False, lambda text: None)
