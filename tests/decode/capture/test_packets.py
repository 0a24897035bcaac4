"""Packets of captures of every kind that tcpdump and dumpcap write."""

from __future__ import annotations

import struct
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decode.capture.wire import Talk, ethernet, framed, pcap, pcapng, tcp
from mqreplay.decode.capture.packets import segments
from mqreplay.words.errors import DecodeError


def sent(talk: Talk | None = None):
    talk = talk or Talk()
    return [talk.ask(b"", begins=True), talk.ask(b"hello"), talk.answer(b"longer than is kept", kept=4, ends=True)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    "make", [pcap, lambda p, **k: pcap(p, nanos=True, **k), pcapng, lambda p, **k: pcapng(p, power=6, **k)]
)
def test_every_file_format_gives_the_same(order, make):
    assert list(segments(BytesIO(make(framed(sent()), order=order)))) == sent()


LINKS = {
    0: lambda ip: b"\x02\x00\x00\x00" + ip,
    1: lambda ip: ethernet(ip, vlan=True),
    101: lambda ip: ip,
    113: lambda ip: bytes(14) + b"\x08\x00" + ip,
    276: lambda ip: b"\x08\x00" + bytes(18) + ip,
}


@pytest.mark.parametrize("link", LINKS)
def test_link_types(link):
    one = sent()[1]
    assert list(segments(BytesIO(pcap([(one.ts_us, LINKS[link](tcp(one)), 0)], link=link)))) == [one]


def test_ipv6_its_extensions_and_padding():
    talk = Talk("fd00::1:40000", "fd00::9:10911")
    plain, behind = talk.ask(b"ab"), talk.ask(b"cd")
    packet = bytearray(tcp(behind))
    packet[6] = 60
    packet[4:6] = struct.pack(">H", 20 + 2 + 8)
    packet[40:40] = bytes([6, 0]) + bytes(6)
    frames = [(plain.ts_us, ethernet(tcp(plain)) + bytes(6), 0), (behind.ts_us, ethernet(bytes(packet)), 0)]
    assert list(segments(BytesIO(pcap(frames)))) == [plain, behind]


def test_what_is_no_tcp_is_passed_over():
    one = sent()[1]
    udp, fragment = bytearray(tcp(one)), bytearray(tcp(one))
    udp[9], fragment[7] = 17, 9
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    frames = [(1, ethernet(bytes(p)), 0) for p in (udp, fragment, b"\x45")] + [
        (1, arp, 0),
        (one.ts_us, ethernet(tcp(one)), 0),
    ]
    assert list(segments(BytesIO(pcap(frames)))) == [one]


def test_a_length_that_a_card_left_out_is_the_packets():
    one = sent()[1]
    packet = bytearray(tcp(one))
    packet[2:4] = b"\0\0"
    assert list(segments(BytesIO(pcap([(one.ts_us, ethernet(bytes(packet)), 0)])))) == [one]


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_torn_file_gives_what_was_before(make):
    whole, read = make(framed(sent())), []
    with pytest.raises(DecodeError, match="ends within a packet"):
        read.extend(one for one in segments(BytesIO(whole[:-9])) if not read.append(one) and False)
    assert read == sent()[:2]


def test_what_is_no_capture():
    for data in (b"", b"{}", b"PK\x03\x04 and more"):
        with pytest.raises(DecodeError, match="not_a_capture"):
            list(segments(BytesIO(data)))
    with pytest.raises(DecodeError, match="link type 127"):
        list(segments(BytesIO(pcap(framed(sent()), link=127))))
    with pytest.raises(DecodeError, match="damaged"):
        list(segments(BytesIO(pcap([]) + struct.pack("<IIII", 1, 1, 2**31, 2**31))))


@given(st.sampled_from([pcap, pcapng]), st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=6)), max_size=4))
def test_a_damaged_file_gives_segments_or_says_so(make, damage):
    data = bytearray(make(framed(sent())))
    for at, found in damage:
        data[at : at + len(found)] = found
    with suppress(DecodeError):
        for one in segments(BytesIO(bytes(data))):
            assert len(one.data) <= one.length


@pytest.mark.parametrize(("lacking", "length"), [(2**32 - 200, 16 * 1024 * 1024 - 40), (-50, 0), (-5, 0)])
def test_a_length_that_no_packet_has(lacking, length):
    one = sent()[1]
    packet = bytearray(tcp(one))
    packet[2:4] = b"\0\0"
    read = segments(BytesIO(pcap([(one.ts_us, ethernet(bytes(packet)), lacking)])))
    assert [(found.data, found.length) for found in read] == [(b"hello", length)] * bool(length)


def test_acknowledgements_without_data_are_passed_over():
    talk = Talk()
    acknowledged = [talk.ask(b"ab"), talk.answer(b""), talk.ask(b"cd"), talk.answer(b"", ends=True)]
    assert list(segments(BytesIO(pcap(framed(acknowledged))))) == [acknowledged[n] for n in (0, 2, 3)]
