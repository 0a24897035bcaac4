"""The TCP segments of a capture file: classic pcap and pcapng.

Source: the file formats of tcpdump (pcap-savefile(5)) and of pcapng; RFC 791, 8200 and 9293.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import BinaryIO, Final, NamedTuple

from mqreplay.words.errors import DecodeError

_PCAP: Final = {  # magic: (byte order, ticks a second)
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
_SECTION: Final = b"\x0a\x0d\x0d\x0a"
_INTERFACE, _ENHANCED = 1, 6  # relevant blocks of pcapng
_LONGEST_BLOCK: Final = 16 * 1024 * 1024
_MOST_INTERFACES: Final = 65_536
_MOST_HEADERS: Final = 16  # VLAN tags of a frame, headers of an IPv6 packet before TCP's
# Bytes before the IP packet, by link type; Ethernet's and Linux's own are looked into.
_NULL, _ETHERNET, _COOKED, _COOKED_2 = 0, 1, 113, 276
_RAW: Final = (12, 14, 101, 228, 229)
_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, (0x8100, 0x88A8)
_TCP = 6
_EXTENSIONS: Final = (0, 43, 60)  # headers of IPv6 between its own and TCP's
_FIN, _SYN, _RST = 1, 2, 4
_BATCH_BYTES: Final = 1 << 16  # of packets that are read before the first of them is used: this is a tenth quicker
_PLAIN_IPV4: Final = 0x45  # without options
# Of a plain IPv4 packet with TCP: length, fragment, protocol, hosts and ports, sequence number, data offset, flags.
_PLAIN: Final = struct.Struct(">2xH2xHxB2x12sI4xBB")
_TCP_HEAD: Final = struct.Struct(">4sI4xBB")  # ports, sequence number, data offset, flags


class Segment(NamedTuple):
    """A TCP segment; ``ts_us`` in epoch microseconds, ``source`` and ``target`` as ``host:port``.

    ``length`` is its payload in bytes as sent; ``data`` may have only the first of them.
    """

    ts_us: int
    source: str
    target: str
    seq: int
    begins: bool
    ends: bool
    data: bytes
    length: int


def segments(stream: BinaryIO) -> Iterator[Segment]:
    """Yield the TCP segments of a capture in file order; skip other packets, and acknowledgements without data.

    Raises:
        DecodeError: not_a_capture; torn (the file ends within a packet; those before it were yielded).
    """
    batch, size = list[Segment](), 0
    try:
        for ts_us, link, packet, length in _packets(stream):
            begin = 14 if link == _ETHERNET and packet[12:14] == b"\x08\x00" else _ip_begins(link, packet)
            if begin is not None and (segment := _segment(ts_us, packet, begin, length)) is not None:
                batch.append(segment)
                size += len(packet)
                if size > _BATCH_BYTES:
                    yield from batch
                    batch, size = [], 0
    except (DecodeError, EOFError):
        yield from batch
        raise
    except (struct.error, IndexError) as error:  # a block that is too short for its kind, or of an unknown interface
        yield from batch
        raise DecodeError("torn", f"an invalid block: the file is damaged ({error})") from None
    yield from batch


def _packets(stream: BinaryIO) -> Iterator[tuple[int, int, bytes, int]]:
    """(epoch microseconds, link type, bytes, length as sent)."""
    magic = stream.read(4)
    if magic == _SECTION:
        yield from _blocks(stream)
        return
    if magic not in _PCAP:
        raise DecodeError("not_a_capture", f"it begins with {magic.hex() or 'nothing'}; tcpdump -w writes others")
    order, ticks = _PCAP[magic]
    link = struct.unpack(order + "16xI", _exactly(stream, 20))[0] & 0x0FFFFFFF
    record = struct.Struct(order + "IIII")
    while head := stream.read(16):
        seconds, part, caught, length = record.unpack(_whole(head, 16))
        packet = _whole(stream.read(_sane(caught)), caught)
        yield seconds * 10**6 + part * 10**6 // ticks, link, packet, length


def _blocks(stream: BinaryIO) -> Iterator[tuple[int, int, bytes, int]]:
    order, interfaces = "<", list[tuple[int, int]]()  # of each its link type and its ticks a second
    head: bytes = _SECTION + _exactly(stream, 4)
    while head:
        if head[:4] == _SECTION:
            magic = _exactly(stream, 4)
            order, interfaces = ("<" if magic == b"\x4d\x3c\x2b\x1a" else ">"), []
            _exactly(stream, _sane(struct.unpack(order + "I", head[4:])[0]) - 12)
        else:
            kind, size = struct.unpack(order + "II", _whole(head, 8))
            body = _exactly(stream, _sane(size) - 8)[:-4]
            if kind == _INTERFACE:
                if len(interfaces) == _MOST_INTERFACES:
                    raise DecodeError("torn", f"more than {_MOST_INTERFACES} interfaces: the file is damaged")
                interfaces.append((struct.unpack_from(order + "H", body)[0], _ticks(order, body[8:])))
            elif kind == _ENHANCED:
                number, high, low, caught, length = struct.unpack_from(order + "IIIII", body)
                link, ticks = interfaces[number]
                yield (high << 32 | low) * 10**6 // ticks, link, body[20 : 20 + caught], length
        head = stream.read(8)


def _ticks(order: str, options: bytes) -> int:
    """Ticks a second, of an interface's options: if_tsresol, or microseconds."""
    at = 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from(order + "HH", options, at)
        if code == 9 and size == 1:
            power = options[at + 4]
            return int(2 ** (power & 0x7F)) if power & 0x80 else int(10**power)
        at += 4 + (size + 3) // 4 * 4
    return 10**6


