"""What a SQL92 filter compiles to, and what RocketMQ refuses to compile.

Each class stands for one of org.apache.rocketmq.filter.expression; ``str`` of it is Java's toString, which the
messages of errors quote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from mqreplay.core.java import string_hash
from mqreplay.core.java_maps import hash_map_order
from mqreplay.core.sql92_values import Value, compare, is_number, text_of
from mqreplay.words.errors import FilterParseError, RocketMQError


@dataclass(frozen=True, slots=True)
class Constant:
    """ConstantExpression; TRUE, FALSE and NULL are BooleanConstantExpression."""

    value: Value

    def __str__(self) -> str:
        """NULL, TRUE, FALSE, a quoted string or a number."""
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return text_of(self.value) if is_number(self.value) else text_of(self.value).upper()


@dataclass(frozen=True, slots=True)
class Property:
    """PropertyExpression: a property of the message by its name."""

    name: str

    def __str__(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Comparison:
    """ComparisonExpression: ``symbol`` is one of ==, >, >=, <, <=."""

    symbol: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        """(left symbol right)."""
        return _chain_text(self)


@dataclass(frozen=True, slots=True)
class Logic:
    """LogicExpression: ``symbol`` is && or ||."""

    symbol: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        """(left symbol right)."""
        return _chain_text(self)


@dataclass(frozen=True, slots=True)
class Not:
    """UnaryExpression#createNOT."""

    right: Expression

    def __str__(self) -> str:
        """(NOT right)."""
        return f"(NOT {self.right})"


@dataclass(frozen=True, slots=True)
class Negate:
    """UnaryExpression#createNegate."""

    right: Expression

    def __str__(self) -> str:
        """(- right)."""
        return f"(- {self.right})"


@dataclass(frozen=True, slots=True)
class BooleanCast:
    """UnaryExpression#createBooleanCast: a property where a condition is asked for."""

    right: Property

    def __str__(self) -> str:
        """The property."""
        return str(self.right)


@dataclass(frozen=True, slots=True)
class In:
    """UnaryInExpression: a property in, or not in, a list of strings."""

    right: Property
    elements: tuple[str, ...]
    negated: bool

    def __str__(self) -> str:
        """The property, IN or NOT IN, and the list; from five elements on in the order of a HashSet."""
        elements = list(self.elements)
        if len(elements) >= 5:
            needed = max(int(len(elements) / 0.75) + 1, 16)
            elements = hash_map_order(elements, string_hash, 1 << (needed - 1).bit_length())
        return f"{self.right} {'NOT IN' if self.negated else 'IN'} ( {', '.join(elements)} )"


@dataclass(frozen=True, slots=True)
class TextMatch:
    """ContainsExpression and its like (5.x): ``symbol`` is CONTAINS, STARTSWITH or ENDSWITH."""

    symbol: str
    right: Expression
    search: str
    negated: bool

    def __str__(self) -> str:
        """(symbol right), without the text to search for."""
        return f"({'NOT ' if self.negated else ''}{self.symbol} {self.right})"


Expression = Constant | Property | Comparison | Logic | Not | Negate | BooleanCast | In | TextMatch
Condition = Constant | Comparison | Logic | Not | BooleanCast | In | TextMatch


def _chain_text(expression: Expression) -> str:
    # Long chains lean to the left: they are walked, not recursed into.
    chain: list[Comparison | Logic] = []
    while isinstance(expression, (Comparison, Logic)):
        chain.append(expression)
        expression = expression.left
    ends = "".join(f" {link.symbol} {link.right})" for link in reversed(chain))
    return "(" * len(chain) + str(expression) + ends


def is_condition(expression: Expression) -> TypeGuard[Condition]:
    """Whether Java would call it a BooleanExpression, as SelectorParser#asBooleanExpression asks.

    >>> is_condition(Constant(True)), is_condition(Constant(1)), is_condition(Property("a"))
    (True, False, False)
    """
    if isinstance(expression, Constant):
        return expression.value is None or isinstance(expression.value, bool)
    return not isinstance(expression, (Property, Negate))


