"""Evaluate a compiled SQL92 filter for a message: true, false, or null (no match).

Null is an unknown value, carried through as SQL does, with RocketMQ's own twists: a property equals NULL only where
``IS NULL`` asks, an absent property is never CONTAINS nor NOT CONTAINS anything, and what is no number stops the
evaluation with an exception, which a broker logs and takes for no match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mqreplay.core.java_double import parse_double
from mqreplay.core.sql92_expression import (
    BooleanCast,
    Comparison,
    Constant,
    Expression,
    In,
    Logic,
    Negate,
    Not,
    Property,
    TextMatch,
)
from mqreplay.core.sql92_values import Value, compare, negate
from mqreplay.errors import NumberFormat, RocketMQError

_ANSWERS: dict[str, Callable[[int], bool]] = {
    "==": lambda answer: answer == 0,
    ">": lambda answer: answer > 0,
    ">=": lambda answer: answer >= 0,
    "<": lambda answer: answer < 0,
    "<=": lambda answer: answer <= 0,
}


def evaluate(expression: Expression, properties: Mapping[str, str]) -> Value:
    """Expression#evaluate: the value for a message with these properties, None for null.

    Raises RocketMQError where Java throws: RuntimeException around a NumberFormatException, ClassCast.

    >>> compiled = Comparison(">", Property("a"), Constant(1))
    >>> evaluate(compiled, {"a": "2"}), evaluate(compiled, {})
    (True, None)
    """
    # A chain of operators leans to the left: it is walked, not recursed into.
    chain: list[Comparison | Logic] = []
    while isinstance(expression, (Comparison, Logic)):
        chain.append(expression)
        expression = expression.left
    value = _evaluate_one(expression, properties)
    for operator in reversed(chain):
        if isinstance(operator, Logic):
            value = _logic(operator, value, properties)
        else:
            value = _comparison(operator, value, properties)
    return value


def is_matched(expression: Expression, properties: Mapping[str, str]) -> bool:
    """ExpressionMessageFilter#isMatchedByCommitLog: whether the broker sends the message; an exception is no match.

    >>> is_matched(Comparison(">", Property("a"), Constant(1)), {"a": "not a number"})
    False
    """
    try:
        return evaluate(expression, properties) is True
    except RocketMQError:
        return False


def _evaluate_one(expression: Expression, properties: Mapping[str, str]) -> Value:
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Property):
        return properties.get(expression.name)
    value = evaluate(expression.right, properties)
    if isinstance(expression, Negate):
        return negate(value)
    if isinstance(expression, Not):
        return None if value is None else not value
    if isinstance(expression, BooleanCast):
        # A property is a string, and a string is never a Boolean.
        return None if value is None else value is True
    if isinstance(expression, In):
        return (value in expression.elements) != expression.negated if isinstance(value, str) else None
    assert isinstance(expression, TextMatch)
    return _text_match(expression, value)


def _text_match(expression: TextMatch, value: Value) -> bool:
    if not expression.search or not isinstance(value, str):
        return False
    if expression.symbol == "CONTAINS":
        found = expression.search in value
    elif expression.symbol == "STARTSWITH":
        found = value.startswith(expression.search)
    else:
        found = value.endswith(expression.search)
    return found != expression.negated


def _logic(expression: Logic, left: Value, properties: Mapping[str, str]) -> bool | None:
    # The deciding value: true for OR, false for AND; then the right side is not evaluated.
    settles = expression.symbol == "||"
    if left is settles:
        return settles
    right = evaluate(expression.right, properties)
    if right is settles:
        return settles
    return None if left is None or right is None else not settles


def _comparison(expression: Comparison, left: Value, properties: Mapping[str, str]) -> bool | None:
    symbol = expression.symbol
    if symbol == "==":
        return _equal(left, evaluate(expression.right, properties))
    if left is None:
        return None
    right = evaluate(expression.right, properties)
    if right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        return _order_of_strings(symbol, left, right)
    return _ANSWERS[symbol](compare(left, right))


def _equal(left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        # a = NULL is asked by IS NULL alone: both null is true, a value beside null is false.
        return True if left is right else (None if left is None else False)
    return compare(left, right) == 0


def _order_of_strings(symbol: str, left: str, right: str) -> bool:
    try:
        answer = compare(parse_double(left), parse_double(right))
    except NumberFormat as error:
        words = f"It's illegal to compare string by '>=', '>', '<', '<='. lv={left}, rv={right}"
        raise RocketMQError(words) from error
    return _ANSWERS[symbol](answer)
