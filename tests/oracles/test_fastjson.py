"""A broker's reading of an invalid consumerOffset.json."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.consumer_offset_manager import OffsetTable
from mqreplay.core.java import to_long
from mqreplay.core.java_numbers import parse_int
from mqreplay.words.errors import NumberFormat, RocketMQError
from oracles.fastjson.consumer_offset import decode_consumer_offset
from oracles.fastjson.numbers import decimal_to_long, java_digits
from oracles.fastjson.scan import FastjsonError
from oracles.offset_file import encode
from reliability.fuzz_run import Target, fuzz

V4, V5 = "4.9.7", "5.3.3"
TABLES = st.dictionaries(
    st.text(st.characters(codec=None), max_size=6).filter(lambda key: key not in ("@type", "$ref")),
    st.dictionaries(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1), max_size=4),
    max_size=4,
)


@pytest.mark.parametrize("version", [V4, V5])
@given(table=TABLES, pretty=st.booleans())
def test_what_a_broker_writes_it_reads(version: str, table: OffsetTable, pretty: bool) -> None:
    # A bare U+001A in a name is the end of the text to fastjson; it writes it escaped.
    decoded = decode_consumer_offset(encode(table, pretty), version)
    assert decoded is not None
    assert decoded.offset_table == table


@pytest.mark.parametrize("version", [V4, V5])
@given(text=st.text("{}[]:,\"'\\0.1exTg@ \n\t/*x_nulrtfsaS+-\x1a\ufeff😀", max_size=40))
def test_no_text_breaks_it(version: str, text: str) -> None:
    try:
        decode_consumer_offset('{"offsetTable":{"T":{0:' + text, version)
        decode_consumer_offset(text, version)
    except RocketMQError:
        pass


@pytest.mark.parametrize("version", [V4, V5])
@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("{'offset_table':{T:{'0':\"1,000\", 1 :2.9 2:3L}}}", {"T": {0: 1000, 1: 2, 2: 3}}),
        ('\ufeff/* a */{,offsetTable:{"T":{0:1,},},} // b', {"T": {0: 1}}),
        ('{"offsetTable":{"T":{0:1}},"offsetTable":{"U":{0:2}}}', {"U": {0: 2}}),
        ('{"other":[1 2,{"a":x\'0F\'}],"dataVersion":{"counter":1}}', {}),
        ('{"offsetTable":null}', None),
    ],
)
def test_let_pass(version: str, text: str, table: OffsetTable | None) -> None:
    decoded = decode_consumer_offset(text, version)
    assert decoded is not None
    assert decoded.offset_table == table


@pytest.mark.parametrize("version", [V4, V5])
@pytest.mark.parametrize("text", ["", "null", "[]"])
def test_nothing_to_read(version: str, text: str) -> None:
    assert decode_consumer_offset(text, version) is None


@pytest.mark.parametrize(
    ("text", "in_4", "in_5"),
    [
        ("}", True, False),
        ('0"offsetTable":{}}', True, False),
        ('{"offsetTable":""}', False, True),
        ('{"offsetTable":{"T":{0:true}}}', False, True),
        ('{"offsetTable":{"@type":"java.util.HashMap"}}', False, True),
        ('{"offsetTable":{}} ', True, True),
        ('{"offsetTable":{}}x', False, False),
    ],
)
def test_where_the_versions_part(text: str, in_4: bool, in_5: bool) -> None:
    reads = []
    for version in (V4, V5):
        try:
            decode_consumer_offset(text, version)
            reads.append(True)
        except RocketMQError:
            reads.append(False)
    assert reads == [in_4, in_5]


def test_positions_count_utf16_units() -> None:
    with pytest.raises(FastjsonError, match="pos 5, line 1, column 6"):
        decode_consumer_offset('{"😀"}', V4)


def test_deep_nesting_is_an_error_like_any_other() -> None:
    with pytest.raises(FastjsonError):
        decode_consumer_offset('{"x":' + "[" * 100_000, V5)


def test_numbers() -> None:
    assert java_digits("-9223372036854775808", -(2**63), 2**63 - 1) == -(2**63)
    for written in ("-", "2147483648"):
        with pytest.raises(NumberFormat):
            java_digits(written, -(2**31), 2**31 - 1)
    for text in ("", "+", "1_0", " 1", "2147483648"):
        with pytest.raises(NumberFormat):
            parse_int(text)
    with pytest.raises(RocketMQError):
        decimal_to_long("1e200")
    assert decimal_to_long("0e200") == 0


LONG_NUMBER = "3" * 5000  # int() takes 4,300 digits


@pytest.mark.parametrize("version", [V4, V5])
@pytest.mark.parametrize(
    ("offset", "read"),
    [
        (LONG_NUMBER, None),
        (f"-{LONG_NUMBER}", None),
        (f'"{LONG_NUMBER}"', None),
        (f"{LONG_NUMBER}.5e-5000", None),
        (f"1.{LONG_NUMBER}", None),
        (f"1e{'0' * 5000}5", 100_000),
        (f"12{'0' * 5000}e-5000", 12),
        (f"12{'0' * 5000}e-4900", None),
        (f"12{'0' * 5000}e-5001", None),
        (f"{2**64 + 6}{'7' * 99}.5e-99", 6),
    ],
)
def test_a_number_of_thousands_of_digits(version: str, offset: str, read: int | None) -> None:
    text = f'{{"offsetTable":{{"T":{{0:{offset}}}}}}}'
    if read is None:
        with pytest.raises(FastjsonError):
            decode_consumer_offset(text, version)
    else:
        assert decode_consumer_offset(text, version) == ({"T": {0: read}},)


@pytest.mark.parametrize("version", [V4, V5])
def test_a_decimal_wraps_whatever_its_length(version: str) -> None:
    whole = 7 * 10**4999 + 2**63 + 5
    decoded = decode_consumer_offset(f'{{"offsetTable":{{"T":{{0:{digits_of(whole)}.9}}}}}}', version)
    assert decoded == ({"T": {0: to_long(whole)}},)


def digits_of(number: int) -> str:
    """str() gives 4,300 digits at most."""
    high, low = divmod(number, 10**4000)
    return f"{high}{low:04000d}"


@pytest.mark.alone
@pytest.mark.parametrize("version", [V4, V5])
def test_objects_as_keys_of_objects_as_keys_take_no_more_than_their_text(version: str) -> None:
    text = '{"x":' + "{" * 60 + '"\\\\"' + ":1}" * 60 + "}"

    def run(_: bytes) -> None:
        assert decode_consumer_offset(text, version) == ({},)

    assert fuzz([Target("keys", (b"",), run, ())], inputs=1, seed=0).failures == []


@pytest.mark.alone
def test_a_number_of_a_million_digits_takes_no_second() -> None:
    text = f'{{"offsetTable":{{"T":{{0:{"7" * 2_000_000}.5}}}}}}'
    run = partial(decode_consumer_offset, text)
    assert fuzz([Target("digits", (V4.encode(),), lambda version: run(version.decode()), ())], 1, seed=0).failures == []