def as_condition(expression: Expression) -> Condition:
    """SelectorParser#asBooleanExpression: itself, a property cast, or FilterParseError.

    >>> as_condition(Property("a"))
    BooleanCast(right=Property(name='a'))
    """
    if is_condition(expression):
        return expression
    if isinstance(expression, Property):
        return BooleanCast(expression)
    raise FilterParseError(f"Expression will not result in a boolean value: {expression}")


def create_equal(left: Expression, right: Expression) -> Comparison:
    """ComparisonExpression#createEqual: NULL may not be compared, nor TRUE or FALSE with another constant.

    >>> str(create_equal(Property("a"), Constant(1)))
    '(a == 1)'
    """
    for operand in (left, right):
        if isinstance(operand, Constant) and operand.value is None:
            raise RocketMQError(f"'{operand}' cannot be compared.")
    if isinstance(left, Constant) and isinstance(right, Constant) and is_condition(left) and not is_condition(right):
        raise RocketMQError(f"'{left}' cannot be compared with '{right}'")
    return Comparison("==", left, right)


def create_is_null(left: Expression) -> Comparison:
    """ComparisonExpression#createIsNull: equal to NULL, unchecked.

    >>> str(create_is_null(Property("a")))
    '(a == NULL)'
    """
    return Comparison("==", left, Constant(None))


def create_order(symbol: str, left: Expression, right: Expression) -> Comparison:
    """ComparisonExpression#createGreaterThan and its like: only numbers, properties and negations may be compared.

    >>> str(create_order(">", Property("a"), Constant(1.5)))
    '(a > 1.5)'
    """
    for operand in (left, right):
        number = isinstance(operand, Constant) and is_number(operand.value)
        if not number and (isinstance(operand, Constant) or is_condition(operand)):
            raise RocketMQError(f"Value '{operand}' cannot be compared.")
    return Comparison(symbol, left, right)


def create_between(value: Expression, low: Expression, high: Expression) -> Logic:
    """ComparisonExpression#createBetween: two constants are checked against each other first.

    >>> str(create_between(Property("a"), Constant(1), Constant(5)))
    '((a >= 1) && (a <= 5))'
    """
    if isinstance(low, Constant) and isinstance(high, Constant):
        if low.value is None or high.value is None:
            raise RocketMQError("Illegal values of between, values can not be null!")
        if compare(high.value, low.value) < 0:
            raise RocketMQError(
                f"Illegal values of between, left value({text_of(low.value)}) must less than or equal to "
                f"right value({text_of(high.value)})"
            )
    return Logic("&&", create_order(">=", value, low), create_order("<=", value, high))


def create_not_between(value: Expression, low: Expression, high: Expression) -> Logic:
    """ComparisonExpression#createNotBetween, which does not check the two against each other.

    >>> str(create_not_between(Property("a"), Constant(5), Constant(1)))
    '((a < 5) || (a > 1))'
    """
    return Logic("||", create_order("<", value, low), create_order(">", value, high))


def create_in(left: Expression, elements: tuple[str, ...], negated: bool) -> In:
    """ComparisonExpression#createInFilter and #createNotInFilter: only for a property.

    >>> str(create_in(Property("c"), ("x", "y"), negated=True))
    'c NOT IN ( x, y )'
    """
    if not isinstance(left, Property):
        raise RocketMQError(f"Expected a property for In expression, got: {left}")
    return In(left, elements, negated)


def property_names(expression: Expression) -> frozenset[str]:
    """Return the properties that a filter reads.

    No method of RocketMQ: a broker reads them one by one.

    >>> sorted(property_names(Logic("&&", Comparison(">", Property("a"), Constant(1)), BooleanCast(Property("b")))))
    ['a', 'b']
    """
    names: set[str] = set()
    unread: list[Expression] = [expression]
    while unread:
        node = unread.pop()
        if isinstance(node, Property):
            names.add(node.name)
        elif isinstance(node, (Comparison, Logic)):
            unread += [node.left, node.right]
        elif not isinstance(node, Constant):
            unread.append(node.right)
    return frozenset(names)