def _exactly(stream: BinaryIO, size: int) -> bytes:
    return _whole(stream.read(max(size, 0)), size)


def _whole(read: bytes, size: int) -> bytes:
    if len(read) != size:
        raise DecodeError("torn", "the file ends within a packet: copy it again when its writer has closed it")
    return read


def _sane(size: int) -> int:
    if size > _LONGEST_BLOCK:
        raise DecodeError("torn", f"a packet of {size} bytes: the file is damaged")
    return size


def _ip_begins(link: int, packet: bytes) -> int | None:
    if link in _RAW:
        return 0
    if link == _NULL:
        return 4
    if link == _COOKED_2:
        return 20 if int.from_bytes(packet[:2], "big") in (_IPV4, _IPV6) else None
    if link not in (_ETHERNET, _COOKED):
        raise DecodeError("not_a_capture", f"link type {link} is not known; capture on an Ethernet or any interface")
    at = 12 if link == _ETHERNET else 14
    last = at + 4 * _MOST_HEADERS
    while (kind := int.from_bytes(packet[at : at + 2], "big")) in _VLAN and at < last:
        at += 4
    return at + 2 if kind in (_IPV4, _IPV6) else None


def _segment(ts_us: int, packet: bytes, begin: int, length: int) -> Segment | None:
    """Return the segment in the IP packet from ``begin`` on, if there is one with data, SYN, FIN or RST.

    ``length`` is the packet's as sent: the length in its IP header is 0 with segmentation offload.
    """
    if len(packet) >= begin + 40 and packet[begin] == _PLAIN_IPV4:
        stated, fragment, kind, ends, seq, offset, flags = _PLAIN.unpack_from(packet, begin)
        data_begin = begin + 20
        if kind != _TCP or fragment & 0x1FFF:  # the rest of a fragmented packet has no ports
            return None
    else:
        ip = packet[begin:]
        if (header := _tcp_begins(ip)) is None or len(ip) < header[0] + 20:
            return None
        data_begin, stated, hosts = begin + header[0], header[1], header[2]
        ports, seq, offset, flags = _TCP_HEAD.unpack_from(packet, data_begin)
        ends = hosts + ports
    data_begin += (offset >> 4) * 4
    end = begin + (stated or max(min(length - begin, _LONGEST_BLOCK), 0))
    if end <= data_begin and not flags & (_FIN | _SYN | _RST):
        return None
    source, target = _endpoints(ends)
    return Segment(
        ts_us,
        source,
        target,
        seq,
        flags & _SYN != 0,
        flags & (_FIN | _RST) != 0,
        packet[data_begin:end],
        max(end - data_begin, 0),
    )


def _tcp_begins(ip: bytes) -> tuple[int, int, bytes] | None:
    """Return where TCP's header begins in an IP packet, the packet's length in its own header, and both hosts."""
    if len(ip) < 20:
        return None
    if ip[0] >> 4 == 4:
        begin, kind, stated, hosts = (ip[0] & 15) * 4, ip[9], int.from_bytes(ip[2:4], "big"), ip[12:20]
        if int.from_bytes(ip[6:8], "big") & 0x1FFF:
            return None
    elif ip[0] >> 4 == 6 and len(ip) >= 40:
        begin, kind, stated, hosts = 40, ip[6], int.from_bytes(ip[4:6], "big"), ip[8:40]
        stated += 40 if stated else 0
        for _ in range(_MOST_HEADERS):
            if kind not in _EXTENSIONS or len(ip) < begin + 2:
                break
            kind, begin = ip[begin], begin + (ip[begin + 1] + 1) * 8
    else:
        return None
    return (begin, stated, hosts) if kind == _TCP else None


@lru_cache(maxsize=65_536)  # a capture has few, in millions of packets
def _endpoints(ends: bytes) -> tuple[str, str]:
    """Return source and target, of both hosts and both ports."""
    half = len(ends) // 2 - 2
    ports = struct.unpack_from(">HH", ends, 2 * half)
    # In the form of RocketMQ's RemotingHelper; IPv6 addresses have no brackets either.
    return f"{ip_address(ends[:half])}:{ports[0]}", f"{ip_address(ends[half : 2 * half])}:{ports[1]}"
