"""SQL92 filters: compiled as SqlFilter does, with RocketMQ's errors in their order and wording, and evaluated.

For a message a filter is true, false, or null (no match). Null is an unknown value, carried through as SQL does, with
RocketMQ's own twists: a property equals NULL only where ``IS NULL`` asks, an absent property is never CONTAINS nor NOT
CONTAINS anything, and what is no number stops the evaluation with an exception, which a broker logs as no match.

>>> condition = compile_sql92("a > 1 AND region IN ('eu', 'us')", version="5.3.3")
>>> evaluate(condition, {"a": "2", "region": "eu"}), evaluate(condition, {"region": "eu"})
(True, None)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from lark import Token, Tree

from mqreplay.core import sql92_expression as create
from mqreplay.core.java import INT_MAX, utf16_units
from mqreplay.core.java_numbers import double_text, parse_double, parse_long
from mqreplay.core.sql92_expression import (
    BooleanCast,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    Logic,
    Negate,
    Not,
    Property,
    TextMatch,
)
from mqreplay.core.sql92_parse import Failure, Node, last_token, parse, start_of
from mqreplay.core.sql92_values import Long, Value, compare, negate
from mqreplay.words.errors import MQFilterError, NumberFormat, RocketMQError, StackOverflow

DOUBLE_MAX = 1.7976931348623157e308
DOUBLE_MIN = 5e-324
# Nesting beyond this is refused as Java refuses it somewhat later, when its stack is full.
MAX_DEPTH = 150

# RocketMQ looks at the token behind these before it acts.
_LOOKS_AHEAD = {"or", "and", "equal", "not_equal", "start"}
Action = Callable[[list[Expression], list[str]], Expression]
_ANSWERS: dict[str, Callable[[int], bool]] = {
    "==": lambda answer: answer == 0,
    ">": lambda answer: answer > 0,
    ">=": lambda answer: answer >= 0,
    "<": lambda answer: answer < 0,
    "<=": lambda answer: answer <= 0,
}


@lru_cache(maxsize=100)
def compile_sql92(expression: str, version: str) -> Condition:
    """SqlFilter#compile: the condition that ``expression`` states, in the language of a broker's version.

    CONTAINS, STARTSWITH and ENDSWITH are words from 5.x on, and names before. The text is read up to the first
    complete expression: ``a = 1) x`` is ``a = 1``.

    Raises MQFilterError, its message the exception that RocketMQ's parser threw.

    >>> str(compile_sql92("a BETWEEN 1 AND 5", "4.9.7"))
    '((a >= 1) && (a <= 5))'
    >>> compile_sql92("a > 'x'", "4.9.7")
    Traceback (most recent call last):
    mqreplay.words.errors.MQFilterError: org.apache.rocketmq.filter.expression.MQFilterException: \
java.lang.RuntimeException: Value ''x'' cannot be compared.
    """
    parsed = parse("".join(map(chr, utf16_units(expression))), version)
    try:
        built = _build(parsed.tree, parsed.failure)
    except RocketMQError as error:
        raise MQFilterError(str(error)) from error
    if parsed.failure is not None:
        raise MQFilterError(str(parsed.failure.error))
    assert built is not None
    return create.as_condition(built)


def _build(tree: Node, failure: Failure | None) -> Expression | None:
    """The expression of a tree, made in RocketMQ's order; None where it failed before it was made."""
    built: dict[int, tuple[Expression | None, int]] = {}
    open_nodes: list[tuple[Node, bool]] = [(tree, False)]
    while open_nodes:
        node, children_made = open_nodes.pop()
        children = [child for child in node.children if isinstance(child, Tree)]
        if not children_made:
            open_nodes.append((node, True))
            open_nodes.extend((child, False) for child in reversed(children))
            continue
        operands = [built[id(child)] for child in children]
        depth = _depth([depth for _, depth in operands])
        if failure is not None and not _was_made(node, failure):
            built[id(node)] = (None, depth)
            continue
        expressions = [operand for operand, _ in operands if operand is not None]
        built[id(node)] = (_ACTIONS[str(node.data)](expressions, _texts(node)), depth)
    return built[id(tree)][0]


def _depth(depths: list[int]) -> int:
    depth = max([depths[0] + (len(depths) == 1), *(one + 1 for one in depths[1:])]) if depths else 1
    if depth > MAX_DEPTH:
        raise StackOverflow
    return depth


