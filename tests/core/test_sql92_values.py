"""SQL92 filters: how values are compared, read and written, and the words of refusals, character by character."""

from __future__ import annotations

import math

import pytest

from mqreplay.core.java_numbers import double_text, parse_double
from mqreplay.core.sql92 import MAX_DEPTH, compile_sql92, evaluate
from mqreplay.core.sql92_expression import Comparison, Constant, In, Property, create_between, create_equal
from mqreplay.core.sql92_parse import add_escapes, parse_error, place, token_error
from mqreplay.core.sql92_values import Long, Value, compare, negate, text_of
from mqreplay.words.errors import ClassCast, MQFilterError, RocketMQError

NAN = math.nan


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        (1, 2, -1),
        (Long(5), 5, 0),
        (5, Long(4), 1),
        (1, 1.5, -1),
        (1.5, 1, 1),
        (2**53 + 1, Long(2**53), 1),  # as longs: as doubles they would be equal
        (2**53 + 1, float(2**53), 0),  # beside a Double both are doubles
        (True, 1, -1),
        (1, True, -1),
        (False, True, -1),
        (True, False, 1),
        ("a", "b", -1),
        ("\uff21", "\U0001f600", 1),  # by UTF-16 unit
        ("10", 9, 1),
        (9, "10", -1),
        ("9223372036854775807", Long(1), 1),
        ("TRUE", True, 0),
        ("yes", False, 0),
        (NAN, NAN, 0),
        (NAN, math.inf, 1),
        (-math.inf, NAN, -1),
        (1.0, NAN, -1),
        (-0.0, 0.0, -1),
        (0.0, -0.0, 1),
        (1.5, 1.5, 0),
        (1.0, 2.0, -1),
        ("NaN", NAN, 0),
    ],
)
def test_compare(left: str | bool | int | float, right: str | bool | int | float, answer: int) -> None:
    assert compare(left, right) == answer


def test_a_boolean_before_a_string_cannot_be_cast() -> None:
    with pytest.raises(ClassCast) as raised:
        compare(True, "true")
    assert raised.value.message == (
        "class java.lang.Boolean cannot be cast to class java.lang.String "
        "(java.lang.Boolean and java.lang.String are in module java.base of loader 'bootstrap')"
    )
    with pytest.raises(ClassCast):
        evaluate(compile_sql92("(a IS NULL) = b", "4.9.7"), {"b": "x"})


@pytest.mark.parametrize(("value", "text"), [(False, "false"), (True, "true"), (None, "null"), ("x", "x"), (7, "7")])
def test_text_of(value: Value, text: str) -> None:
    assert text_of(value) == text


def test_a_boolean_has_no_negative() -> None:
    assert negate(True) is None
    assert negate(None) is None


