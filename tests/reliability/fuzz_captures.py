"""Captures that are fuzzed: their bytes, segments in any order, what is said in them, and whole imports."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from io import BytesIO, StringIO
from pathlib import Path

from decode.capture import wire
from mqreplay.decode.capture.calls import Calls
from mqreplay.decode.capture.lines import Cut, Unnamed, record_of
from mqreplay.decode.capture.messages import without_messages
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.packets import Segment, segments
from mqreplay.decode.kinds import KINDS
from mqreplay.importer.import_command import import_evidence
from mqreplay.words.errors import DecodeError, InputError
from reliability.fuzz_run import Target
from tests_shared import SAMPLE

SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_Said = tuple[int, int, dict[str, str], str]
# A little of everything that a capture holds: code, flag, fields, body; an answer has the code 0 and the flag 1.
_EXT = {"consumerGroup": "g", "topic": "t", "queueId": "1", "queueOffset": "7", "commitOffset": "6", "sysFlag": "3"}
_ROUTE = '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.9:10911"},"brokerName":"b"}],"queueDatas":[]}'
_STATS = (
    '{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:{"lastUpdateTimestamp":0,"maxOffset":9,"minOffset":2}}}'
)
_BEAT = '{"clientID":"10.0.0.1@77","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"t"}]}]}'
_INFO = (
    '{"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1"},"brokerName":"b","cluster":"C"}},"clusterAddrTable":{"C":["b"]}}'
)
_ANSWER = {"nextBeginOffset": "9", "offset": "4", "suggestWhichBrokerId": "0"}
# Answers and requests that no broker gives.
_STRANGE: list[_Said] = [
    (103, 2, {"brokerName": "b", "brokerId": "9" * 4400, "brokerAddr": wire.BROKER}, ""),
    (34, 0, {}, '{"clientID":"","consumerDataSet":[{}]}'),
    *((28, 0, {}, ""), (0, 1, {}, '{"table":{{"a":1}:"2"}}')),
    *((28, 0, {}, ""), (0, 1, {}, '{"table":{0:"2","a":[1],"b":0.5}}')),
    *((106, 0, {}, ""), (0, 1, {}, '{"brokerAddrTable":{0:{"brokerAddrs":{{"a":1}:"h:1"}}}}')),
    (220, 2, {"group": "g"}, '{"offsetTable":[{"brokerName":"b"},5]}'),
]
_SAID: list[_Said] = [
    (103, 2, {"brokerName": "b", "brokerId": "0", "brokerAddr": wire.BROKER}, ""),
    (34, 0, {}, _BEAT),
    *((11, 0, _EXT, ""), (0, 1, _ANSWER, "")),
    *((14, 0, _EXT, ""), (0, 1, _ANSWER, "")),
    *((15, 2, _EXT, ""), (35, 0, {"clientID": "10.0.0.1@77", "consumerGroup": "g"}, "")),
    *((28, 0, {}, ""), (0, 1, {}, '{"table":{"bootTimestamp":"1795228700001","commitLogMaxOffset":"5"}}')),
    *((38, 0, _EXT, ""), (0, 1, {}, '{"consumerIdList":["c"]}')),
    *((41, 0, {}, '{"clientId":"c","consumerGroup":"g","mqSet":[]}'), (0, 1, {}, '{"lockOKMQSet":[]}')),
    *((105, 0, _EXT, ""), (0, 1, {}, _ROUTE)),
    *((106, 0, {}, ""), (0, 1, {}, _INFO)),
    *((202, 0, _EXT, ""), (0, 1, {}, _STATS)),
    (220, 2, {"group": "g", "topic": "t"}, _STATS),
]


def captures() -> list[Target]:
    """Captures from their bytes, from segments in any order, and whole imports."""
    files = _captures()
    return [
        Target("bytes of a capture", files, _capture, most_bytes=128 * 1024),
        Target("segments", tuple(bytes([n]) * 40 for n in range(8)), _segments),
        Target(
            "what is said",
            (_words(_SAID), _words(_SAID[:8]), _words(_SAID[8:]), _words([*_SAID[:1], *_STRANGE])),
            _said,
        ),
        Target("import", (*files, *map(gzip.compress, files)), _import, (InputError,), 128 * 1024),
    ]


def _words(said: list[_Said]) -> bytes:
    return b"\n".join(json.dumps(one).encode() for one in said)


def _talk(said: list[_Said]) -> list[Segment]:
    """A connection on which this is said, an answer to each request that wants one."""
    talk = wire.Talk()
    segments = [talk.ask(b"", begins=True)]
    for number, (code, flag, ext, body) in enumerate(said):
        opaque = number - (flag & 1)
        make = wire.rocketmq_command if number % 3 == 0 and -(2**15) <= code < 2**15 else wire.command
        from_client = not flag & 1 and code != 220
        segments.append((talk.ask if from_client else talk.answer)(make(code, opaque, flag, ext, body.encode())))
    return [*segments, talk.ask(b"", ends=True), talk.answer(b"", ends=True)]


def _said(data: bytes) -> None:
    """Commands that are whole, of words that are not."""
    said: list[_Said] = []
    for line in data.split(b"\n")[:300]:
        try:
            code, flag, ext, body = json.loads(line)
            body.encode()
            fits = {abs(code) < 2**31, abs(flag) < 2**31} == {True} and all(len(n.encode()) < 2**15 for n in ext)
            said += [(int(code), int(flag), {n: str(v).replace("\ud800", "") for n, v in ext.items()}, body)] * fits
        except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
            continue
    _records(_talk(said))


def _captures() -> tuple[bytes, ...]:
    packets = list(wire.framed(_talk(_SAID)))
    sample = gzip.decompress((SAMPLE / "orders-4.9.7" / "wire.pcap.gz").read_bytes())
    cut = [(ts, data[:80], len(data) - len(data[:80]) + lacking) for ts, data, lacking in packets]
    return wire.pcap(packets), wire.pcapng(packets), wire.pcap(cut, order=">", nanos=True), sample[:24000], b""


def _records(some: list[Segment]) -> None:
    names, calls = Names(Calls(some)), Calls(some)
    for call in calls:
        try:
            found = record_of(without_messages(call), names)
        except (Cut, Unnamed, DecodeError):
            continue
        if found is None:
            continue
        line = json.dumps({k: v for k, v in found[1].items() if v is not None}, ensure_ascii=False).encode()
        try:
            KINDS[found[0]].decode(line)
        except DecodeError:
            continue
    assert not calls._held
    assert not calls._waiting


def _capture(data: bytes) -> None:
    some: list[Segment] = []
    try:
        for segment in segments(BytesIO(data)):
            assert len(segment.data) <= segment.length
            some.append(segment)
    finally:
        _records(some)


def _segments(data: bytes) -> None:
    """Segments of a talk in an order, with gaps, numbers and ends that the bytes choose."""
    some = []
    for n, choice in enumerate(data[:500]):
        one = TALK[(n + choice // 16) % len(TALK)] if choice & 1 else TALK[n % len(TALK)]
        seq = (one.seq + (0, 0, 0, 0, 1, -1, 2**31, 1000)[choice >> 5] * (choice & 15)) % 2**32
        kept = None if choice % 7 else choice
        port = 40000 + choice % 3 * (choice % 11 == 0)
        source = one.source if "40000" not in one.source else f"10.0.0.1:{port}"
        some.append(Segment(one.ts_us, source, one.target, seq, one.begins, one.ends, one.data[:kept], one.length))
    _records(some)


def _import(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder, "wire.pcap")
        path.write_bytes(data)
        try:
            import_evidence([str(path)], f"{folder}/out", StringIO(), as_json=True)
        finally:
            left = [] if not Path(folder, "out").exists() else os.listdir(f"{folder}/out")
            assert not [name for name in left if "unfinished" in name]


TALK = _talk(_SAID)