def _was_made(node: Node, failure: Failure) -> bool:
    end = start_of(last_token(node))
    return end < failure.at and not (end == failure.unread and str(node.data) in _LOOKS_AHEAD)


def _texts(node: Node) -> list[str]:
    return [token for token in node.children if isinstance(token, Token)]


def _order(symbol: str) -> Action:
    return lambda operands, _: create.create_order(symbol, *operands)


def _logic(symbol: str) -> Action:
    return lambda operands, _: create.Logic(symbol, *map(create.as_condition, operands))


def _text_match(symbol: str, negated: bool) -> Action:
    return lambda operands, texts: TextMatch(symbol, operands[0], _string(texts[-1]), negated)


def _in(negated: bool) -> Action:
    def act(operands: list[Expression], texts: list[str]) -> Expression:
        return create.create_in(operands[0], tuple(_string(text) for text in texts if text[0] == "'"), negated)

    return act


def _string(image: str) -> str:
    inner = image[1:-1].replace("''", "'")
    return inner.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def _decimal(image: str) -> Constant:
    """ConstantExpression#createFromDecimal: an Integer if it fits, else a Long."""
    value = parse_long(image.rstrip("lL"))
    return Constant(value if value <= INT_MAX else Long(value))


def _float(image: str) -> Constant:
    """ConstantExpression#createFloat: zero is refused, since Double.MIN_VALUE is the least positive double."""
    value = parse_double(image)
    if value > DOUBLE_MAX:
        raise RocketMQError(f"{image} is greater than {double_text(DOUBLE_MAX)}")
    if value < DOUBLE_MIN:
        raise RocketMQError(f"{image} is less than {double_text(DOUBLE_MIN)}")
    return Constant(value)


_ACTIONS: dict[str, Action] = {
    "start": lambda operands, _: create.as_condition(operands[0]),
    "or": _logic("||"),
    "and": _logic("&&"),
    "equal": lambda operands, _: create.create_equal(*operands),
    "not_equal": lambda operands, _: Not(create.create_equal(*operands)),
    "is_null": lambda operands, _: create.create_is_null(operands[0]),
    "is_not_null": lambda operands, _: Not(create.create_is_null(operands[0])),
    "greater": _order(">"),
    "greater_equal": _order(">="),
    "less": _order("<"),
    "less_equal": _order("<="),
    "contains": _text_match("CONTAINS", negated=False),
    "not_contains": _text_match("CONTAINS", negated=True),
    "starts_with": _text_match("STARTSWITH", negated=False),
    "not_starts_with": _text_match("STARTSWITH", negated=True),
    "ends_with": _text_match("ENDSWITH", negated=False),
    "not_ends_with": _text_match("ENDSWITH", negated=True),
    "between": lambda operands, _: create.create_between(*operands),
    "not_between": lambda operands, _: create.create_not_between(*operands),
    "in": _in(negated=False),
    "not_in": _in(negated=True),
    "plus": lambda operands, _: operands[0],
    "minus": lambda operands, _: Negate(operands[0]),
    "not": lambda operands, _: Not(create.as_condition(operands[0])),
    "group": lambda operands, _: operands[0],
    "string": lambda _, texts: Constant(_string(texts[0])),
    "decimal": lambda _, texts: _decimal(texts[0]),
    "float": lambda _, texts: _float(texts[0]),
    "true": lambda _, texts: Constant(True),
    "false": lambda _, texts: Constant(False),
    "null": lambda _, texts: Constant(None),
    "property": lambda _, texts: Property(texts[0]),
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
            value = _logic_value(operator, value, properties)
        else:
            value = _comparison_value(operator, value, properties)
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
    return _text_match_value(expression, value)


def _text_match_value(expression: TextMatch, value: Value) -> bool:
    if not expression.search or not isinstance(value, str):
        return False
    if expression.symbol == "CONTAINS":
        matches = expression.search in value
    elif expression.symbol == "STARTSWITH":
        matches = value.startswith(expression.search)
    else:
        matches = value.endswith(expression.search)
    return matches != expression.negated


def _logic_value(expression: Logic, left: Value, properties: Mapping[str, str]) -> bool | None:
    # The deciding value: true for OR, false for AND; then the right side is not evaluated.
    settles = expression.symbol == "||"
    if left is settles:
        return settles
    right = evaluate(expression.right, properties)
    if right is settles:
        return settles
    return None if left is None or right is None else not settles


def _comparison_value(expression: Comparison, left: Value, properties: Mapping[str, str]) -> bool | None:
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
