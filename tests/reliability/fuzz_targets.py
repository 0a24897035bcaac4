"""What is fuzzed: every decoder, captures, and the doctor, each with whole inputs that are damaged."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from decode.capture import wire
from ingest.arrow_schemas import schema_of
from mqreplay.cli.doctor.files import examine_file
from mqreplay.core.tags_filter import build
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.capture.commands import CommandReader
from mqreplay.decode.capture.streams import Piece
from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.fastjson_text import read_fastjson
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kinds import KINDS, Kind
from mqreplay.decode.offset_lines import table_lines
from mqreplay.decode.polled_offsets import decode_polled_offsets
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics
from mqreplay.ingest.lines import LineReader
from mqreplay.ingest.offset_bytes import OffsetBytes
from mqreplay.ingest.plain_lines import PlainLines
from mqreplay.ingest.records import batches
from mqreplay.words.errors import DecodeError, InputError
from oracles.fastjson.consumer_offset import decode_consumer_offset as decode_as_a_broker
from reliability.fuzz_captures import SCRATCH
from reliability.fuzz_captures import captures as captures
from reliability.fuzz_run import Target
from tests_shared import ROOT, SAMPLE

DATA = ROOT / "tests" / "decode" / "data"
LONGEST_SEED = 8_000  # bytes
EDGES = (b"", b"{}", b"[]", b"null", b"\n", b"\0", b'{"offsetTable":{}}', b'{"offsetTable":{"t@g":{}}}', b"\x1f\x8b")
BROKEN_TABLES = (
    b'{"offsetTable":{"a@b":{0:1,1:"12",2:-3.5,"3":4}}}',
    b'{"offsetTable":{"a@b":{"0":"1","1":"2"}}}',
    b"{'offset_table':{T:{'0':\"1,000\", 1 :2.9 2:3L}}} // c",
    b'\xef\xbb\xbf/* a */{,offsetTable:{"T":{0:1,},},} // b',
    b'{"other":[1 2,{"a":x\'0F\'}],"dataVersion":{"counter":1},"offsetTable":{"a@b":{"$ref":".."}}}',
    b'{"@type":"java.util.HashMap","offsetTable":{"a@b":{"@type":"x",0:new Date(5)}}}',
    b'{"offsetTable":{"a@b":{0:{"andIncrement":1,"andDecrement":2},1:"12",2:true,3:null,4:1e3,5:-7.5F}}}',
    b'{"offsetTable":[{"a":1}],"b":Set[1,2],"c":TreeSet[3],"d":NaN,"e":undefined}',
)
POLLED = (
    b'{"ts":1795228794427,"offsetTable":{"t@g":{"0":12,"1":-1},"%RETRY%g@g":{"0":7},"a@b@c":{"3":4}}}',
    b'{"ts":1795228799427,"response_ts":1795228799430,"changed":{"t@g":{"0":13}},"removed":{"t@g":[1],"u@g":[0,2]}}',
    b'{"ts":1795228804427}',
)


def decoders() -> list[Target]:
    """Every reader of a line or a file, and what it gives made into rows of a table."""
    lines = [Target(kind.stem, _lines(kind.stem), _line_reader(kind)) for kind in KINDS.values()]
    one_of_each = tuple(target.seeds[0] for target in lines)
    files = {
        "consumerOffset": decode_consumer_offset,
        "topics": decode_topics,
        "subscriptionGroup": decode_subscription_group,
        "delayOffset": decode_delay_offset,
        "notice-group.offsets": decode_client_offsets,
        "brokers": decode_brokers,
    }
    tables = _files("consumerOffset")
    polled = tuple(b'{"ts":1795228794427,' + table[1:] for table in BROKEN_TABLES)
    return [
        *lines,
        *(Target(f"{stem}.json", _files(stem), run) for stem, run in files.items()),
        Target("json object", one_of_each, read_object),
        Target("fastjson text", tuple(one for stem in files for one in _files(stem)[:2]), read_fastjson),
        Target("polled offsets", (*POLLED, *polled, *EDGES), decode_polled_offsets),
        Target("fastjson of 4.9", (*BROKEN_TABLES, *tables), partial(_as_a_broker, "4.9.7")),
        Target("fastjson of 5.3", (*BROKEN_TABLES, *tables), partial(_as_a_broker, "5.3.3")),
        Target("offsets byte by byte", _laid_out(), partial(_offset_bytes, _laid_out())),
        Target("subscription", tuple(s.encode() for s in ("*", "a || b", "TagA||TagB", "", " | ", "é||中")), _tags),
        Target("remoting commands", _streams(), _commands),
        Target("lines of a file", tuple(gzip.compress(b"\n".join(one_of_each[n:])) for n in range(3)), _line_file),
    ]


def doctor() -> list[Target]:
    """What `mqreplay doctor FILE` says of a file by its name, beside some a damaged .bak."""
    names = {
        "consumerOffset.json": "consumerOffset",
        "consumerOffset.json.bak": "consumerOffset",
        "topics.json": "topics",
        "subscriptionGroup.json": "subscriptionGroup",
        "delayOffset.json": "delayOffset",
        "notice-group.offsets.json": "notice-group.offsets",
        "brokers.json": "brokers",
    }
    whole = [
        Target(f"doctor {name}", (*_files(stem), *BROKEN_TABLES), _examine(name), ()) for name, stem in names.items()
    ]
    of_lines = [
        Target(
            f"doctor {stem}.jsonl",
            tuple(b"\n".join(_lines(stem)[n : n + 3]) for n in range(3)),
            _examine(f"{stem}.jsonl"),
            (),
        )
        for stem in ("pull_log", "topic_stats", "heartbeats")
    ]
    gzipped = tuple(gzip.compress(b"\n".join(_lines("pull_log")[n:])) for n in range(3))
    unknown = (*BROKEN_TABLES, *(_files(stem)[0] for stem in sorted(set(names.values()))))
    return [
        *whole,
        *of_lines,
        Target("doctor pull_log.jsonl.gz", gzipped, _examine("pull_log.jsonl.gz"), ()),
        Target("doctor other.jsonl", _lines("routes"), _examine("other.jsonl"), ()),
        Target("doctor any.json", unknown, _examine("any.json"), (InputError,)),
    ]


def _lines(stem: str) -> tuple[bytes, ...]:
    found = (DATA / f"{stem}.jsonl").read_bytes().splitlines()
    for path in sorted(SAMPLE.glob(f"*/{stem}.jsonl.gz")):
        found += gzip.decompress(path.read_bytes()).splitlines()[:200:20]
    return tuple(line for line in found if len(line) <= LONGEST_SEED)


def _files(stem: str) -> tuple[bytes, ...]:
    found = [path.read_bytes() for path in sorted(DATA.glob(f"{stem}*.json"))]
    whole = [data for data in found if len(data) <= LONGEST_SEED] or found[:1]
    return (*whole * -(-2 * len(EDGES) // len(whole)), *EDGES)  # two thirds of them whole


def _laid_out() -> tuple[bytes, ...]:
    """Offset tables as a broker lays them out, which the byte by byte reader takes."""
    found = [path.read_bytes() for path in sorted(SAMPLE.glob("*/snapshots/*/*/consumerOffset.json"))]
    return tuple(data for data in found if len(data) <= LONGEST_SEED and table_lines(data) is not None)[:3]


def _line_reader(kind: Kind) -> Callable[[bytes], object]:
    schema, renamed = schema_of(kind.stem), kind.renamed
    columns = set(kind.columns)

    def run(data: bytes) -> None:
        line = data.replace(b"\n", b" ")
        fast = None if kind.plain is None or not line.strip() else PlainLines(kind.plain).read([line])
        try:
            row = kind.decode(line)
        except DecodeError as error:
            str(error).encode("utf-8", "surrogatepass")
            assert fast is None, "the fast reader takes what the other one refuses"
            raise
        assert set(row) == columns
        assert all(row[name] is not None for name in kind.required)
        if fast is not None:
            assert fast.frame.row(0, named=True) == row
        for name, column in renamed.items():
            row[column] = row.pop(name)
        (batch,) = batches(iter([row]), schema)
        batch.validate(full=True)

    return run


def _as_a_broker(version: str, data: bytes) -> None:
    decode_as_a_broker(data.decode("utf-8", "replace"), version)


def _offset_bytes(whole: tuple[bytes, ...], data: bytes) -> None:
    for before in whole:
        known = OffsetBytes()
        known.remember(before, decode_consumer_offset(before))
        if known.difference(data) is not None:
            assert known.values.tolist() == decode_consumer_offset(data).offset


def _tags(data: bytes) -> None:
    build("t", data.decode("utf-8", "replace"), "TAG")


def _streams() -> tuple[bytes, ...]:
    ext = {"consumerGroup": "g", "topic": "t", "queueId": "1"}
    of_json = wire.command(11, 1, ext=ext, body=b"b" * 50) + wire.command(0, 1, 1)
    own = wire.rocketmq_command(11, 1, ext=ext, body=b"b" * 50) + wire.rocketmq_command(15, 2, 2, ext)
    return of_json, own, wire.heartbeat("c", 1) * 3, own * 20


def _commands(data: bytes) -> None:
    """The bytes in pieces; each piece's length, and what lacks behind it, come from the bytes themselves."""
    reader, at = CommandReader(), 0
    reader.begin()
    while at < len(data):
        size = 1 + data[at] * 7
        lacking = (data[at] & 31 == 31) * data[at] ** 3
        for command in reader.take(Piece(at, data[at : at + size], lacking)):
            assert len(command.body) <= command.body_bytes
        assert reader.held <= len(data)
        at += size


def _line_file(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=SCRATCH) as file:
        file.write(data)
        file.flush()
        reader = LineReader(file.name, KINDS["pull_log"].decode)
        good = sum(1 for _ in reader)
        assert good <= reader.lines


def _examine(name: str) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
            path = Path(folder, name)
            path.write_bytes(data)
            if not name.endswith(".bak") and data[:1] < b"\x80" and len(data) % 2:
                Path(f"{path}.bak").write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 1 :])
            verdict = examine_file(str(path))
            verdict.as_text().encode()
            json.dumps(verdict.as_dict()).encode()

    return run
