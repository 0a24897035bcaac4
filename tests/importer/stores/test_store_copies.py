"""Copies of brokers' stores: whose they are, which of them are used, and what nightly will refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqreplay.cli.command_line import main

OFFSETS = b'{"offsetTable":{"t@g":{0:5}}}'
LMQ = b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":42},"offsetTable":{"t@g":{0:9}}}'
BOOT = b"2026-06-09 18:13:20 INFO main - "


class Imported:
    """A run of an import: its status, report and copies."""

    def __init__(self, root: Path, files: dict[str, bytes], capsys: Any, *options: str) -> None:
        for name, data in files.items():
            path = root / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.status = main(["import", str(root / "in"), "--out", str(root / "out"), "--json", *options])
        self.report = json.loads(capsys.readouterr().out)
        found = (root / "out" / "snapshots").glob("*/*/*")
        self.copies = {f"{path.parts[-3]}/{path.name}": path.read_bytes() for path in found}
        self.notes = "\n".join(self.report["notes"])
        self.refused = {one["path"].removeprefix(f"{root}/in/"): one["why"] for one in self.report["not_recognised"]}


@pytest.fixture
def imported(tmp_path, capsys):
    return lambda files, *options: Imported(tmp_path, files, capsys, *options)


def test_the_old_file_beside_that_of_an_lmq_broker_is_refused(imported):
    got = imported({"broker-a-0/config/consumerOffset.json": OFFSETS, "broker-a-0/config/lmqConsumerOffset.json": LMQ})
    assert got.copies == {"broker-a-0/lmqConsumerOffset.json": LMQ}
    assert "enableLmq=true" in got.refused["broker-a-0/config/consumerOffset.json"]


def test_an_earlier_file_without_lmq_is_copied(imported):
    files = {"1781000000000/consumerOffset.json": OFFSETS, "1781000300000/lmqConsumerOffset.json": LMQ}
    got = imported({f"broker-a-0/{name}": data for name, data in files.items()})
    assert set(got.copies) == {"broker-a-0/consumerOffset.json", "broker-a-0/lmqConsumerOffset.json"}


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (OFFSETS[:-5], "nightly refuses 1 file, copied unchanged: torn: "),
        (OFFSETS + bytes(9), "nightly refuses 1 file, copied unchanged: nul_bytes: "),
        (OFFSETS.decode().encode("utf-16"), "nightly refuses 1 file, copied unchanged: utf_16: it is UTF-16"),
        (b"", "nightly refuses 1 file, copied unchanged: empty: "),
        (b"\xef\xbb\xbf" + OFFSETS, "1 file with a byte order mark"),
        (b'{"offsetTable":{"a@b@c":{0:1}}}', "not topic@group, so no group can use them; nightly puts them into "),
        (b'{"offsetTable":{"t@g":{0:-3}}}', "offsets that no queue can have, negative or too large; they are kept: -3"),
        (OFFSETS.replace(b"5", b"9223372036854775807"), "9223372036854775807 of t@g queue 0"),
    ],
)
def test_odd_content_is_copied_and_named(imported, data, note):
    got = imported({"broker-a-0/1781000000000/consumerOffset.json": data})
    assert got.copies == {"broker-a-0/consumerOffset.json": data}
    assert note in got.notes
    assert got.refused == {}


def test_what_nightly_does_not_read_is_no_note(imported):
    files = {"consumerOffset.json": OFFSETS, "consumerOffset.json.bak": b"{", "delayOffset.json": b'{"offsetTable":{1:'}
    got = imported({f"broker-a-0/1781000000000/{name}": data for name, data in files.items()})
    assert len(got.copies) == 3
    assert "nightly refuses" not in got.notes


def test_a_bak_alone_is_checked(imported):
    assert "nightly refuses 1 file" in imported({"broker-a-0/1781000300000/consumerOffset.json.bak": b"{"}).notes


def test_the_second_file_of_a_layout_is_checked_too(imported):
    pretty = b'{\n\t"offsetTable":{\n\t\t"t@g":{0:5,1:7\n\t\t}\n\t}\n}'
    later = pretty.replace(b"1:7", b"1:-7")
    files = {"1781000000000/consumerOffset.json": pretty, "1781000060000/consumerOffset.json": later}
    got = imported({f"broker-a-0/{name}": data for name, data in files.items()})
    assert "-7 of t@g queue 1" in got.notes


ROCKSDB = ("CURRENT", "IDENTITY", "LOCK", "LOG", "MANIFEST-000004", "OPTIONS-000007", "000008.log", "000009.sst")


def test_folders_of_rocksdb_are_named(imported):
    files = {f"broker-a-0/config/{db}/{name}": b"x" for db in ("consumerOffsets", "topics") for name in ROCKSDB}
    files |= {f"broker-a-0/rocksdbstore/{name}": b"x" for name in ROCKSDB}
    got = imported(files | {"broker-a-0/config/consumerOffset.json": OFFSETS})
    offsets = [why for path, why in got.refused.items() if "/config/" in path]
    assert len(offsets) == 16
    assert all("keeps its offsets and configuration in RocksDB" in why for why in offsets)
    assert len(set(got.refused.values())) == 2
    assert "is old unless it was exported" in got.notes


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("offsets.txt", b"Use [local mode] load rocksdb to print or export file \n" + OFFSETS, "rocksDBConfigToJson"),
        ("export.json", OFFSETS, "give it this name"),
        ("export.json", LMQ, "lmqConsumerOffset.json"),
        ("store/config/consumerFilter.json", b"{}", "the SQL92 filters of subscriptions"),
        ("store/config/x.json", b"{}", "a file of a broker's config folder"),
    ],
)
def test_other_files_are_named_for_what_they_are(imported, name, data, why):
    got = imported({name: data})
    assert got.status == 2
    assert why in got.refused[name]


def test_a_log_beside_names_the_copies(imported):
    lines = BOOT + b"brokerId=1\n" + BOOT + b"The broker[broker-1, 10.0.0.9:10911] boot success. serializeType=JSON\n"
    got = imported({"a/store/config/consumerOffset.json": OFFSETS, "a/logs/rocketmqlogs/broker.log": lines})
    assert set(got.copies) == {"broker-1-1/consumerOffset.json"}
    assert got.report["copies"]["broker-1-1"]["named_by"] == {"the broker's log beside it": 1}


def test_a_log_elsewhere_names_no_copy(imported):
    lines = BOOT + b"brokerId=0\n" + BOOT + b"The broker[broker-1, 10.0.0.9:10911] boot success. serializeType=JSON\n"
    got = imported({"a/store/config/consumerOffset.json": OFFSETS, "b/logs/broker.log": lines})
    assert got.copies == {}


ELECTED = {
    "n0/conf/broker.conf": b"brokerName = broker-a\nenableDLegerCommitLog = true\ndLegerSelfId = n0\n",
    "n0/store/config/consumerOffset.json": OFFSETS,
}


def test_a_configuration_without_an_id_names_no_copy(imported):
    got = imported(ELECTED)
    assert got.status == 2
    assert "enableDLegerCommitLog=true" in got.refused["n0/store/config/consumerOffset.json"]


@pytest.mark.parametrize("name", [b"", BOOT + b"brokerName=broker-a\n"])
def test_a_log_gives_the_elected_id_of_a_configuration(imported, name):
    registered = BOOT + b"register broker[2]to name server 10.0.0.1:9876 OK\n"
    got = imported(ELECTED | {"n0/logs/broker.log": name + registered})
    assert set(got.copies) == {"broker-a-2/consumerOffset.json"}


def test_a_configuration_above_does_not_name_other_brokers(imported):
    files = {
        "conf/broker.conf": b"brokerName=broker-a\nbrokerId=0\n",
        "broker-b-0/1781000000000/consumerOffset.json": OFFSETS,
    }
    got = imported(files)
    assert got.status == 2
    assert "broker-a, but its topics.json or folder is of broker-b" in got.refused[list(files)[1]]


def test_pods_of_the_operator(imported):
    pods = ("broker-0-master-0", "broker-0-replica-1-0", "broker-1-master-0")
    got = imported({f"{pod}/store/config/consumerOffset.json": OFFSETS for pod in pods})
    assert set(got.report["copies"]) == {"broker-0-0", "broker-0-1", "broker-1-0"}
    assert "named only by the folder" in got.notes
