"""The text of consumerOffset.json, and a broker's start from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.consumer_offset_manager import OffsetTable
from mqreplay.words.errors import IllegalArgument
from oracles.offset_file import (
    OFFSET_TABLE_CAPACITY,
    QUEUE_TABLE_CAPACITY,
    Loaded,
    encode,
    json_string,
    load,
    persist,
)


def parse(text: str) -> OffsetTable:
    """Quoted keys only: enough for the tests of load."""
    try:
        table = json.loads(text)["offsetTable"]
    except ValueError as error:
        raise IllegalArgument(text) from error
    return {key: {int(q): offset for q, offset in queues.items()} for key, queues in table.items()}


QUEUES = st.dictionaries(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1))
TABLES = st.dictionaries(st.text("T@g%中\n", max_size=5), QUEUES, max_size=5)
GOOD, BROKEN = '{"offsetTable":{"T@g":{"0":1}}}', '{"offsetTable":{'


@pytest.mark.parametrize(
    ("file", "bak", "ok", "found"),
    [
        (GOOD, BROKEN, True, True),
        (BROKEN, GOOD, True, True),
        ("", GOOD, True, True),
        (None, GOOD, True, True),
        (None, None, True, False),
        (BROKEN, "", True, False),
        (BROKEN, None, True, False),
        (BROKEN, BROKEN, False, False),
    ],
)
def test_load(file: str | None, bak: str | None, ok: bool, found: bool) -> None:
    assert load(file, bak, parse) == (ok, {"T@g": {0: 1}} if found else {})


@given(
    st.dictionaries(
        st.text("T@g%中\n", max_size=5),
        st.dictionaries(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1)),
        max_size=5,
    )
)
def test_both_forms_say_the_same(table: OffsetTable) -> None:
    pretty = encode(table, pretty_format=True)
    assert pretty.replace("\n", "").replace("\t", "") == encode(table)


def test_what_was_there_becomes_the_backup() -> None:
    table = {"T@g": {0: 1}}
    assert persist(table, "", "older") == (encode(table, True), "")


def test_a_text_that_holds_no_object_is_an_empty_table() -> None:
    for loaded in (load("null", "x", lambda text: None), load(None, "null", lambda text: None)):
        assert loaded == Loaded(True, {})


def test_capacities_of_the_maps() -> None:
    assert (OFFSET_TABLE_CAPACITY, QUEUE_TABLE_CAPACITY) == (512, 32)


def test_fastjson_escapes_more_than_json_does() -> None:
    escaped = [code for code in range(0x3000) if json_string(chr(code)) != f'"{chr(code)}"']
    assert escaped == sorted([*range(32), 34, 92, *range(127, 160), 0x2028, 0x2029])
