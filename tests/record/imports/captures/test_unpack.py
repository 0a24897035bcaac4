"""The sample's packet capture made into records: the same that its recorder wrote, in the minutes that both saw."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import socket
import struct
import subprocess
import sys
from collections import defaultdict
from io import StringIO

import pytest

from decode.capture.wire import BROKER, Talk, command, framed, heartbeat, pcap, registration
from mqreplay.cli.command_line import main
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.kinds import KINDS
from mqreplay.errors import InputError
from mqreplay.record.imports.captures.unpack import JOURNAL, REASONS, unpack
from tests_shared import ROOT

NIGHT = ROOT / "data/sample/orders-4.9.7"
CAPTURE = NIGHT / "wire.pcap.gz"
PATHS = os.environ | {"PYTHONPATH": str(ROOT / "lib")}
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
    """The folder, and the report."""
    folder, out = tmp_path_factory.mktemp("unpacked"), StringIO()
    unpack([str(CAPTURE)], str(folder), out, as_json=True)
    return folder, json.loads(out.getvalue())


def test_what_it_tells(unpacked):
    folder, reported = unpacked
    assert reported["records"] == {
        **{"pull_log": 2172, "offset_commits": 1932, "heartbeats": 852, "consumer_lists": 736, "lock_requests": 34},
        **{"server_requests": 308, "routes": 405, "cluster_info": 130, "topic_stats": 154},
    }
    assert reported["left_out"] == {"records whose body tcpdump cut: capture with -s 0": 516}, (
        "it was taken with -s 1500"
    )
    assert reported["torn"] == []
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["brokers.json", *(f"{stem}.jsonl.gz" for stem in reported["records"])]
    )
    assert reported["notes"] == ["brokers.json names the cluster DefaultCluster"]
    brokers = decode_brokers((folder / "brokers.json").read_bytes())
    assert (brokers.cluster, brokers.brokers) == ("DefaultCluster", []), "no answer has a broker's settings"
    assert sorted(brokers.name_servers) == ["127.0.0.1:9876", "127.0.0.1:9877"]
    for stem, count in reported["records"].items():
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
    reported = capsys.readouterr().out
    assert "     2,172  pull_log.jsonl.gz" in reported
    assert "       516  records whose body tcpdump cut" in reported
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
    reported = json.loads(out.getvalue())
    assert 500 < reported["records"]["pull_log"] < 2172
    assert len(reported["torn"]) == 1
    assert "torn.pcap.gz: " in reported["torn"][0]


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
    assert capsys.readouterr().out == "no record of RocketMQ in these captures\n"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_no_file_is_refused_at_once(tmp_path, capsys, monkeypatch):
    os.mkfifo(tmp_path / "fifo.pcap")
    (tmp_path / "loose.pcap").symlink_to(tmp_path / "nowhere")
    (tmp_path / "zero.pcap").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)  # the address of a socket has little room for a path
        listening.bind("socket.pcap")
        for name in ("fifo.pcap", "loose.pcap", "zero.pcap", "socket.pcap", "."):
            assert main(["unpack", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
            reported = capsys.readouterr().err
            assert reported.count("\n") == 1
            assert "cannot be read" in reported
    assert not (tmp_path / "out").exists()


def test_a_link_to_a_capture_is_one(small, tmp_path):
    (tmp_path / "wire.pcap").symlink_to(small)
    unpack([str(tmp_path / "wire.pcap")], str(tmp_path / "out"), StringIO())
    assert (tmp_path / "out" / "pull_log.jsonl.gz").exists()


@pytest.mark.parametrize("at", [100_000, -6])
def test_a_damaged_gzip_stream_gives_nothing(tmp_path, capsys, at):
    damaged, data = tmp_path / "wire.pcap.gz", bytearray(CAPTURE.read_bytes())
    data[at] ^= 1
    damaged.write_bytes(data)
    assert main(["unpack", str(damaged), "--out", str(tmp_path / "out")]) == 2
    reported = capsys.readouterr().err
    assert "wire.pcap.gz is damaged: " in reported
    assert reported.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_addresses_that_nobody_named_are_reported_up_to_a_bound(tmp_path):
    sent = [Talk(server=f"10.{n >> 8}.{n & 255}.9:10911").ask(command(11, 1)) for n in range(150)]
    (tmp_path / "wire.pcap").write_bytes(pcap(framed(sent)))
    out = StringIO()
    unpack([str(tmp_path / "wire.pcap")], str(tmp_path / "out"), out, as_json=True)
    left_out = json.loads(out.getvalue())["left_out"]
    assert len(left_out) == REASONS + 1
    assert left_out["requests that cannot be attributed: other brokers"] == 50
    assert sum(left_out.values()) == 150


@pytest.fixture
def small(tmp_path):
    """A capture with records of three kinds."""
    talk, asking = Talk(), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    sent = [asking.ask(registration("b", 0, BROKER, 1, "Orders")), talk.ask(heartbeat("c@1", 1))]
    sent += [talk.ask(command(105, 2, ext={"topic": "t"})), talk.ask(command(11, 3, ext={"topic": "t"}))]
    path = tmp_path / "small.pcap"
    path.write_bytes(pcap(framed(sent)))
    return path


KILLED = """
import os, sys
from io import StringIO
from pathlib import Path
from mqreplay.record.imports.captures.unpack import unpack

