"""The sample's packet capture made into records: the same that its recorder wrote, in the minutes that both saw."""

from __future__ import annotations

import gzip
import json
import struct
from collections import defaultdict
from io import StringIO

import pytest

from mqreplay.cli import main
from mqreplay.decode.kinds import KINDS
from mqreplay.unpack import unpack
from tests_shared import ROOT

NIGHT = ROOT / "data/sample/orders-4.9.7"
CAPTURE = NIGHT / "wire.pcap.gz"
# What tells a record from others of the same kind; what only one of the two knows.
SAME = {
    "pull_log": ("client_id", "broker_addr", "opaque", "topic", "queue_id"),
    "offset_commits": ("client_id", "broker_addr", "kind", "consumer_group", "topic", "queue_id"),
    "heartbeats": ("client_id", "broker_addr", "kind"),
    "consumer_lists": ("client_id", "broker_addr", "consumer_group"),
    "lock_requests": ("client_id", "broker_addr", "kind", "consumer_group"),
    "server_requests": ("client_id", "broker_addr", "request_code", "consumer_group"),
    "cluster_info": ("namesrv_addr",),
}
EITHER = {"ts", "request_ts", "response_ts", "error"}
FAR_MS = 1500
# Of messages that tcpdump cut only the first is known.
MESSAGES = {"msg_count", "last_queue_offset", "last_commitlog_offset", "last_store_size"} | {
    "first_queue_offset",
    "first_commitlog_offset",
    "first_born_ts",
}


def lines(path):
    return gzip.open(path).read().splitlines()


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The folder, and what was told."""
    folder, out = tmp_path_factory.mktemp("unpacked"), StringIO()
    unpack([str(CAPTURE)], str(folder), out, as_json=True)
    return folder, json.loads(out.getvalue())


def test_what_it_tells(unpacked):
    folder, told = unpacked
    assert told["records"] == {
        **{"pull_log": 2172, "offset_commits": 1932, "heartbeats": 852, "consumer_lists": 736, "lock_requests": 34},
        **{"server_requests": 308, "routes": 405, "cluster_info": 130, "topic_stats": 154},
    }
    assert told["left_out"] == {"records whose body tcpdump cut: capture with -s 0": 516}, "it was taken with -s 1500"
    assert told["torn"] == []
    assert sorted(p.name for p in folder.iterdir()) == sorted(f"{stem}.jsonl.gz" for stem in told["records"])
    for stem, count in told["records"].items():
        assert len([KINDS[stem].decode(line) for line in lines(folder / f"{stem}.jsonl.gz")]) == count


@pytest.mark.parametrize("stem", SAME)
def test_it_is_what_the_recorder_wrote(unpacked, stem):
    kind, time = KINDS[stem], KINDS[stem].time
    recorded = defaultdict(list)
    for line in lines(NIGHT / f"{stem}.jsonl.gz"):
        record = kind.decode(line)
        recorded[tuple(record[name] for name in SAME[stem])].append(record)
    captured = [kind.decode(line) for line in lines(unpacked[0] / f"{stem}.jsonl.gz")]
    met = set()
    for record in captured:
        rows = [r for r in recorded[tuple(record[name] for name in SAME[stem])] if abs(r[time] - record[time]) < FAR_MS]
        nearest = min((r for r in rows if id(r) not in met), key=lambda r: abs(r[time] - record[time]))
        met.add(id(nearest))
        for name in kind.columns.keys() - EITHER:
            unknown = record[name] is None and name != "cid_all"
            if unknown and (record.get("response_code") is None or name in MESSAGES):
                continue
            assert record[name] == nearest[name], (name, record, nearest)
    first, last = (f(r[time] for r in captured) for f in (min, max))
    within = [r for rows in recorded.values() for r in rows if first + 500 <= r[time] <= last - 500]
    assert within
    assert all(id(r) in met for r in within), "none is missed"


def test_few_answers_were_not_seen(unpacked):
    pulls = [KINDS["pull_log"].decode(line) for line in lines(unpacked[0] / "pull_log.jsonl.gz")]
    assert sum(p["response_code"] is None for p in pulls) == 100


def test_again_it_gives_the_same_bytes_and_in_the_same_folder_nothing(unpacked, tmp_path, capsys):
    assert main(["unpack", str(CAPTURE), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "     2,172  pull_log.jsonl.gz" in told
    assert "       516  records whose body tcpdump cut" in told
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert before == {p.name: p.read_bytes() for p in unpacked[0].iterdir()}
    (tmp_path / "routes.jsonl.gz").unlink()
    assert main(["unpack", str(CAPTURE), "--out", str(tmp_path)]) == 2
    assert "would be there twice; give another folder" in capsys.readouterr().err
    del before["routes.jsonl.gz"]
    assert before == {p.name: p.read_bytes() for p in tmp_path.iterdir()}, "and nothing is left half written"


def capture():
    return gzip.decompress(CAPTURE.read_bytes())


def packets(data):
    at = 24
    while at < len(data):
        size = 16 + struct.unpack_from("<I", data, at + 8)[0]
        yield data[at : at + size]
        at += size


def test_a_capture_in_pieces_is_read_by_its_times(unpacked, tmp_path):
    data = capture()
    each = list(packets(data))
    pieces = [tmp_path / "a.pcap10", tmp_path / "a.pcap9"]
    for path, some in zip(pieces, (each[9000:], each[:9000]), strict=True):
        path.write_bytes(data[:24] + b"".join(some))
    unpack([str(p) for p in pieces], str(tmp_path / "out"), StringIO())
    for path in unpacked[0].iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_a_torn_one_gives_what_is_before_the_tear(tmp_path):
    torn, out = tmp_path / "torn.pcap.gz", StringIO()
    torn.write_bytes(CAPTURE.read_bytes()[:600_000])
    unpack([str(torn)], str(tmp_path / "out"), out, as_json=True)
    told = json.loads(out.getvalue())
    assert 500 < told["records"]["pull_log"] < 2172
    assert len(told["torn"]) == 1
    assert "torn.pcap.gz: " in told["torn"][0]


@pytest.mark.parametrize("content", [b"", b'{"ts":1}\n', None])
def test_what_is_no_capture_is_refused(tmp_path, capsys, content):
    path = tmp_path / "wire.pcap"
    if content is not None:
        path.write_bytes(content)
    assert main(["unpack", str(path), "--out", str(tmp_path / "out")]) == 2
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_without_rocketmq_in_it_says_so(tmp_path, capsys):
    path = tmp_path / "wire.pcap"
    path.write_bytes(capture()[:24])
    assert main(["unpack", str(path), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == "no record of RocketMQ's in these captures\n"


def test_a_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "out").write_text("")
    assert main(["unpack", str(CAPTURE), "--out", str(tmp_path / "out")]) == 2
    assert "out is no folder that can be written to: File exists" in capsys.readouterr().err
