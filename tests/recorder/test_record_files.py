"""A recording is whole after every interruption: kill, full disk, power loss."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqreplay.decode.recording.files import classify
from mqreplay.recorder.durable import append_whole
from mqreplay.recorder.record_files import RESERVED, RecordFiles
from mqreplay.recorder.recording_folder import HOUR_MS, disk_bytes, gzip_member, restore
from mqreplay.words.errors import InputError, RecordingFull
from recorder.recording_writer import START, STEMS, table_at
from reliability.file_faults import FileFaults, compile_layer
from tests_shared import ROOT

TS = 1_795_467_600_000  # a full hour
TABLE = {"orders@pay": {0: 12, 1: 7}}
PATHS = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), str(ROOT / "tests")])}


def lines(path: Path) -> list[dict[str, Any]]:
    """Of a gzip file that must be valid."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def all_lines(folder: Path, stem: str) -> list[dict[str, Any]]:
    return [record for path in sorted(folder.glob(f"{stem}.*.jsonl.gz")) for record in lines(path)]


def offset_files(folder: Path, source: str = "broker-a-0") -> list[Path]:
    found = (folder / "snapshots" / source).glob("*/consumerOffset.jsonl.gz")
    return sorted(found, key=lambda path: int(path.parent.name))


def tables(path: Path) -> Iterator[tuple[int, dict[str, dict[str, int]]]]:
    """The offset table at each line of a file, which must begin with a whole one."""
    table: dict[str, dict[str, int]] | None = None
    for line in lines(path):
        if "offsetTable" in line:
            table = line["offsetTable"]
        assert table is not None, f"{path} does not begin with a whole table"
        for key, queues in line.get("changed", {}).items():
            table.setdefault(key, {}).update(queues)
        for key, queue_ids in line.get("removed", {}).items():
            for queue_id in queue_ids:
                del table[key][str(queue_id)]
        yield line["ts"], {key: dict(queues) for key, queues in table.items() if queues}


def as_read(table: dict[str, dict[int, int]]) -> dict[str, dict[str, int]]:
    return {key: {str(queue): offset for queue, offset in queues.items()} for key, queues in table.items() if queues}


def test_files_are_named_by_the_hour_and_are_a_part_of_a_recording(tmp_path: Path) -> None:
    with RecordFiles(tmp_path / "r") as files:
        for hour in (0, 1, 0):  # an answer of the hour before: no file grows after the next has begun
            files.append("broker_runtime", {"ts": TS + hour * HOUR_MS})
    assert [path.name for path in sorted((tmp_path / "r").iterdir())] == [
        "broker_runtime.2026112321.jsonl.gz",
        "broker_runtime.2026112322.jsonl.gz",
    ]
    assert classify("broker_runtime.2026112321.jsonl.gz")[0] == "broker_runtime"
    assert [line["ts"] for line in lines(tmp_path / "r/broker_runtime.2026112322.jsonl.gz")] == [TS + HOUR_MS, TS]


def test_every_flush_is_one_member(tmp_path: Path) -> None:
    with RecordFiles(tmp_path) as files:
        path, sizes = tmp_path / "routes.2026112321.jsonl.gz", []
        for number in range(3):
            files.append("routes", {"ts": TS, "number": number})
            files.append("routes", {"ts": TS, "topic": "日本\ud800"})
            files.flush()
            files.flush()  # nothing to write
            sizes.append(path.stat().st_size)
            assert len(lines(path)) == 2 * (number + 1)
    assert [line["number"] for line in lines(path) if "number" in line] == [0, 1, 2]
    data = path.read_bytes()
    for begin, end in zip([0, *sizes], sizes, strict=False):
        assert len(gzip.decompress(data[begin:end]).splitlines()) == 2


def test_offset_files_begin_with_the_whole_table(tmp_path: Path) -> None:
    changed = {"orders@pay": {0: 13}, "new@pay": {0: 1}}
    for run in range(2):
        with RecordFiles(tmp_path) as files:
            for poll, table in enumerate((TABLE, TABLE, changed, {})):
                files.append_offsets("broker-a", 0, TS + run * 60_000 + poll * 1000, table)
    with RecordFiles(tmp_path) as files:
        files.append_offsets("broker-a", 0, TS + HOUR_MS, TABLE)
        files.flush()
        offset_files(tmp_path)[-1].unlink()  # somebody moves it while the recorder runs
        files.append_offsets("broker-a", 0, TS + HOUR_MS + 1000, TABLE)
    first, second = offset_files(tmp_path)
    assert [sorted(line.keys() - {"ts"}) for line in lines(first)] == [
        ["offsetTable"],
        [],
        ["changed", "removed"],
        ["removed"],
    ] * 2
    assert [table for _, table in tables(first)] == [as_read(TABLE), as_read(TABLE), as_read(changed), {}] * 2
    assert [table for _, table in tables(second)] == [as_read(TABLE)]
    assert classify(str(first.relative_to(tmp_path)))[1:] == ("broker-a-0", TS)