left = int(sys.argv[3])

def die(event, args):
    global left
    if event in ("os.rename", "os.remove", "open") and ("unfinished" in str(args[0]) or "jsonl" in str(args[0])):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(die)
unpack([sys.argv[1]], sys.argv[2], StringIO())
"""


def test_a_run_that_was_killed_anywhere_is_made_anew(small, tmp_path):
    whole = tmp_path / "whole"
    unpack([str(small)], str(whole), StringIO())
    assert names_in(whole) == ["brokers.json", "heartbeats.jsonl.gz", "pull_log.jsonl.gz", "routes.jsonl.gz"]
    died = 0
    for left in range(100):
        folder = tmp_path / f"killed{left}"
        status = subprocess.run(
            [sys.executable, "-c", KILLED, small, folder, str(left)], env=PATHS, check=False
        ).returncode
        died += status == -9
        unfinished = any(name.endswith(".unfinished") for name in names_in(folder))
        if status == 0:
            break
        for name in names_in(folder):
            if not name.endswith(".unfinished"):
                assert (folder / name).read_bytes() == (whole / name).read_bytes(), "never a half file"
        if unfinished or not names_in(folder):
            (folder / "consume_log.jsonl.gz").write_bytes(b"somebody's")
            unpack([str(small)], str(folder), StringIO())
            assert (folder / "consume_log.jsonl.gz").read_bytes() == b"somebody's"
            (folder / "consume_log.jsonl.gz").unlink()
        assert {n: (folder / n).read_bytes() for n in names_in(folder)} == {
            n: (whole / n).read_bytes() for n in names_in(whole)
        }
    assert died == left > 15


def captured(tmp_path, sent):
    """Unpack segments; return the folder and the notes."""
    (tmp_path / "wire.pcap").write_bytes(pcap(framed(sent)))
    folder, out = tmp_path / "out", StringIO()
    unpack([str(tmp_path / "wire.pcap")], str(folder), out, as_json=True)
    return folder, json.loads(out.getvalue())["notes"]


def test_a_brokers_answer_gives_its_settings_but_no_secret(tmp_path):
    talk, asking = Talk(), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    settings = b"brokerName=b\nbrokerId=1\nbrokerClusterName=Orders\naccessMessageInMemoryMaxRatio=30\naclSecretKey=x\n"
    sent = [asking.ask(registration("b", 1, BROKER, 1)), talk.ask(heartbeat("c@1", 1)), talk.ask(command(26, 2))]
    sent += [talk.answer(command(0, 2, 1, body=settings))]
    folder, notes = captured(tmp_path, sent)
    assert notes == ["brokers.json names the cluster Orders"]
    assert b"Secret" not in (folder / "brokers.json").read_bytes()
    (broker,) = decode_brokers((folder / "brokers.json").read_bytes()).brokers
    assert (broker.key, broker.addr, broker.effective_access_message_in_memory_max_ratio) == ("b-1", BROKER, 30)


def test_brokers_json_that_is_there_is_kept(small, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "brokers.json").write_bytes(b"a recorder's")
    out = StringIO()
    unpack([str(small)], str(folder), out)
    assert out.getvalue().endswith("note: brokers.json already exists and is kept\n")
    assert (folder / "brokers.json").read_bytes() == b"a recorder's"


def test_of_two_clusters_none_is_named(tmp_path):
    talk, asking = Talk(), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    sent = [asking.ask(registration("b", 0, BROKER, 1, "Orders")), asking.ask(registration("c", 0, "h:1", 2, "Bulk"))]
    folder, notes = captured(tmp_path, [*sent, talk.ask(heartbeat("c@1", 1))])
    assert notes == ["the captures name 2 clusters (Orders, Bulk); give nightly --cluster NAME"]
    assert decode_brokers((folder / "brokers.json").read_bytes()).cluster is None


def test_without_a_name_there_is_no_brokers_json(tmp_path):
    folder, notes = captured(tmp_path, [Talk().ask(command(34, 1, body=b"{")), *_pull_of_a_named_broker()])
    assert notes == ["the captures name no cluster; give nightly --cluster NAME"]
    assert not (folder / "brokers.json").exists()


def _pull_of_a_named_broker():
    talk, asking = Talk("10.0.0.2:40000"), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    return [asking.ask(registration("b", 0, BROKER, 1)), talk.ask(heartbeat("c@1", 1))]


def test_a_file_that_somebody_put_there_since_a_run_was_killed_stays(small, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "routes.jsonl.gz").write_bytes(b"a recorder's")
    other = os.lstat(small)
    identity = [other.st_dev, other.st_ino, other.st_size, other.st_mtime_ns]
    (folder / JOURNAL).write_text(json.dumps({"routes.jsonl.gz": [1, 2, 3, 4], "../small.pcap": identity}))
    with pytest.raises(InputError, match="has files of routes already"):
        unpack([str(small)], str(folder), StringIO())
    assert (folder / "routes.jsonl.gz").read_bytes() == b"a recorder's"
    assert names_in(folder) == ["routes.jsonl.gz"]
    assert small.exists()


def test_two_runs_at_once_into_one_folder(small, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(InputError, match="another unpack writes into"):
        unpack([str(small)], str(folder), StringIO())
    os.close(held)
    unpack([str(small)], str(folder), StringIO())


FULL = """
import resource, signal, sys
from mqreplay.cli.command_line import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
sys.exit(main(["unpack", sys.argv[1], "--out", sys.argv[2]]))
"""


@pytest.mark.parametrize(("of_sample", "most"), [(False, 0), (False, 20), (True, 40_000)])
def test_a_disk_without_room(small, tmp_path, of_sample, most):
    # A file may have so many bytes: EFBIG where a full disk gives ENOSPC, while it is written or when it is closed.
    done = subprocess.run(
        [sys.executable, "-c", FULL, CAPTURE if of_sample else small, tmp_path / "out", str(most)],
        env=PATHS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "failed: File too large; no file was kept" in done.stderr
    assert names_in(tmp_path / "out") == []
    unpack([str(small)], str(tmp_path / "out"), StringIO())


def test_a_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "out").write_text("")
    assert main(["unpack", str(CAPTURE), "--out", str(tmp_path / "out")]) == 2
    assert "out is not a writable folder: File exists" in capsys.readouterr().err
