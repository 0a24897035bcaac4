"""SQL92 filters: the language, its three-valued logic, and the words and order of RocketMQ's refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.sql92 import compile_sql92, evaluate, is_matched
from mqreplay.core.sql92_values import Value
from mqreplay.words.errors import MQFilterError, RocketMQError

NAMES = {True: "TRUE", False: "FALSE", None: "NULL"}
WORDS = ["a", "b", "1", "0", "1.5", "2147483648", "'x'", "'1'", "''", "NULL", "TRUE", "FALSE", "NOT", "AND", "OR"]
WORDS += ["=", "<>", ">", ">=", "<", "<=", "(", ")", ",", "+", "-", "IS", "IN", "BETWEEN", "CONTAINS", "STARTSWITH"]
WORDS += ["ENDSWITH", "@", "'", "/*", "--", ".", "\n", "\t"]

texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
versions = st.sampled_from(["4.9.7", "5.3.3"])
properties = st.dictionaries(st.sampled_from("ab"), st.sampled_from(["1", "x", "", "1.5", "true", "99999999999"]))


def value(expression: str, version: str = "5.3.3", **of: str) -> Value:
    return evaluate(compile_sql92(expression, version), of)


def refusal(expression: str, version: str = "5.3.3") -> str:
    with pytest.raises(MQFilterError) as caught:
        compile_sql92(expression, version)
    message = caught.value.message
    assert message is not None
    return message.removeprefix("java.lang.").removeprefix("org.apache.rocketmq.filter.parser.")


@pytest.mark.parametrize("left", [True, False, None])
@pytest.mark.parametrize("right", [True, False, None])
def test_three_valued_logic(left: bool | None, right: bool | None) -> None:
    both = False if False in (left, right) else None if None in (left, right) else True
    either = True if True in (left, right) else None if None in (left, right) else False
    assert value(f"{NAMES[left]} AND {NAMES[right]}") is both
    assert value(f"{NAMES[left]} OR {NAMES[right]}") is either
    assert value(f"NOT {NAMES[left]}") is (None if left is None else not left)


@pytest.mark.parametrize(
    ("expression", "of", "expected"),
    [
        ("a = 1 OR b = 2 AND c = 3", {"a": "1"}, True),
        ("(a = 1 OR b = 2) AND c = '3'", {"a": "1", "c": "3"}, True),
        ("a > 1", {}, None),
        ("a IS NULL", {}, True),
        ("a IS NOT NULL", {"a": ""}, True),
        ("a = b", {}, True),
        ("a = 'x'", {}, None),
        ("a <> 'x'", {}, None),
        ("'x' = a", {}, False),
        ("a", {"a": "true"}, False),
        ("a = TRUE", {"a": "TRUE"}, True),
        ("a > b", {"a": "10", "b": "9"}, True),
        ("a = b", {"a": "1.0", "b": "1"}, False),
        ("a = 1.0", {"a": "1"}, True),
        ("a > 1.5", {"a": "NaN"}, True),
        ("-a = 1", {"a": "-1"}, None),
        ("a = -2147483648", {"a": "-2147483648"}, True),
        ("a = 9223372036854775807L", {"a": "9223372036854775807"}, True),
        ("a NOT BETWEEN 1 AND 5", {"a": "6"}, True),
        ("a IN ('it''s')", {"a": "it's"}, True),
        ("a NOT IN ('x')", {}, None),
        ("a CONTAINS 'b'", {"a": "abc"}, True),
        ("a NOT CONTAINS 'b'", {}, False),
        ("a CONTAINS ''", {"a": "abc"}, False),
        ("a NOT STARTSWITH 'a'", {"a": "abc"}, False),
        ("a ENDSWITH 'c'", {"a": "abc"}, True),
        ("a = '😀'", {"a": "😀"}, True),
        ("a = 1 -- the end\n AND b = 2", {"a": "1", "b": "2"}, True),
        ("a /* ** */ = 1", {"a": "1"}, True),
    ],
)
def test_what_a_filter_says(expression: str, of: dict[str, str], expected: bool | None) -> None:
    assert value(expression, **of) is expected
    assert is_matched(compile_sql92(expression, "5.3.3"), of) is (expected is True)


def test_words_of_5_are_names_before() -> None:
    assert value("CONTAINS = 'x'", "4.9.7", CONTAINS="x") is True
    assert str(compile_sql92("a CONTAINS 'x'", "4.9.7")) == "a"
    assert str(compile_sql92("a CONTAINS 'x'", "5.3.3")) == "(CONTAINS a)"


@pytest.mark.parametrize("rest", [") b", " b = 2", ", b", " + 1", " 'x'", " --"])
def test_what_follows_the_first_complete_expression_is_not_looked_at(rest: str) -> None:
    assert str(compile_sql92("a = 1" + rest, "4.9.7")) == "(a == 1)"


@pytest.mark.parametrize(
    ("expression", "of", "words"),
    [
        ("a = 1", {"a": "1.0"}, 'java.lang.RuntimeException: java.lang.NumberFormatException: For input string: "1.0"'),
        ("a = 1.5", {"a": " "}, "java.lang.RuntimeException: java.lang.NumberFormatException: empty String"),
        (
            "a > b",
            {"a": "x", "b": "1"},
            "java.lang.RuntimeException: It's illegal to compare string by '>=', '>', '<', '<='. lv=x, rv=1",
        ),
    ],
)
def test_what_stops_an_evaluation_is_no_match(expression: str, of: dict[str, str], words: str) -> None:
    condition = compile_sql92(expression, "4.9.7")
    with pytest.raises(RocketMQError) as caught:
        evaluate(condition, of)
    assert str(caught.value) == words
    assert not is_matched(condition, of)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("a > 'x' @", "RuntimeException: Value ''x'' cannot be compared."),
        ("(a > 'x'", "RuntimeException: Value ''x'' cannot be compared."),
        ("a = NULL @", 'TokenMgrError: Lexical error at line 1, column 11.  Encountered: <EOF> after : ""'),
        ("(a > 1 OR 'x' 5", "ParseException: Expression will not result in a boolean value: 'x'"),
        ("a = +(b > 'x' @ ", 'TokenMgrError: Lexical error at line 1, column 15.  Encountered: "@" (64), after : ""'),
        ("a.b = 1", 'TokenMgrError: Lexical error at line 1, column 3.  Encountered: "b" (98), after : "."'),
        ("a = 'abc", 'TokenMgrError: Lexical error at line 1, column 9.  Encountered: <EOF> after : "\\\'abc"'),
        ("a\t\t= @ 1", 'TokenMgrError: Lexical error at line 1, column 19.  Encountered: "@" (64), after : ""'),
        ("a\r\n= @ 1", 'TokenMgrError: Lexical error at line 2, column 3.  Encountered: "@" (64), after : ""'),
        ("😀", 'TokenMgrError: Lexical error at line 1, column 1.  Encountered: "\\ud83d" (55357), after : ""'),
        ("a = 0.0", "RuntimeException: 0.0 is less than 4.9E-324"),
        ("a = 1e999", "RuntimeException: 1e999 is greater than 1.7976931348623157E308"),
        ("a = 9223372036854775808", 'NumberFormatException: For input string: "9223372036854775808"'),
        ("(a = 1) IN ('x')", "RuntimeException: Expected a property for In expression, got: (a == 1)"),
        ("c IN ('x','y') > 1", "RuntimeException: Value 'c IN ( x, y )' cannot be compared."),
        ("NOT c IN ('x')", "RuntimeException: Expected a property for In expression, got: (NOT c)"),
        ("TRUE = 1", "RuntimeException: 'TRUE' cannot be compared with '1'"),
        ("-a", "ParseException: Expression will not result in a boolean value: (- a)"),
        ("a BETWEEN NULL AND 1", "RuntimeException: Illegal values of between, values can not be null!"),
        ("(" * 1000 + "a" + ")" * 1000, "StackOverflowError"),
        (
            "a BETWEEN 5 AND 1.5",
            "RuntimeException: Illegal values of between, left value(5) must less than or equal to right value(1.5)",
        ),
    ],
)
def test_what_is_refused_first_and_how(expression: str, words: str) -> None:
    assert refusal(expression) == words


def expecting(expression: str, version: str) -> tuple[str, str]:
    """What was met and where, and what was expected there."""
    first, _, *expected = refusal(expression, version).splitlines()
    met = first.removeprefix("ParseException: Encountered ").removesuffix(".")
    return met, " ".join(line.strip().removesuffix(" ...").strip('"') for line in expected).strip()


OPERAND = "NOT TRUE FALSE NULL <DECIMAL_LITERAL> <FLOATING_POINT_LITERAL> <STRING_LITERAL> <ID> ( -"


@pytest.mark.parametrize(
    ("expression", "met", "expected_4", "expected_5"),
    [
        ("a IS x", '" <ID> "x "" at line 1, column 6', "NOT", "NOT NULL"),
        ("a IS NOT x", '" <ID> "x "" at line 1, column 10', "NULL", "NULL"),
        ("a > AND", '" "AND" "AND "" at line 1, column 5', OPERAND, OPERAND + " +"),
        ("+ = 1", '" "+" "+ "" at line 1, column 1', OPERAND, OPERAND),
        ("a > +(+(b =", '" "+" "+ "" at line 1, column 5', OPERAND, OPERAND),
        ("a BETWEEN 1 =", '" "=" "= "" at line 1, column 13', "AND", "AND"),
        ("x IN ('a' 'b')", '" <STRING_LITERAL> "\\\'b\\\' "" at line 1, column 11', ", )", ", )"),
        (
            "a NOT b",
            '" "NOT" "NOT "" at line 1, column 3',
            "BETWEEN IN > >= < <=",
            "BETWEEN IN CONTAINS STARTSWITH ENDSWITH > >= < <=",
        ),
        (
            "(a",
            '"<EOF>" at line 1, column 2',
            "NOT AND OR BETWEEN IN IS = <> > >= < <= )",
            "NOT AND OR BETWEEN IN IS CONTAINS STARTSWITH ENDSWITH = <> > >= < <= )",
        ),
    ],
)
def test_what_the_parser_expected(expression: str, met: str, expected_4: str, expected_5: str) -> None:
    assert expecting(expression, "4.9.7") == (met, expected_4)
    assert expecting(expression, "5.3.3") == (met, expected_5)


@given(texts, versions, properties)
def test_any_text_compiles_or_is_refused_and_any_filter_answers(text: str, version: str, of: dict[str, str]) -> None:
    try:
        condition = compile_sql92(text, version)
    except MQFilterError:
        return
    try:
        answer = evaluate(condition, of)
    except RocketMQError:
        answer = None
    assert answer is None or isinstance(answer, bool)
    assert is_matched(condition, of) is (answer is True)


def test_a_long_chain_is_no_deep_one() -> None:
    condition = compile_sql92(" OR ".join(f"a = {n}" for n in range(3000)), "5.3.3")
    assert evaluate(condition, {"a": "2999"}) is True
    assert str(condition).endswith("|| (a == 2999))")
