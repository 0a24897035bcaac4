"""The sample's packet capture made into records: the same that its recorder wrote, in the minutes that both saw."""

from __future__ import annotations

import gzip
import os
import socket
import struct
from collections import defaultdict
from itertools import islice

import pytest

from decode.capture.wire import BROKER, Talk, command, framed, heartbeat, pcap, registration
from importer.captures.small_captures import CAPTURE, NIGHT, import_captures
from mqreplay.cli.command_line import main
from mqreplay.core.send_retry import send_status
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.kinds import KINDS
from mqreplay.importer.captures.captured_records import REASONS, Captures

# What tells a record from others of the same kind; what only one of the two knows.
SAME = {
    "pull_log": ("client_id", "broker_addr", "opaque", "topic", "queue_id"),
    "offset_commits": ("client_id", "broker_addr", "kind", "consumer_group", "topic", "queue_id"),
    "heartbeats": ("client_id", "broker_addr", "kind"),
    "consumer_lists": ("client_id", "broker_addr", "consumer_group"),
    "lock_requests": ("client_id", "broker_addr", "kind", "consumer_group"),
    "server_requests": ("client_id", "broker_addr", "request_code", "consumer_group"),
    "other_requests": ("client_id", "broker_addr", "consumer_group", "msg_id", "commitlog_offset"),
    "cluster_info": ("namesrv_addr",),
}


SOME = 4_000  # packets
EITHER = {"ts", "request_ts", "response_ts", "error", "language"}
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
    folder = tmp_path_factory.mktemp("unpacked")
    return folder, import_captures([CAPTURE], folder)


def test_what_it_tells(unpacked):
    folder, reported = unpacked
    records = {name.removesuffix(".jsonl.gz"): count for name, count in reported["records"].items()}
    assert records == {
        **{"pull_log": 2172, "offset_commits": 1932, "heartbeats": 852, "consumer_lists": 736, "lock_requests": 34},
        **{
            "server_requests": 308,
            "routes": 405,
            "cluster_info": 130,
            "topic_stats": 154,
            "sends": 1353,
            "other_requests": 18,
        },
    }
    assert reported["left_out"] == {"records whose body tcpdump cut: capture with -s 0": 516}, (
        "it was taken with -s 1500"
    )
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["brokers.json", *(f"{stem}.jsonl.gz" for stem in records)]
    )
    assert reported["notes"] == [
        "100 pulls have no answer: no packet ends the connection (59), "
        "the client ended the connection first, or was killed (41)",
    ]
    brokers = decode_brokers((folder / "brokers.json").read_bytes())
    assert (brokers.cluster, brokers.brokers) == ("DefaultCluster", []), "no answer has a broker's settings"
    assert sorted(brokers.name_servers) == ["127.0.0.1:9876", "127.0.0.1:9877"]
    for stem, count in records.items():
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


def test_requests_name_the_language_of_their_client(unpacked):
    heartbeats = [KINDS["heartbeats"].decode(line) for line in lines(unpacked[0] / "heartbeats.jsonl.gz")]
    assert {record["language"] for record in heartbeats} == {"JAVA"}


def test_sends_are_what_the_producer_logged(unpacked):
    produced = {one["msg_id"]: one for one in map(KINDS["produce_log"].decode, lines(NIGHT / "produce_log.jsonl.gz"))}
    sends = [KINDS["sends"].decode(line) for line in lines(unpacked[0] / "sends.jsonl.gz")]
    for send in sends:
        logged = produced[send["msg_id"]]
        same = ("topic", "broker_name", "queue_offset", "offset_msg_id", "size")
        assert [send[name] for name in same] == [logged[name] for name in same]
        assert (send["answer_queue_id"], send["keys"]) == (logged["queue_id"], logged["key"])
        assert send_status(send["response_code"]) == logged["send_status"]
        assert send["queue_id"] == send["answer_queue_id"]
        assert send["tags"] == (logged["tags"] or "")


def test_few_answers_were_not_seen(unpacked):
    pulls = [KINDS["pull_log"].decode(line) for line in lines(unpacked[0] / "pull_log.jsonl.gz")]
    assert sum(p["response_code"] is None for p in pulls) == 100


def capture():
    return gzip.decompress(CAPTURE.read_bytes())