def test_the_table_that_was_passed_may_be_changed_afterwards(tmp_path: Path) -> None:
    table = {"orders@pay": {0: 12}}
    with RecordFiles(tmp_path) as files:
        files.append_offsets("broker-a", 0, TS, table)
        table["orders@pay"][0] = 13
        files.append_offsets("broker-a", 0, TS + 1, table)
    assert [line.get("changed") for line in lines(offset_files(tmp_path)[0])] == [None, {"orders@pay": {"0": 13}}]


def test_copies_are_kept_byte_by_byte(tmp_path: Path) -> None:
    with RecordFiles(tmp_path) as files:
        assert files.last_snapshot("broker-a", 0, "topics.json") is None
        files.write_snapshot("broker-a", 0, TS, "topics.json", b"\0\xff{")
        files.write_snapshot("broker-a", 0, TS + 1, "delayOffset.json", b"{}")
        files.write_brokers({"brokers": {}})
        files.write_brokers({"brokers": {"broker-a-0": {"addr": "10.0.0.1:10911"}}})
        assert files.last_snapshot("broker-a", 0, "topics.json") == b"\0\xff{"
        for name in ("../up", "", "a\n", "a" * 300, "\ud800"):
            with pytest.raises(InputError, match="cannot be a folder name"):
                files.write_snapshot(name, 0, TS, "topics.json", b"{}")
    assert json.loads((tmp_path / "brokers.json").read_text())["brokers"]["broker-a-0"]
    assert not list(tmp_path.rglob("*.unfinished"))


def test_one_recorder_writes(tmp_path: Path) -> None:
    first = RecordFiles(tmp_path)
    with pytest.raises(InputError, match="another recorder writes into"):
        RecordFiles(tmp_path)
    first.close()
    first.close()
    RecordFiles(tmp_path).close()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a writable folder"):
        RecordFiles(tmp_path / "file")


# What may be behind the last complete member: nothing, its begin, zero bytes, other bytes.
@pytest.mark.parametrize("tail", [b"", b"\x1f", gzip_member(b"{}\n")[:-1], b"\0" * 5000, b"rubbish"])
def test_torn_tail_is_cut(tmp_path: Path, tail: bytes) -> None:
    whole = gzip_member(b'{"n":1}\n') + gzip_member(b'{"n":2}\n')
    path = tmp_path / "routes.2026112321.jsonl.gz"
    path.write_bytes(whole + tail)
    (tmp_path / "brokers.json.unfinished").write_bytes(b"{")
    RecordFiles(tmp_path).close()
    assert path.read_bytes() == whole
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_file_without_a_complete_member(tmp_path: Path) -> None:
    for name, content in (("routes", gzip_member(b"{}\n")[:9]), ("heartbeats", b""), ("assignments", b"\0" * 99)):
        (tmp_path / f"{name}.2026112321.jsonl.gz").write_bytes(content)
    RecordFiles(tmp_path).close()
    assert list(tmp_path.iterdir()) == []
    other = tmp_path / "routes.2026112321.jsonl.gz"
    other.write_bytes(b"plain lines\n")
    with pytest.raises(InputError, match="not a gzip file"):
        RecordFiles(tmp_path)
    assert other.read_bytes() == b"plain lines\n"


def test_members_behind_damage_are_kept(tmp_path: Path) -> None:
    members = [gzip_member(f'{{"n":{n}}}\n'.encode()) for n in range(4)]
    path = tmp_path / "routes.2026112321.jsonl.gz"
    path.write_bytes(members[0] + members[1][:12] + b"\0" * (len(members[1]) - 12) + members[2] + members[3])
    restore(path)
    assert [line["n"] for line in lines(path)] == [0, 2, 3]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 20))])
