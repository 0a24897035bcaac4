"""Tokens to values as fastjson 1.2 builds them where it knows no type. Follows DefaultJSONParser.

Numbers stay text (Number): only their written form says what a cast makes of them.
"""

from __future__ import annotations

from typing import Any

from mqreplay.words.errors import NumberFormat
from oracles.fastjson.cast import Number
from oracles.fastjson.lexer import Lexer
from oracles.fastjson.numbers import read_decimal
from oracles.fastjson.scan import (
    EOF,
    EOI,
    FALSE,
    FLOAT,
    HEX,
    IDENT,
    INT,
    NEW,
    NULL,
    SET,
    STRING,
    TREE_SET,
    TRUE,
    UNDEFINED,
    FastjsonError,
)

TYPE_KEY = "@type"
MAX_ARRAY_LEVEL = 512
# Characters kept of a container used as a key: each of those around it doubles the backslashes in it.
LONGEST_KEY = 200
HASH_MAPS = ("java.util.HashMap", "java.util.LinkedHashMap")


class Parser:
    """One text being parsed. safe_mode is that of the fastjson of 4.9 (1.2.69_noneautotype), which names no types."""

    def __init__(self, text: str, safe_mode: bool) -> None:
        """The first token is read."""
        self.lexer = Lexer(text)
        self.safe_mode = safe_mode
        self.level = 0
        first = self.lexer.ch
        if first in ("{", "["):
            self.lexer.next()
            self.lexer.token = first
        else:
            self.lexer.next_token()

    def fail_at(self, message: str) -> FastjsonError:
        """An error that names the place."""
        return FastjsonError(f"{message}{self.lexer.info()}")

    def parse(self) -> Any:
        """The value that begins with the token at hand; the token after it is read. DefaultJSONParser#parse."""
        lexer = self.lexer
        token = lexer.token
        if token in (SET, TREE_SET):
            lexer.next_token()
            return self.parse_array()
        if token == "[":
            return self.parse_array()
        if token == "{":
            return self.parse_object()
        if token in (INT, FLOAT):
            number = self._number()
            lexer.next_token()
            return number
        if token == STRING:
            text = lexer.string
            lexer.next_token_expecting(",")
            return text
        if token in (NULL, UNDEFINED, TRUE, FALSE, HEX) or (token == IDENT and lexer.string == "NaN"):
            if token == HEX and lexer.sp % 2:
                raise FastjsonError(f"illegal state. {lexer.sp}")
            lexer.next_token()
            return {TRUE: True, FALSE: False, HEX: b""}.get(token)
        if token == NEW:
            return self._parse_date()
        if token == EOF:
            if lexer.is_blank_input():
                return None
            raise self.fail_at("unterminated json string, ")
        raise self.fail_at("syntax error, ")

    def _number(self) -> Number:
        """The number at hand, refused as integerValue and decimalValue refuse it."""
        written = self.lexer.number()
        if self.lexer.token == INT:
            if written == "-":
                raise NumberFormat(written) if self.safe_mode else FastjsonError(f"illegal number format : {written}")
            return Number(written, False)
        plain = written.rstrip("LSBFD")
        try:
            read_decimal(plain)
        except NumberFormat as error:
            # Float and Double have a message of their own.
            of_float = f'For input string: "{plain}"' if plain else "empty String"
            message = of_float if written[-1:] in ("F", "D") else error.message
            raise self.fail_at(f"{message}, ") from error
        return Number(written, True)

    def _parse_date(self) -> Any:
        lexer = self.lexer
        lexer.next_token_expecting(IDENT)
        if lexer.token != IDENT:
            raise FastjsonError("syntax error")
        lexer.next_token()
        self._accept("(")
        time = lexer.number()
        self._accept(INT)
        self._accept(")")
        return Number(time, False)

    def _accept(self, token: str) -> None:
        if self.lexer.token != token:
            raise FastjsonError(f"syntax error, expect {token}, actual {self.lexer.token}")
        self.lexer.next_token()

    def parse_array(self, field_name: str | None = None) -> list[Any]:
        """An array, from its '[' on; commas may be missing or too many. DefaultJSONParser#parseArray."""
        lexer = self.lexer
        if lexer.token in (SET, TREE_SET):
            lexer.next_token()
        if lexer.token != "[":
            name = "null" if field_name is None else field_name
            raise FastjsonError(f"syntax error, expect [, actual {lexer.token}, pos {lexer.pos}, fieldName {name}")
        lexer.next_token_expecting(STRING)
        if self.level > MAX_ARRAY_LEVEL:
            raise FastjsonError("array level > 512")
        self.level += 1
        array: list[Any] = []
        while True:
            while lexer.token == ",":
                lexer.next_token()
            if lexer.token == "]":
                lexer.next_token_expecting(",")
                self.level -= 1
                return array
            array.append(self._item())
            if lexer.token == ",":
                lexer.next_token_expecting(STRING)

    def _item(self) -> Any:
        lexer = self.lexer
        token = lexer.token
        if token == EOF:
            raise FastjsonError("unclosed jsonArray")
        if token in (INT, FLOAT):
            number = self._number()
            lexer.next_token_expecting(",")
            return number
        if token in (TRUE, FALSE):
            lexer.next_token_expecting(",")
            return token == TRUE
        if token in (NULL, UNDEFINED):
            lexer.next_token_expecting(STRING)
            return None
        return self.parse()

    def skip_commas(self) -> str:
        """The next character that is neither white space, comment nor comma."""
        lexer = self.lexer
        lexer.skip_whitespace()
        while lexer.ch == ",":
            lexer.next()
            lexer.skip_whitespace()
        return lexer.ch

    def parse_object(self) -> Any:
        """An object, after its '{'. DefaultJSONParser#parseObject(Map)."""
        lexer = self.lexer
        found: dict[str, Any] = {}
        if lexer.token == "}":
            lexer.next_token()
            return found
        if lexer.token not in ("{", ","):
            raise self.fail_at(f"syntax error, expect {{, actual {lexer.token}, ")
        while True:
            if self.skip_commas() == "}":
                lexer.next()
                lexer.sp = 0
                lexer.next_token()
                return found
            key = self._key()
            lexer.sp = 0
            if key == TYPE_KEY:
                if self._ends_after_type(found):
                    return {}
                continue
            if key == "$ref" and not found:
                ended, value = self._reference(found)
                if ended:
                    return value
                continue
            if self._member(found, key):
                return found

    def _key(self) -> str:
        """An object's next name of any kind, its colon and the white space after it."""
        lexer = self.lexer
        ch = lexer.ch
        if ch in (EOI, ","):
            raise FastjsonError("syntax error")
        if ch in ("{", "["):
            lexer.next_token()
            return repr(self.parse())[:LONGEST_KEY]
        if "0" <= ch <= "9" or ch == "-":
            lexer.sp = 0
            lexer.scan_number()
            try:
                key = self._number().written
            except NumberFormat as error:
                raise self.fail_at("parse number key error") from error
            if lexer.ch != ":":
                raise self.fail_at("parse number key error")
        else:
            name = lexer.scan_quoted_name(ch) if ch in ('"', "'") else lexer.scan_bare_name()
            key = "null" if name is None else name
            lexer.skip_whitespace()
            if lexer.ch != ":":
                more = {'"': f", name {key}", "'": ""}.get(ch, f", actual {lexer.ch}")
                raise FastjsonError(f"expect ':' at {lexer.pos}{more}")
        lexer.next()
        lexer.skip_whitespace()
        return key

    def _ends_after_type(self, found: dict[str, Any]) -> bool:
        """After an @type: whether the object ends there. The types allowed are hash maps, read as any object."""
        lexer = self.lexer
        type_name = lexer.scan_quoted_name('"')
        if type_name != "com.alibaba.fastjson.JSONObject" and (self.safe_mode or type_name not in HASH_MAPS):
            if type_name.isdigit() or not type_name:
                found[TYPE_KEY] = type_name
                return False
            self.refuse_type(type_name)
        lexer.next_token_expecting(",")
        if lexer.token == "}":
            lexer.next_token_expecting(",")
            return True
        if lexer.token not in ("{", ","):
            raise self.fail_at(f"syntax error, expect {{, actual {lexer.token}, ")
        return False

    def refuse_type(self, type_name: str) -> None:
        """ParserConfig#checkAutoType of a name that is not let pass."""
        if self.safe_mode:
            raise FastjsonError(f"safeMode not support autoType : {type_name}")
        raise FastjsonError(f"autoType is not support. {type_name}")

    def _reference(self, found: dict[str, Any]) -> tuple[bool, Any]:
        """After a $ref: (whether the object ends there, its value). What it refers to is not looked up."""
        lexer = self.lexer
        lexer.next_token_expecting(STRING)
        if lexer.token != STRING:
            raise FastjsonError(f"illegal ref, {lexer.token}")
        ref = lexer.string
        lexer.next_token_expecting("}")
        if lexer.token == ",":
            found["$ref"] = ref
            return False, None
        if lexer.token != "}":
            raise self.fail_at("syntax error, ")
        lexer.next_token_expecting(",")
        return True, {"$ref": ref}

    def _member(self, found: dict[str, Any], key: str) -> bool:
        """A member's value, and whether the object ends after it."""
        lexer = self.lexer
        ch = lexer.ch
        if ch == '"' or "0" <= ch <= "9" or ch == "-":
            if ch == '"':
                lexer.scan_string()
                found[key] = lexer.string
            else:
                lexer.scan_number()
                found[key] = self._number()
            lexer.skip_whitespace()
            ended = lexer.ch
            if ended not in (",", "}"):
                raise FastjsonError(f"syntax error, position at {lexer.pos}, name {key}")
            lexer.next()
            if ended == "}":
                lexer.sp = 0
                lexer.next_token()
            return ended == "}"
        lexer.next_token()
        found[key] = self.parse()
        if lexer.token not in (",", "}"):
            more = {"[": "", "{": f", {lexer.token}"}.get(ch, f", position at {lexer.pos}, name {key}")
            raise FastjsonError(f"syntax error{more}")
        if lexer.token == "}":
            lexer.next_token()
            return True
        return False
