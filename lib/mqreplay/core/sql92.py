"""SQL92 filters: compiled as SqlFilter does, with RocketMQ's errors in their order and wording.

>>> condition = compile_sql92("a > 1 AND region IN ('eu', 'us')", version="5.3.3")
>>> evaluate(condition, {"a": "2", "region": "eu"}), evaluate(condition, {"region": "eu"})
(True, None)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from lark import Token, Tree

from mqreplay.core import sql92_expression as create
from mqreplay.core.java import INT_MAX, utf16_units
from mqreplay.core.java_double import double_text, parse_double
from mqreplay.core.parse_number import parse_long
from mqreplay.core.sql92_evaluate import evaluate, is_matched
from mqreplay.core.sql92_expression import Condition, Constant, Expression, Negate, Not, Property, TextMatch
from mqreplay.core.sql92_parse import Failure, Node, last_token, parse, start_of
from mqreplay.core.sql92_values import Long
from mqreplay.errors import MQFilterError, RocketMQError, StackOverflow

__all__ = ["compile_sql92", "evaluate", "is_matched"]

DOUBLE_MAX = 1.7976931348623157e308
DOUBLE_MIN = 5e-324
# Nesting beyond this is refused as Java refuses it somewhat later, when its stack is full.
MAX_DEPTH = 150

# RocketMQ looks at the token behind these before it acts.
_LOOKS_AHEAD = {"or", "and", "equal", "not_equal", "start"}


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
    mqreplay.errors.MQFilterError: org.apache.rocketmq.filter.expression.MQFilterException: \
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
    made: dict[int, tuple[Expression | None, int]] = {}
    open_nodes: list[tuple[Node, bool]] = [(tree, False)]
    while open_nodes:
        node, children_made = open_nodes.pop()
        children = [child for child in node.children if isinstance(child, Tree)]
        if not children_made:
            open_nodes.append((node, True))
            open_nodes.extend((child, False) for child in reversed(children))
            continue
        operands = [made[id(child)] for child in children]
        depth = _depth([depth for _, depth in operands])
        if failure is not None and not _was_made(node, failure):
            made[id(node)] = (None, depth)
            continue
        expressions = [operand for operand, _ in operands if operand is not None]
        made[id(node)] = (_ACTIONS[str(node.data)](expressions, _texts(node)), depth)
    return made[id(tree)][0]


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


Action = Callable[[list[Expression], list[str]], Expression]


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