@pytest.mark.parametrize(
    ("d", "text"),
    [
        (NAN, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (10_000_000.5, "1.00000005E7"),
        (-12_345_678.0, "-1.2345678E7"),
        (5e-324, "4.9E-324"),
        (-5e-324, "-4.9E-324"),
        (1e-323, "1.0E-323"),
    ],
)
def test_double_text(d: float, text: str) -> None:
    assert double_text(d) == text


def test_hexadecimal_numbers_too_large_are_infinite() -> None:
    assert parse_double("0x1p5000") == math.inf
    assert parse_double("-0x1p5000") == -math.inf
    assert parse_double("+0x1p5000d") == math.inf


def test_escapes_in_messages() -> None:
    assert add_escapes("\0\b\t\n\f\r\"'\\") == r"\b\t\n\f\r\"\'" + "\\\\"
    assert add_escapes(" ~") == " ~"
    assert add_escapes("\x1f\x7f\xe9") == r"\u001f\u007f\u00e9"


@pytest.mark.parametrize(
    ("text", "at", "where"),
    [
        ("ab", 1, (1, 2)),
        ("a\nb", 2, (2, 1)),
        ("a\rb", 2, (2, 1)),
        ("a\r\nb", 3, (2, 1)),
        ("\tb", 0, (1, 8)),
        ("\tb", 1, (1, 9)),
        ("abcdefgh\ti", 8, (1, 16)),
        ("abcdefghij\tk", 11, (1, 17)),
        ("\n\nx", 2, (3, 1)),
    ],
)
def test_lines_and_columns(text: str, at: int, where: tuple[int, int]) -> None:
    assert place(text, at) == where


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("a @ b", 2, 'line 1, column 3.  Encountered: "@" (64), after : ""'),
        ("a = 'x", 4, 'line 1, column 7.  Encountered: <EOF> after : "\\\'x"'),
        ("a @", 2, 'line 1, column 4.  Encountered: <EOF> after : ""'),
        ("a /* b", 2, 'line 1, column 7.  Encountered: <EOF> after : "/* b"'),
        ("'a\n", 0, 'line 2, column 0.  Encountered: <EOF> after : "\\\'a\\n"'),
        ("a\n'x\n", 2, 'line 3, column 0.  Encountered: <EOF> after : "\\\'x\\n"'),
        ("a .b c", 2, 'line 1, column 4.  Encountered: "b" (98), after : "."'),
        ("a /b c", 2, 'line 1, column 4.  Encountered: "b" (98), after : "/"'),
        ("a ~", 2, 'line 1, column 4.  Encountered: <EOF> after : ""'),
        ("a ~b c", 2, 'line 1, column 3.  Encountered: "~" (126), after : ""'),
        ("a .", 2, 'line 1, column 4.  Encountered: <EOF> after : ""'),
    ],
)
def test_what_is_no_token(text: str, at: int, words: str) -> None:
    assert token_error(text, at).message == f"Lexical error at {words}"


def test_an_empty_text_ends_before_its_first_line() -> None:
    for version in ("4.9.7", "5.3.3"):
        with pytest.raises(MQFilterError, match=r'ParseException: Encountered "<EOF>" at line 0, column 0\.\n'):
            compile_sql92("", version)
    assert "line 1, column 2" in str(parse_error("ab", 2, None, "", ["AND"]))
    # A token without text is reported like any other.
    assert "line 1, column 1" in str(parse_error("a", 0, "ID", "", ["AND"]))


def test_depth_has_an_end_and_that_is_exact() -> None:
    assert MAX_DEPTH == 150
    for shape in ("{}a = 1{}", "b = 1 AND {}a = 1{}", "a IN ('x') OR b > {}1{}"):
        deepest = max(n for n in range(140, 152) if _compiles(shape.format("(" * n, ")" * n)))
        assert 140 < deepest < 151
        assert not _compiles(shape.format("(" * (deepest + 1), ")" * (deepest + 1)))
    assert {n for n in range(140, 150) if _compiles("(" * n + "a = 1" + ")" * n)} == set(range(140, 148))
    assert {n for n in range(140, 150) if _compiles("b = 1 AND " + "(" * n + "a = 1" + ")" * n)} == set(range(140, 147))


def _compiles(text: str) -> bool:
    try:
        compile_sql92(text, "4.9.7")
    except MQFilterError:
        return False
    return True


def test_texts_in_which_a_quote_stands() -> None:
    assert str(Constant("it's")) == "'it''s'"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a <= 1 AND b >= 2 OR c < 3", "(((a <= 1) && (b >= 2)) || (c < 3))"),
        ("a NOT CONTAINS 'x'", "(NOT CONTAINS a)"),
        ("a CONTAINS 'x'", "(CONTAINS a)"),
        ("a STARTSWITH 'x'", "(STARTSWITH a)"),
        ("a NOT STARTSWITH 'x'", "(NOT STARTSWITH a)"),
        ("a ENDSWITH 'x'", "(ENDSWITH a)"),
        ("a NOT ENDSWITH 'x'", "(NOT ENDSWITH a)"),
        ("a NOT IN ('x', 'y')", "a NOT IN ( x, y )"),
        ("a IN ('d', 'c', 'b', 'a')", "a IN ( d, c, b, a )"),
        ("a IN ('e', 'd', 'c', 'b', 'a')", "a IN ( a, b, c, d, e )"),
        ("a > 2147483647 OR a > 2147483648", "((a > 2147483647) || (a > 2147483648))"),
    ],
)
def test_a_filter_as_it_is_written(text: str, written: str) -> None:
    assert str(compile_sql92(text, "5.3.3")) == written


