"""Damaged, spliced and hostile variants of inputs that are whole. The same random numbers give the same variant."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
STRING = re.compile(rb'"[^"\\]*"')
BOUNDS = [sign * (2**bits + more) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for more in (-1, 0, 1) for sign in (1, -1)]
NUMBERS = [
    *(str(n).encode() for n in (*BOUNDS, 0, 4102444800001, 253402300800000, 2**63 // 1000 + 1, 10**30)),
    *(
        b"9" * 5000,
        b"0" * 5000,
        b"1" + b"0" * 400,
        b"0." + b"3" * 5000,
        b"1e400",
        b"-1E-400",
        b"1e99999",
        b"-0",
        b"0.5",
    ),
    *(b"NaN", b"-Infinity", b"+1", b"007", b"0x1F", b"1L", b"5F", b"1_0", "٣".encode(), b"-", b"x'1F'"),
]
STRINGS = [
    *(b'""', b'"a"', b'"@"', b'"%RETRY%"', b'"\\ud800"', b'"\\u0000"', b'"\\x41"', b"'a'", b'"' + b"\\\\" * 50 + b'"'),
    *(
        b'"' + b"k" * 3000 + b'"',
        '"é中😀\u202e"'.encode(),
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"$ref"',
        b'"@type"',
        b'".."',
    ),
]
TOKENS = [
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"'",
        b"/*",
        b"*/",
        b"//",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b"\0",
        b"\x1a",
    ),
    *(
        b"null",
        b"true",
        b"false",
        b"new ",
        b"Set[",
        b"TreeSet[",
        b"undefined",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"@",
        b"%",
    ),
    *(b'{"a":', b'{{"a":1}:', b'{"$ref":".."}', b'{"@type":"java.util.HashMap"}', b"{0:1}", b"[[", b"]]", b"}}"),
]
REPEATS = (2, 3, 10, 100, 1000)


def mutated(seeds: Sequence[bytes], numbers: Random, most_bytes: int) -> bytes:
    """A variant of one of the seeds, of at most so many bytes: one to four changes, half the time of values alone."""
    data = numbers.choice(seeds)
    changes = numbers.choice((CHANGES, OF_VALUES))
    for _ in range(numbers.choice((1, 1, 1, 2, 2, 3, 4))):
        change = numbers.choice(changes)
        data = change(data, numbers, seeds)[:most_bytes]
    return data


def _place(data: bytes, numbers: Random) -> int:
    return numbers.randrange(len(data) + 1)


def _range(data: bytes, numbers: Random) -> tuple[int, int]:
    begin = _place(data, numbers)
    return begin, min(len(data), begin + numbers.choice((1, 2, 4, 8, 20, 100, len(data))))


def _flip_bit(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = numbers.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << numbers.randrange(8)]) + data[at + 1 :]


def _overwrite(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    at = _place(data, numbers)
    size = numbers.choice((1, 2, 4, 8))
    value = numbers.choice((*BOUNDS, numbers.getrandbits(64))) % 2 ** (8 * size)
    return data[:at] + value.to_bytes(size, numbers.choice(("big", "little"))) + data[at + size :]


def _insert(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    at = _place(data, numbers)
    return data[:at] + numbers.randbytes(numbers.randrange(1, 9)) + data[at:]


def _delete(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    begin, end = _range(data, numbers)
    return data[:begin] + data[end:]


def _truncate(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    return data[: _place(data, numbers)]


def _splice(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    other = numbers.choice(seeds)
    return data[: _place(data, numbers)] + other[_place(other, numbers) :]


def _repeat(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    begin, end = _range(data, numbers)
    return data[:end] + data[begin:end] * numbers.choice(REPEATS) + data[end:]


def _swap(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    a, b, c = sorted(_place(data, numbers) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _token(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    at = _place(data, numbers)
    return data[:at] + numbers.choice(TOKENS) * numbers.choice((1, 1, 1, 1, 2, 50, 2000)) + data[at:]


def _replace(pattern: re.Pattern[bytes], values: Sequence[bytes]) -> Callable[[bytes, Random, Sequence[bytes]], bytes]:
    def change(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
        found = pattern.search(data, _place(data, numbers)) or pattern.search(data)
        if found is None:
            return data
        return data[: found.start()] + numbers.choice(values) + data[found.end() :]

    return change


def _exchange(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    """A value of the one seed in the place of another's."""
    pattern = numbers.choice((NUMBER, STRING))
    other = pattern.findall(numbers.choice(seeds))
    return _replace(pattern, other)(data, numbers, seeds) if other else _flip_bit(data, numbers, seeds)


def _nest(data: bytes, numbers: Random, seeds: Sequence[bytes]) -> bytes:
    found = NUMBER.search(data, _place(data, numbers)) or STRING.search(data)
    if found is None:
        return data
    deep = numbers.choice((1, 3, 40, 99, 101, 300, 1000, 3000))
    opening, closing = numbers.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"{0:", b"}"), (b"{{", b":1}:1}")))
    return data[: found.start()] + opening * deep + found[0] + closing * deep + data[found.end() :]


# What leaves the syntax whole, mostly.
PLAIN_NUMBERS = [str(n).encode() for n in (*BOUNDS, 0, 4102444800001, 2**63 // 1000 + 1)] + [
    b"0.5",
    b"1e400",
    b"null",
    b"9" * 4400,
]
PLAIN_STRINGS = [
    *STRINGS[:4],
    b'"\\ud83d\\ude00"',
    b'"' + b"k" * 3000 + b'"',
    '"é中😀\u202e"'.encode(),
    b"{}",
    b"[]",
    b"true",
]
OF_VALUES = (
    *(_replace(NUMBER, PLAIN_NUMBERS), _replace(STRING, PLAIN_STRINGS), _replace(NUMBER, PLAIN_STRINGS)),
    *(_exchange, _exchange, _nest),
)
CHANGES = (
    *(_flip_bit, _overwrite, _insert, _delete, _truncate, _splice, _repeat, _swap, _token, _nest),
    *(_replace(NUMBER, NUMBERS), _replace(STRING, STRINGS), _replace(NUMBER, STRINGS), _replace(STRING, TOKENS)),
)
