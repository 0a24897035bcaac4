"""fastjson's dialect: output of its writer is read, and text that only its parser accepts is refused."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decode.fastjson_text import MAX_DEPTH, Value, read_fastjson, read_fastjson_text
from mqreplay.words.errors import DecodeError

plain_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | plain_text
plain_json = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=12,
)


@given(plain_json, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_all_json_is_read(value: Value, indent: int | str | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    if "\x00" not in text:
        assert read_fastjson(text.encode()) == value


@given(st.dictionaries(st.integers(-(2**63), 2**63 - 1), scalars, max_size=5))
def test_bare_integer_keys_are_read(table: dict[int, Value]) -> None:
    text = "{" + ",".join(f"{key}:{json.dumps(value)}" for key, value in table.items()) + "}"
    assert read_fastjson_text(text) == table


@given(st.dictionaries(st.dictionaries(plain_text, scalars, max_size=3).map(lambda d: tuple(d.items())), scalars))
def test_objects_as_keys_are_read(table: dict[tuple[tuple[str, Value], ...], Value]) -> None:
    text = "{" + ",".join(f"{json.dumps(dict(key))}:{json.dumps(value)}" for key, value in table.items()) + "}"
    assert read_fastjson_text(text) == table


@given(plain_json.filter(lambda value: isinstance(value, dict | list | str)), st.data())
def test_every_prefix_is_refused(value: Value, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(DecodeError) as caught:
        read_fastjson_text(text[:cut])
    assert caught.value.code in ("torn", "empty")


@given(st.text(alphabet='{}[]:,"\\u0123456789abcdeftruenlsE+-. \t\n中\ud800', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(DecodeError):
        read_fastjson_text(text)


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("", "empty", 0),
        ("{'a':1}", "bad_syntax", 1),
        ("{a:1}", "bad_syntax", 1),
        ('{"a":1,}', "bad_syntax", 7),
        ("[1,]", "bad_syntax", 3),
        ("[1 2]", "bad_syntax", 3),
        ('{"a" 1}', "bad_syntax", 5),
        ('{"a":tru}', "bad_syntax", 5),
        ('{"a":Infinity}', "bad_syntax", 5),
        ('{"a":1}//', "trailing_data", 7),
        ("[01]", "bad_number", 1),
        ("[1.]", "bad_number", 1),
        ("[.5]", "bad_number", 1),
        ("[-]", "bad_number", 1),
        ("[1e400]", "bad_number", 1),
        ("[9223372036854775808]", "bad_number", 1),
        ("{1.5:2}", "bad_number", 1),
        ("{-0:2}", "bad_number", 1),
        ('{"a":1,"a":2}', "duplicate_key", 7),
        ("{1:1,1:2}", "duplicate_key", 5),
        ('{{"a":{}}:1}', "bad_key", 1),
        ("{{1:1}:1}", "bad_key", 1),
        ('"a\tb"', "bad_string", 2),
        ('"\\x"', "bad_string", 1),
        ('"\\udc00"', "bad_string", 0),
        ('"中\\ud800"', "bad_string", 0),
        ('["中", x]', "bad_syntax", 8),
        ("[" * (MAX_DEPTH + 1), "too_deep", MAX_DEPTH),
    ],
)
def test_what_fastjson_does_not_write_is_refused(text: str, code: str, offset: int) -> None:
    with pytest.raises(DecodeError) as caught:
        read_fastjson_text(text)
    assert (caught.value.code, caught.value.offset) == (code, offset)


def test_the_deepest_nesting_that_is_read() -> None:
    assert read_fastjson_text("[" * MAX_DEPTH + "]" * MAX_DEPTH)
