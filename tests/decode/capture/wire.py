"""Captures made for tests: commands as RocketMQ sends them, in TCP segments, in packets, in files."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from ipaddress import ip_address

from mqreplay.decode.capture.packets import Segment

CLIENT, BROKER = "10.0.0.1:40000", "10.0.0.9:10911"
MS = 1_795_228_830_000


def command(code: int, opaque: int, flag: int = 0, ext: dict | None = None, body: bytes = b"", remark=None) -> bytes:
    """A command with a JSON header."""
    header_fields = {
        "code": code,
        "extFields": ext or {},
        "flag": flag,
        "language": "JAVA",
        "opaque": opaque,
        "version": 407,
    }
    header = json.dumps(header_fields | ({"remark": remark} if remark else {})).encode()
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def rocketmq_command(code: int, opaque: int, flag: int = 0, ext: dict | None = None, body: bytes = b"") -> bytes:
    """The same with RocketMQ's own header."""
    fields = b"".join(
        struct.pack(">h", len(name)) + name.encode() + struct.pack(">i", len(value)) + value.encode()
        for name, value in (ext or {}).items()
    )
    header = struct.pack(">hbhii", code, 0, 407, opaque, flag) + struct.pack(">i", 0)
    header += struct.pack(">i", len(fields)) + fields
    return struct.pack(">II", 4 + len(header) + len(body), 1 << 24 | len(header)) + header + body


def heartbeat(client_id: str, opaque: int) -> bytes:
    """HEART_BEAT, its fields in fastjson's order."""
    return command(
        34, opaque, body=json.dumps({"clientID": client_id, "producerDataSet": []}, separators=(",", ":")).encode()
    )


def registration(name: str, broker_id: int, address: str, opaque: int, cluster: str | None = None) -> bytes:
    """REGISTER_BROKER, as a broker sends it to its name servers."""
    ext = {"brokerName": name, "brokerId": str(broker_id), "brokerAddr": address}
    return command(103, opaque, 2, ext | ({"clusterName": cluster} if cluster else {}))


@dataclass
class Talk:
    """A connection's bytes; ``say`` gives a segment each."""

    client: str = CLIENT
    server: str = BROKER
    seq: dict[str, int] = field(default_factory=dict)
    now_us: int = MS * 1000

    def say(
        self, source: str, data: bytes, begins: bool = False, ends: bool = False, kept: int | None = None
    ) -> Segment:
        """``source`` says ``data`` a millisecond later; the capture has ``kept`` bytes of it."""
        self.now_us += 1000
        target = self.server if source == self.client else self.client
        seq = self.seq.setdefault(source, 2**32 - 50 if source == self.client else 1000)
        self.seq[source] = (seq + len(data) + begins) % 2**32
        return Segment(self.now_us, source, target, seq, begins, ends, data[:kept], len(data))

    def ask(self, data: bytes, **more) -> Segment:
        """The client says it."""
        return self.say(self.client, data, **more)

    def answer(self, data: bytes, **more) -> Segment:
        """The server says it."""
        return self.say(self.server, data, **more)


def tcp(segment: Segment) -> bytes:
    """The segment in an IP packet."""
    (host, port), (to, to_port) = (end.rsplit(":", 1) for end in (segment.source, segment.target))
    flags = 2 * segment.begins | segment.ends | 0x10
    head = struct.pack(">HHIIBBHHH", int(port), int(to_port), segment.seq, 0, 5 << 4, flags, 0, 0, 0)
    source, target = ip_address(host).packed, ip_address(to).packed
    if len(source) == 16:
        return struct.pack(">IHBB", 6 << 28, 20 + segment.length, 6, 64) + source + target + head + segment.data
    length = 40 + segment.length
    return struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, 6, 0) + source + target + head + segment.data


def ethernet(packet: bytes, vlan: bool = False) -> bytes:
    """A packet in its frame."""
    kind = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"
    return bytes(12) + (b"\x81\x00\x00\x07" if vlan else b"") + kind + packet


def pcap(packets: Iterable[tuple[int, bytes, int]], link: int = 1, order: str = "<", nanos: bool = False) -> bytes:
    """A file of (epoch microseconds, bytes, bytes that lack), as tcpdump writes it."""
    out = struct.pack(order + "IHHiIII", 0xA1B23C4D if nanos else 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    for ts, data, lacking in packets:
        part = ts % 10**6 * (1000 if nanos else 1)
        out += struct.pack(order + "IIII", ts // 10**6, part, len(data), len(data) + lacking) + data
    return out


def pcapng(packets: Iterable[tuple[int, bytes, int]], link: int = 1, order: str = "<", power: int = 9) -> bytes:
    """The same as dumpcap writes it, with ticks of 10**-power seconds."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)

    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = struct.pack(order + "HH4s", 9, 1, bytes([power, 0, 0, 0])) + bytes(4)
    out += block(1, struct.pack(order + "HHI", link, 0, 0) + options)
    for ts, data, lacking in packets:
        ticks = ts * 10**power // 10**6
        header_fields = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data) + lacking)
        out += block(6, header_fields + data)
    return out


def framed(segments: Iterable[Segment]) -> Iterator[tuple[int, bytes, int]]:
    """Segments as packets of an Ethernet."""
    for one in segments:
        yield one.ts_us, ethernet(tcp(one)), one.length - len(one.data)


def stream(data: bytes) -> BytesIO:
    """A file's bytes, to be read."""
    return BytesIO(data)
