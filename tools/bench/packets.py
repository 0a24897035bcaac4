"""What it takes to read packet captures: `python tools/bench/packets.py [CAPTURE...]` gives MB a CPU second.

MB are bytes of the capture, uncompressed. Without a capture there are two: the sample's, whose packets are small
requests and answers, and one that is made, with sends and pulls of messages of --body bytes in segments of 1,448.
The steps: packets to TCP segments, to calls, to records (all that a capture alone decides), and the whole of
`mqreplay import`, which compresses the records. One thread; medians of --runs in turns.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from io import BytesIO, StringIO
from pathlib import Path
from typing import Final

from mqreplay.decode.capture.calls import Calls
from mqreplay.decode.capture.packets import segments
from mqreplay.importer.captures.captured_records import Captures
from mqreplay.importer.import_command import import_evidence

SAMPLE: Final = Path(__file__).parents[2] / "data/sample/orders-4.9.7/wire.pcap.gz"
CLIENT, BROKER = b"\x0a\x00\x00\x01\x9c\x40", b"\x0a\x00\x00\x09\x2a\x9f"  # host and port
SEGMENT: Final = 1448  # bytes of a full segment on an Ethernet
PULLED: Final = 32  # messages of a pull


def command(code: int, opaque: int, flag: int, ext: dict[str, str], body: bytes = b"") -> bytes:
    """Return a command as a Java client writes it."""
    fields = {"code": code, "extFields": ext, "flag": flag, "language": "JAVA", "opaque": opaque}
    fields |= {"serializeTypeCurrentRPC": "JSON", "version": 407}
    header = json.dumps(fields, separators=(",", ":")).encode()
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def talk(messages: int, body: int) -> Iterator[tuple[bool, bytes]]:
    """Yield what a client (True) and a broker (False) say: each message is sent, and all are pulled in batches."""
    broker = {"brokerName": "b", "brokerId": "0", "brokerAddr": "10.0.0.9:10911", "clusterName": "Made"}
    yield True, command(103, 0, 2, broker)
    yield True, command(34, 1, 2, {}, b'{"clientID":"10.0.0.1@1","producerDataSet":[]}')
    stored = struct.pack(">iIiiiqqiq", 88 + body, 0xDAA320A7, 0, 0, 0, 0, 0, 0, 0).ljust(88 + body, b"m")
    for number in range(messages):
        sent = {"a": "p", "b": "t", "e": "0", "g": str(number), "i": f"UNIQ_KEY\x01{number:032}\x02TAGS\x01A"}
        yield True, command(310, 2 * number + 2, 0, sent, bytes(body))
        yield False, command(0, 2 * number + 2, 1, {"msgId": "0", "queueId": "0", "queueOffset": str(number)})
        if number % PULLED == PULLED - 1:
            asked = {"consumerGroup": "g", "topic": "t", "queueId": "0", "queueOffset": str(number)}
            yield True, command(11, 2 * number + 3, 0, asked)
            answer = {"nextBeginOffset": str(number), "minOffset": "0", "maxOffset": str(number)}
            yield False, command(0, 2 * number + 3, 1, answer, stored * PULLED)


def made_capture(messages: int, body: int) -> bytes:
    """Return a capture by tcpdump of a talk; each second full segment is acknowledged."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    seq, count = {True: 1, False: 1}, 0
    for is_client, said in talk(messages, body):
        for at in range(0, len(said), SEGMENT):
            count += 1
            data = said[at : at + SEGMENT]
            out.append(_packet(count, is_client, seq[is_client], data))
            seq[is_client] = (seq[is_client] + len(data)) % 2**32
            if count % 2:
                out.append(_packet(count, not is_client, seq[not is_client], b""))
    return b"".join(out)


def _packet(count: int, is_client: bool, seq: int, data: bytes) -> bytes:
    (host, port), (to, to_port) = ((end[:4], end[4:]) for end in ((CLIENT, BROKER) if is_client else (BROKER, CLIENT)))
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(data), 0, 0, 64, 6, 0, host, to)
    frame = bytes(12) + b"\x08\x00" + ip + port + to_port + struct.pack(">IIBBHHH", seq, 0, 80, 16, 0, 0, 0) + data
    return struct.pack("<IIII", 1_795_228_830 + count // 10_000, count % 10_000 * 100, len(frame), len(frame)) + frame


def whole_import(capture: Path) -> None:
    """Import a capture."""
    with tempfile.TemporaryDirectory() as folder:
        import_evidence([str(capture)], f"{folder}/out", StringIO(), as_json=True)


def measure(capture: Path, runs: int) -> None:
    """Print a table."""
    data = capture.read_bytes()
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    count: Callable[[object], int] = lambda values: sum(1 for _ in values)  # type: ignore[attr-defined] # noqa: E731
    steps: dict[str, Callable[[], object]] = {
        "segments with data": lambda: count(segments(BytesIO(data))),
        "calls": lambda: count(Calls(segments(BytesIO(data)))),
        "records": lambda: count(Captures([str(capture)]).records()),
        "import": lambda: whole_import(capture),
    }
    taken: dict[str, list[float]] = {name: [] for name in steps}
    counts: dict[str, object] = {}
    for _ in range(runs):
        for name, step in steps.items():
            began = time.process_time()
            counts[name] = step()
            taken[name].append(time.process_time() - began)
    print(f"{capture.name}: {len(data) / 1e6:.1f} MB; medians of {runs}")
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"  {name:20}{counts[name] or '':>10}{median:8.2f} CPU s{len(data) / 1e6 / median:8.1f} MB/s")


def main() -> None:
    """Measure each capture."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("captures", nargs="*", type=Path)
    arguments.add_argument("--body", type=int, default=4096, help="bytes of each message that is made")
    arguments.add_argument("--messages", type=int, default=6_400)
    arguments.add_argument("--runs", type=int, default=5)
    given = arguments.parse_args()
    for capture in given.captures or [SAMPLE]:
        measure(capture, given.runs)
    if not given.captures:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "bodies.pcap")
            made.write_bytes(made_capture(given.messages, given.body))
            measure(made, given.runs)


if __name__ == "__main__":
    main()