def packets(data):
    at = 24
    while at < len(data):
        size = 16 + struct.unpack_from("<I", data, at + 8)[0]
        yield data[at : at + size]
        at += size


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The first packets of the capture, in a file, and the recording that they give."""
    folder = tmp_path_factory.mktemp("short")
    data = capture()
    path = folder / "wire.pcap.gz"
    path.write_bytes(gzip.compress(data[:24] + b"".join(islice(packets(data), SOME))))
    import_captures([path], folder / "out")
    return path, recording_in(folder / "out")


def recording_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
def test_the_old_name_of_the_command_makes_the_same_recording(short, tmp_path, capsys):
    path, expected = short
    assert main(["unpack", str(path), "--out", str(tmp_path)]) == 0
    reported = capsys.readouterr()
    assert f"{len(lines(tmp_path / 'pull_log.jsonl.gz')):>10,}  pull_log.jsonl.gz" in reported.out
    assert reported.err == f"mqreplay: unpack is deprecated, use import: mqreplay import {path} --out {tmp_path}\n"
    assert recording_in(tmp_path) == expected
    assert main(["import", str(path), "--out", str(tmp_path)]) == 2
    assert recording_in(tmp_path) == expected, "nothing is written over"


def test_a_link_to_a_capture_is_one(short, tmp_path):
    (tmp_path / "wire.pcap.gz").symlink_to(short[0])
    import_captures([tmp_path / "wire.pcap.gz"], tmp_path / "out")
    assert recording_in(tmp_path / "out") == short[1]


def test_a_capture_in_pieces_is_read_by_its_times(short, tmp_path):
    data = gzip.decompress(short[0].read_bytes())
    each = list(packets(data))
    pieces = [tmp_path / "a.pcap10", tmp_path / "a.pcap9"]
    for path, some in zip(pieces, (each[SOME // 2 :], each[: SOME // 2]), strict=True):
        path.write_bytes(data[:24] + b"".join(some))
    import_captures(pieces, tmp_path / "out")
    assert recording_in(tmp_path / "out") == short[1]


def test_a_torn_one_gives_what_is_before_the_tear(tmp_path):
    torn = tmp_path / "torn.pcap.gz"
    torn.write_bytes(CAPTURE.read_bytes()[:600_000])
    reported = import_captures([torn], tmp_path / "out")
    assert 500 < reported["records"]["pull_log.jsonl.gz"] < 2172
    (tear,) = [note for note in reported["notes"] if "torn.pcap.gz: " in note]
    assert tear.endswith("the packets before it were read")


@pytest.mark.parametrize("content", [b"", b'{"ts":1}\n', None])
def test_what_is_no_capture_is_refused(tmp_path, capsys, content):
    path = tmp_path / "wire.pcap"
    if content is not None:
        path.write_bytes(content)
    assert main(["import", str(path), "--out", str(tmp_path / "out")]) == 2
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_without_rocketmq_in_it_says_so(tmp_path, capsys):
    path = tmp_path / "wire.pcap"
    path.write_bytes(capture()[:24])
    assert main(["import", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "is evidence that nightly can use; no recording was made" in capsys.readouterr().err


def test_what_is_no_file_is_refused_at_once(tmp_path, capsys, monkeypatch):
    os.mkfifo(tmp_path / "fifo.pcap")
    (tmp_path / "loose.pcap").symlink_to(tmp_path / "nowhere")
    (tmp_path / "zero.pcap").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)  # the address of a socket has little room for a path
        listening.bind("socket.pcap")
        for name in ("fifo.pcap", "loose.pcap", "zero.pcap", "socket.pcap"):
            assert main(["import", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
            assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("at", [100_000, -6])
def test_a_damaged_gzip_stream_gives_nothing(short, tmp_path, capsys, at):
    damaged, data = tmp_path / "wire.pcap.gz", bytearray(short[0].read_bytes())
    data[at] ^= 1
    damaged.write_bytes(data)
    assert main(["import", str(damaged), "--out", str(tmp_path / "out")]) == 2
    reported = capsys.readouterr()
    assert "it is damaged: " in reported.out
    assert reported.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_addresses_that_nobody_named_are_reported_up_to_a_bound(tmp_path):
    sent = [Talk(server=f"10.{n >> 8}.{n & 255}.9:10911").ask(command(11, 1)) for n in range(150)]
    (tmp_path / "wire.pcap").write_bytes(pcap(framed(sent)))
    captures = Captures([str(tmp_path / "wire.pcap")])
    assert list(captures.records()) == []
    left_out = captures.left_out
    assert len(left_out) == REASONS + 1
    assert left_out["requests that cannot be attributed: other brokers"] == 50
    assert sum(left_out.values()) == 150


def captured(tmp_path, sent):
    """Import segments; return the folder and the report."""
    (tmp_path / "wire.pcap").write_bytes(pcap(framed(sent)))
    return tmp_path / "out", import_captures([tmp_path / "wire.pcap"], tmp_path / "out")


def test_a_brokers_answer_gives_its_settings_but_no_secret(tmp_path):
    talk, asking = Talk(), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    settings = b"brokerName=b\nbrokerId=1\nbrokerClusterName=Orders\naccessMessageInMemoryMaxRatio=30\naclSecretKey=x\n"
    sent = [asking.ask(registration("b", 1, BROKER, 1)), talk.ask(heartbeat("c@1", 1)), talk.ask(command(26, 2))]
    sent += [talk.answer(command(0, 2, 1, body=settings))]
    folder, reported = captured(tmp_path, sent)
    assert (reported["notes"], reported["brokers"]) == ([], ["b-1"])
    assert b"Secret" not in (folder / "brokers.json").read_bytes()
    (broker,) = decode_brokers((folder / "brokers.json").read_bytes()).brokers
    assert (broker.key, broker.addr, broker.effective_access_message_in_memory_max_ratio) == ("b-1", BROKER, 30)


def test_of_two_clusters_none_is_named(tmp_path):
    talk, asking = Talk(), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    sent = [asking.ask(registration("b", 0, BROKER, 1, "Orders")), asking.ask(registration("c", 0, "h:1", 2, "Bulk"))]
    folder, reported = captured(tmp_path, [*sent, talk.ask(heartbeat("c@1", 1))])
    (note,) = reported["notes"]
    assert note.startswith("the files are of 2 clusters (Orders, Bulk); ")
    assert decode_brokers((folder / "brokers.json").read_bytes()).cluster is None


def test_without_a_name_there_is_no_brokers_json(tmp_path):
    folder, reported = captured(tmp_path, [Talk().ask(command(34, 1, body=b"{")), *_pull_of_a_named_broker()])
    assert reported["notes"] == ["the files name no cluster; give nightly --cluster NAME"]
    assert not (folder / "brokers.json").exists()


def _pull_of_a_named_broker():
    talk, asking = Talk("10.0.0.2:40000"), Talk("10.0.0.9:50000", "10.0.0.5:9876")
    return [asking.ask(registration("b", 0, BROKER, 1)), talk.ask(heartbeat("c@1", 1))]
