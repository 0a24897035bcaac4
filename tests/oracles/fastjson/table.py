"""The table in consumerOffset.json: maps by name, and in them maps by queue id, as fastjson 1.2 reads them.

Follows MapDeserializer#parseMap (the one for names, the one for other keys), IntegerCodec and LongCodec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mqreplay.core.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from mqreplay.words.errors import NullPointer, RocketMQError
from oracles.fastjson.cast import cast_to_int, cast_to_long
from oracles.fastjson.numbers import decimal_to_int, decimal_to_long, java_digits
from oracles.fastjson.parser import TYPE_KEY, Parser
from oracles.fastjson.scan import EOF, FLOAT, INT, NULL, STRING, TOKEN_NUMBERS, FastjsonError

TABLE = "offsetTable"
T = TypeVar("T")


def rethrown(read: Callable[[], T]) -> T:
    """read(), with any error that is not fastjson's turned into one (DefaultJSONParser#parseObject).

    >>> rethrown(lambda: {}["a"] if False else 1)
    1
    """
    try:
        return read()
    except FastjsonError:
        raise
    except RocketMQError as error:
        raise FastjsonError(error.message) from error


class TableReader:
    """Reads the table with a parser that stands at its first token."""

    def __init__(self, parser: Parser) -> None:
        """The parser, which is shared."""
        self.parser = parser
        self.lexer = parser.lexer

    def read(self, cast_error: str) -> dict[str, dict[int, int]] | None:
        """The table; cast_error is the message for a lone object in an array, which fastjson reads as the table."""
        lexer = self.lexer
        if lexer.token == NULL:
            lexer.next_token_expecting(",")
            return None
        if lexer.token != "{":
            self._no_table(cast_error)
            return None
        table: dict[str, dict[int, int]] = {}
        while True:
            if self.parser.skip_commas() == "}":
                lexer.next()
                lexer.sp = 0
                lexer.next_token_expecting(",")
                return table
            key = self._key()
            ended = self._type() if key == TYPE_KEY else self._entry(table, key)
            if ended:
                return table

    def _no_table(self, cast_error: str) -> None:
        lexer, token = self.lexer, self.lexer.token
        if token == STRING and not self.parser.safe_mode and lexer.string in ("", "null"):
            return
        error = self.parser.fail_at(f"syntax error, expect {{, actual {token}, fieldName {TABLE}, ")
        if token != STRING:
            array = self.parser.parse_array(TABLE)
            if len(array) == 1 and isinstance(array[0], dict):
                raise FastjsonError(cast_error)
        raise error

    def _key(self) -> str | None:
        lexer = self.lexer
        quoted = lexer.ch in ('"', "'")
        key = lexer.scan_quoted_name(lexer.ch) if quoted else lexer.scan_bare_name()
        lexer.skip_whitespace()
        if lexer.ch != ":":
            raise FastjsonError(f"expect ':' at {lexer.pos}" + ("" if quoted else f", actual {lexer.ch}"))
        lexer.next()
        lexer.skip_whitespace()
        lexer.sp = 0
        return key

    def _type(self) -> bool:
        """After an @type: whether the table ends there. 5.x passes over it."""
        lexer = self.lexer
        type_name = lexer.scan_quoted_name('"')
        if self.parser.safe_mode:
            self.parser.refuse_type(type_name)
        lexer.next_token_expecting(",")
        if lexer.token != "}":
            return False
        lexer.next_token_expecting(",")
        return True

    def _entry(self, table: dict[str, dict[int, int]], key: str | None) -> bool:
        """One name's queues; whether the table ends after them."""
        lexer = self.lexer
        lexer.next_token()
        if lexer.token == NULL:
            lexer.next_token()
            raise NullPointer
        queues = rethrown(lambda: self._queues(table))
        if key is None or queues is None:
            raise NullPointer  # ConcurrentHashMap#put
        table[key] = queues
        if lexer.token == "}":
            lexer.next_token()
            return True
        return lexer.token in (EOF, "]")

    def _queues(self, table: Any) -> dict[int, int] | None:
        """The offsets by queue id; a comma after an entry may be missing."""
        lexer = self.lexer
        if lexer.token not in ("{", ","):
            raise FastjsonError(f"syntax error, expect {{, actual {lexer.token}")
        lexer.next_token_expecting(INT)
        queues: dict[int, int] = {}
        while lexer.token != "}":
            if lexer.token == STRING and lexer.is_ref():
                return self._reference(table)
            if not queues and lexer.token == STRING and lexer.string == TYPE_KEY:
                lexer.next_token_with_colon()
                lexer.next_token_expecting(",")
                if lexer.token == "}":
                    lexer.next_token()
                    return queues
                lexer.next_token_expecting(INT)
            key = self._queue_id()
            if lexer.token != ":":
                raise FastjsonError(f"syntax error, expect :, actual {TOKEN_NUMBERS[lexer.token]}")
            lexer.next_token_expecting(INT)
            value = self._offset(key)
            if key is None or value is None:
                raise NullPointer  # ConcurrentHashMap#put
            queues[key] = value
            if lexer.token == ",":
                lexer.next_token_expecting(INT)
        lexer.next_token_expecting(",")
        return queues

    def _reference(self, table: Any) -> dict[int, int] | None:
        """After a $ref: the table for "..", as in fastjson; nothing for others."""
        lexer = self.lexer
        lexer.next_token_with_colon()
        if lexer.token != STRING:
            raise FastjsonError(f"illegal ref, {lexer.token}")
        ref = lexer.string
        lexer.next_token_expecting("}")
        if lexer.token != "}":
            raise FastjsonError("illegal ref")
        lexer.next_token_expecting(",")
        found: dict[int, int] | None = table if ref == ".." else None
        return found

    def _queue_id(self) -> int | None:
        """IntegerCodec#deserialze; None is null."""
        lexer = self.lexer
        if lexer.token == NULL:
            lexer.next_token_expecting(",")
            return None
        try:
            if lexer.token == INT:
                value = java_digits(lexer.number(), INT_MIN, INT_MAX)
            elif lexer.token == FLOAT:
                value = decimal_to_int(lexer.number().rstrip("LSBFD"))
            else:
                return cast_to_int(self.parser.parse())
            lexer.next_token_expecting(",")
        except RocketMQError as error:
            raise FastjsonError("parseInt error") from error
        return value

    def _offset(self, key: int | None) -> int | None:
        """LongCodec#deserialze; None is null."""
        lexer = self.lexer
        try:
            if lexer.token == INT:
                value = java_digits(lexer.number(), LONG_MIN, LONG_MAX)
            elif lexer.token == FLOAT:
                value = decimal_to_long(lexer.number().rstrip("LSBFD"))
            else:
                return cast_to_long(self.parser.parse(), of_bool=not self.parser.safe_mode)
            lexer.next_token_expecting(",")
        except RocketMQError as error:
            field = "null" if key is None else key
            raise FastjsonError(f"parseLong error, field : {field}") from error
        return value