def test_kill_loses_only_what_was_not_flushed(tmp_path: Path, seed: int) -> None:
    chance, torn, flushed = random.Random(seed), 0, set[int]()
    for _ in range(KILLS):
        command = [sys.executable, str(ROOT / "tests/recorder/recording_writer.py"), str(tmp_path)]
        with subprocess.Popen(command, env=PATHS, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            printed = [writer.stdout.readline()]
            time.sleep(chance.uniform(0, 0.2))
            writer.kill()
            printed += writer.stdout.readlines()
        for first, last in (map(int, line.split()) for line in printed if line.endswith("\n")):
            flushed.update(range(first, last + 1))
        torn += sum(not is_whole(path) for path in tmp_path.rglob("*.gz"))
        RecordFiles(tmp_path).close()
        assert all(is_whole(path) for path in tmp_path.rglob("*.gz"))
    for stem in STEMS:
        numbers = [record["number"] for record in all_lines(tmp_path, stem)]
        assert numbers == sorted(set(numbers))
        assert flushed <= set(numbers)
        assert len(numbers) <= len(flushed) + 3 * KILLS  # written, and killed before it was printed
    polled = {ts: table for path in offset_files(tmp_path) for ts, table in tables(path)}
    assert {number: polled[START + number * 60_000] for number in flushed} == {
        number: as_read(table_at(number)) for number in flushed
    }
    print(f"{KILLS} kills, {torn} torn files, {len(flushed)} polls")


def is_whole(path: Path) -> bool:
    try:
        return bool(lines(path))
    except (EOFError, OSError):
        return False


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer below the files that makes operations fail."""
    return compile_layer(tmp_path_factory.mktemp("layer"))


KILLS = 10
OPERATIONS = 40  # of the files, by stubborn_writer; it ends before
FEW = (1, 5, 9, 13, 18, 25)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize(
    "operations", [FEW, pytest.param(sorted(set(range(1, OPERATIONS)) - set(FEW)), marks=pytest.mark.long)]
)
def test_recording_goes_on_when_the_disk_takes_writes_again(
    library: Path, tmp_path: Path, operations: tuple[int, ...], error: int
) -> None:
    command = [sys.executable, str(ROOT / "tests/recorder/stubborn_writer.py")]
    clean = tmp_path / "clean"
    subprocess.run([*command, str(clean)], env=PATHS, check=True)
    failed = 0
    for first in operations:
        out = tmp_path / f"r{first}"
        out.mkdir()
        layer = FileFaults(library, tmp_path / f"layer{first}", out)
        layer.fail(error, first, 4)
        done = subprocess.run([*command, str(out)], env=PATHS | layer.environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        reason = "the disk is full" if error == errno.ENOSPC else "the disk reports an error"
        for output in done.stdout.splitlines():
            assert output.startswith(f"recording {out}: {reason} (")
            assert output.endswith("); earlier files are complete")
        failed += layer.failed
        for stem in ("broker_runtime", "routes"):
            assert all_lines(out, stem) == all_lines(clean, stem)
        [offsets] = offset_files(out)
        assert list(tables(offsets)) == list(tables(offset_files(clean)[0]))
        assert {path.name for path in out.rglob("*")} == {path.name for path in clean.rglob("*")}
    assert failed


def test_write_that_the_disk_takes_in_part_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    append_whole(path, b"a" * 1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            append_whole(path, b"b" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"a" * 1000


def test_bound_of_the_folder(tmp_path: Path) -> None:
    bound = RESERVED + 200_000
    body = random.Random(1).randbytes(30_000).hex()
    with RecordFiles(tmp_path, bound) as files:
        written, full = 0, None
        while not full:
            files.append("routes", {"ts": TS, "number": written, "body": body})
            try:
                files.flush()
                written += 1
            except RecordingFull as error:
                full = error
        with pytest.raises(RecordingFull):
            files.write_snapshot("broker-a", 0, TS, "topics.json", body.encode())
        files.append("recorder_events", {"ts": TS, "kind": "stop"})
        with pytest.raises(RecordingFull):
            files.flush()
        assert [event["kind"] for event in all_lines(tmp_path, "recorder_events")] == ["stop"]
        with pytest.raises(RecordingFull):
            files.close()
    assert full.at_bound
    assert str(full) == (
        f"recording {tmp_path}: it has reached its bound of 1,248,576 bytes; move older files elsewhere, "
        "or raise the bound; nothing was deleted"
    )
    assert [line["number"] for line in all_lines(tmp_path, "routes")] == list(range(written))
    assert 3 <= written <= 6
    assert 100_000 < disk_bytes(tmp_path) < bound
    with RecordFiles(tmp_path, bound * 2) as files:
        files.append("routes", {"ts": TS, "number": written})
    with RecordFiles(tmp_path, 1) as files, pytest.raises(RecordingFull):
        files.write_brokers({})