@pytest.mark.parametrize(("number", "kind"), [("2147483647", int), ("2147483648", Long), ("7L", int), ("7l", int)])
def test_what_fits_an_integer_is_one(number: str, kind: type) -> None:
    compiled = compile_sql92(f"a = {number}", "4.9.7")
    assert isinstance(compiled, Comparison)
    assert isinstance(compiled.right, Constant)
    assert type(compiled.right.value) is kind


def test_the_set_of_a_list_grows_with_it() -> None:
    # new HashSet(collection): room for so many at 3/4, 16 at least; the bucket is the hash modulo its size.
    def order(*elements: str) -> list[str]:
        return str(In(Property("a"), elements, False)).removeprefix("a IN ( ").removesuffix(" )").split(", ")

    def by_bucket(elements: list[str], buckets: int) -> list[str]:
        return sorted(elements, key=lambda one: ord(one) % buckets)

    for count, buckets in ((5, 16), (11, 16), (12, 32), (23, 32), (24, 64)):
        elements = [chr(33 + n * 7 % 90) for n in range(count)]
        assert order(*elements) == by_bucket(elements, buckets)


@pytest.mark.parametrize("text", ["1.7976931348623157E308", "4.9E-324"])
def test_the_largest_and_the_least_double_are_taken(text: str) -> None:
    assert _compiles(f"a > {text}")


def test_refusals_before_any_message() -> None:
    create_between(Property("a"), Constant(5), Constant(5))
    create_between(Property("a"), Property("b"), Constant(1))
    create_between(Property("a"), Constant(1), Property("b"))
    for low, high in ((None, 1), (1, None)):
        with pytest.raises(RocketMQError, match="values can not be null"):
            create_between(Property("a"), Constant(low), Constant(high))
    with pytest.raises(RocketMQError, match="left value"):
        create_between(Property("a"), Constant(5), Constant(4))
    create_equal(Constant(True), Property("a"))
    create_equal(Constant(True), Constant(False))
    with pytest.raises(RocketMQError, match="'TRUE' cannot be compared with '1'"):
        create_equal(Constant(True), Constant(1))


def test_a_number_before_a_string_is_compared_as_a_number() -> None:
    assert evaluate(compile_sql92("5 > a", "4.9.7"), {"a": "3"}) is True


def test_half_a_character_in_a_filter() -> None:
    assert evaluate(compile_sql92("a = '\ud83d'", "4.9.7"), {"a": "\ud83d"}) is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # What looks at the next token before it acts meets first what is no token.
        ("a OR 2 @", "Lexical error at line 1, column 9"),
        ("a AND 2 @", "Lexical error at line 1, column 10"),
        ("TRUE <> 1 @", "Lexical error at line 1, column 12"),
        # The NOT that is wrong is the last one, wherever it stands.
        ("b = 1 AND a NOT c", 'Encountered " "NOT" "NOT "" at line 1, column 13.'),
        # A plus that was read in full is not what is wrong.
        ("+a = 1 AND", 'Encountered "<EOF>" at line 1, column 10.'),
    ],
)
def test_what_is_reported_first(text: str, words: str) -> None:
    with pytest.raises(MQFilterError) as raised:
        compile_sql92(text, "5.3.3")
    assert words in str(raised.value)
