from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core import java
from mqreplay.core.java import is_blank
from mqreplay.core.java_maps import concurrent_hash_map_order, hash_map_order
from mqreplay.core.message_queue import compare_strings

TEXT = st.text(st.characters(codec=None), max_size=8)


@given(st.integers(-(2**70), 2**70))
def test_wrapping_keeps_the_low_bits(x: int) -> None:
    assert java.INT_MIN <= java.to_int(x) <= java.INT_MAX
    assert (java.to_int(x) - x) % 2**32 == 0
    assert java.LONG_MIN <= java.to_long(x) <= java.LONG_MAX
    assert (java.to_long(x) - x) % 2**64 == 0


@pytest.mark.parametrize(
    ("d", "expected"),
    [
        (0.0, 0),
        (-0.9, 0),
        (2.0**63, java.LONG_MAX),
        (-(2.0**63), java.LONG_MIN),
        (9223372036854774784.0, 9223372036854774784),
        (math.inf, java.LONG_MAX),
        (-math.inf, java.LONG_MIN),
        (math.nan, 0),
    ],
)
def test_double_to_long_saturates(d: float, expected: int) -> None:
    assert java.double_to_long(d) == expected


@given(TEXT, TEXT)
def test_sort_key_agrees_with_compare_to(a: str, b: str) -> None:
    compared = compare_strings(a, b)
    assert (java.utf16_key(a) < java.utf16_key(b)) == (compared < 0)
    assert (a == b) == (compared == 0)


@given(TEXT)
def test_string_hash_is_the_polynomial(s: str) -> None:
    h = 0
    for unit in java.utf16_units(s):
        h = java.to_int(31 * h + unit)
    assert java.string_hash(s) == h


def test_lone_surrogates_are_no_error() -> None:
    assert java.string_hash("\ud83d") == 0xD83D
    assert java.utf16_key("\ud83d") < java.utf16_key("\ue000")


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=60))
def test_hash_maps_keep_every_key_once(keys: list[int]) -> None:
    once = sorted(set(keys))
    assert sorted(hash_map_order(keys, lambda key: key)) == once
    assert sorted(concurrent_hash_map_order(keys, lambda key: key, 4)) == once


def test_small_ids_come_in_order_however_they_were_put() -> None:
    assert hash_map_order([3, 1, 0, 2], java.long_hash) == [0, 1, 2, 3]


def test_an_overfull_bucket_makes_a_small_table_grow_early() -> None:
    multiples = [16 * i for i in range(9)]  # one bucket of 16; the ninth makes it 32
    assert hash_map_order([*multiples, 1], java.long_hash) == [*multiples[::2], 1, *multiples[1::2]]


def test_a_growing_concurrent_map_reverses_what_is_before_the_last_run() -> None:
    # 16 buckets: 0, 16, 32, 48 share one. At the twelfth key the table doubles, and 0 and 32 leave 16 and 48.
    keys = [0, 32, 16, 48, *range(1, 9)]
    assert concurrent_hash_map_order(keys, lambda key: key, 8) == [32, 0, *range(1, 9), 16, 48]


@pytest.mark.parametrize("d", [float(java.LONG_MAX), float(java.LONG_MIN), -9.3e18, 9.3e18])
def test_doubles_at_the_ends_of_long(d: float) -> None:
    assert java.double_to_long(d) == (java.LONG_MAX if d > 0 else java.LONG_MIN)


def test_trim_stops_at_the_blank_and_at_what_is_above_it() -> None:
    assert java.trim("!a!") == "!a!"
    assert java.trim(" \x1f!\x1f ") == "!"
    assert java.trim("\x00 \n") == ""


def test_ends_of_int() -> None:
    assert (java.INT_MIN, java.INT_MAX) == (-2_147_483_648, 2_147_483_647)


def test_what_java_calls_whitespace() -> None:
    blank = [" ", "\t", "\n", "\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\x1f", "\u2028", "\u2029", "\u3000"]
    assert [char for char in blank if not is_blank(char)] == []
    assert [char for char in "\xa0\u2007\u202f~\x00x" if is_blank(char)] == []
    assert not is_blank(" a ")
    assert is_blank(None)
