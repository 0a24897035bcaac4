"""consumerOffset.json as the broker reads it: leniently, by fastjson 1.2, with fastjson's error messages.

It shows whether a broker would start from a text, and with which table. Ingest does not use it: it accepts
only what a broker writes (see consumer_offset). The broker reads a bean with one table of
tables; 4.9 by generated code (fastjson 1.2.69, which goes for the field's name before it looks at any token),
5.x by reflection (1.2.83, which wants a brace first). Follows ConsumerOffsetManager#decode,
JavaBeanDeserializer, MapDeserializer.
"""

from __future__ import annotations

import sys
from array import array
from enum import Enum
from typing import Any, NamedTuple

from mqreplay.core.version import BROKER_4, at_least
from mqreplay.words.errors import RocketMQError
from oracles.fastjson.parser import HASH_MAPS, TYPE_KEY, Parser
from oracles.fastjson.scan import EOF, EOI, ERROR, IDENT, NULL, STRING, FastjsonError
from oracles.fastjson.table import TABLE, TableReader, rethrown

_ORDER = "le" if sys.byteorder == "little" else "be"
BEAN = "org.apache.rocketmq.broker.offset.ConsumerOffsetManager"
FIELDS_4 = (TABLE,)
FIELDS_5 = ("dataVersion", "groupTopicMap", TABLE)
FASTJSON_4, FASTJSON_5 = "1.2.69", "1.2.83"
CAST_ERROR = (
    "class com.alibaba.fastjson.JSONObject cannot be cast to class java.util.concurrent.ConcurrentHashMap "
    "(com.alibaba.fastjson.JSONObject is in unnamed module of loader 'app'; "
    "java.util.concurrent.ConcurrentHashMap is in module java.base of loader 'bootstrap')"
)
# Of the classes that fastjson knows by name (TypeUtils#addBaseClassMappings), the common ones.
KNOWN_CLASSES = frozenset(
    f"java.lang.{name}" for name in ("Object", "String", "Boolean", "Character", "Byte", "Short", "Integer", "Long")
) | {"java.util.TreeMap", "java.util.HashSet", "java.util.ArrayList", "java.util.concurrent.ConcurrentHashMap"}


class Decoded(NamedTuple):
    """The bean a text holds: its table by topic@group and queue id, in messages; None where the text says null."""

    offset_table: dict[str, dict[int, int]] | None


def utf16(text: str) -> str:
    """The text with each character beyond U+FFFF as its two UTF-16 units, which is how Java counts positions."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = array("H", text.encode(f"utf-16-{_ORDER}", "surrogatepass"))
    return array("I", units).tobytes().decode(f"utf-32-{_ORDER}", "surrogatepass")


def characters(text: str) -> str:
    """The reverse of utf16."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def decode_consumer_offset(text: str, version: str = BROKER_4) -> Decoded | None:
    """The offsets a broker of that version reads from a text; None if the text holds no object, and changes nothing.

    Raises FastjsonError, rarely another RocketMQError, as the broker would.

    >>> decode_consumer_offset("{'offsetTable':{T@g:{0:5.7,}}} // done")
    Traceback (most recent call last):
    oracles.fastjson.scan.FastjsonError: com.alibaba.fastjson.JSONException: expect ':' at 15, actual @
    >>> decode_consumer_offset("{'offsetTable':{'T@g':{0:5.7}},} // done")
    Decoded(offset_table={'T@g': {0: 5}})
    """
    if not text:
        return None
    try:
        reader = _Reader(utf16(text), at_least(version, "5.0.0"))
        decoded = reader.read()
        if reader.lexer.token != EOF:
            raise FastjsonError(f"not close json text, token : {reader.lexer.token}")
    except RocketMQError as error:
        if error.message is not None:
            error.message = characters(error.message)
        raise
    except RecursionError as error:
        raise FastjsonError("array level > 512") from error
    if decoded is None or decoded.offset_table is None:
        return decoded
    return Decoded({characters(key): queues for key, queues in decoded.offset_table.items()})


class _Next(Enum):
    """What a member of the bean leads to: its end, the next member, or a look at the token."""

    END = 1
    MEMBER = 2
    TOKEN = 3


class _Reader(Parser):
    def __init__(self, text: str, is_5: bool) -> None:
        super().__init__(text, safe_mode=not is_5)
        self.is_5 = is_5
        self.fields = FIELDS_5 if is_5 else FIELDS_4
        self.tables = TableReader(self)
        self.offset_table: Any = {}
        self.flags: set[str] = set()  # fields set by generated code, or by a name looked up

    def read(self) -> Decoded | None:
        """DefaultJSONParser#parseObject(Type)."""
        if self.lexer.token == NULL:
            self.lexer.next_token()
            return None
        if self.is_5 and self.lexer.token not in ("{", "["):
            found = self.lexer.token
            raise FastjsonError(f"syntax error,expect start with {{ or [,but actually start with {found}")
        has_bean = rethrown(self._bean if self.is_5 else self._bean_by_generated_code)
        return Decoded(self.offset_table) if has_bean else None

    def _bean_by_generated_code(self) -> bool:
        """What ASMDeserializerFactory makes of a bean with this one field: its name is tried before any token."""
        lexer = self.lexer
        if not lexer.text.startswith('"@type":"', lexer.bp) and lexer.match_field(TABLE):
            self.flags.add(TABLE)
            self.offset_table = self.tables.read(CAST_ERROR)
            if lexer.token == "}":
                lexer.next_token_expecting("," if lexer.ch in (",", "}", "]", EOI) else "")
                return True
        return self._bean()

    def _bean(self) -> bool:
        """JavaBeanDeserializer#deserialze: False if there is no bean, and only null."""
        lexer = self.lexer
        if lexer.token in (NULL, "}"):
            has_bean = lexer.token != NULL
            lexer.next_token_expecting(",")
            return has_bean
        if lexer.token not in ("{", ","):
            return self._no_bean()
        index = -1
        while True:
            index += 1
            if index >= len(self.fields):
                then = self._member_by_name()
            elif lexer.match_field(self.fields[index]):
                self._set_field(self.fields[index])
                then = _Next.TOKEN
            else:
                then = _Next.MEMBER
            if then is _Next.TOKEN:
                then = self._after_field()
            if then is _Next.END:
                return True

    def _no_bean(self) -> bool:
        lexer = self.lexer
        if lexer.is_blank_input():
            return False
        if lexer.token == STRING and not lexer.string:
            lexer.next_token()
            return False
        if lexer.token == "[" and lexer.ch == "]":
            lexer.next()
            lexer.next_token()
            return False
        version = FASTJSON_5 if self.is_5 else FASTJSON_4
        raise FastjsonError(
            f"syntax error, expect {{, actual {lexer.token}, pos {lexer.pos}, fastjson-version {version}"
        )

    def _after_field(self) -> _Next:
        lexer = self.lexer
        if lexer.token == "}":
            lexer.next_token_expecting(",")
            return _Next.END
        if lexer.token in (IDENT, ERROR):
            raise FastjsonError(f"syntax error, unexpect token {lexer.token}")
        return _Next.MEMBER

    def _member_by_name(self) -> _Next:
        """Read a name, look for its field, and read the value, which is dropped where there is none."""
        lexer = self.lexer
        key = lexer.scan_name()
        if key is None and lexer.token == "}":
            lexer.next_token_expecting(",")
            return _Next.END
        if key is None and lexer.token == ",":
            return _Next.MEMBER
        if key == TYPE_KEY:
            return self._type()
        field = None if key is None else self._field(key)
        lexer.next_token_with_colon()
        if field is None:
            self.parse()
        else:
            self._set_field(field)
            self.flags.add(field)
            if lexer.token == ":":
                raise FastjsonError("syntax error, unexpect token ':'")
            return _Next.TOKEN
        return self._end_or_member()

    def _end_or_member(self) -> _Next:
        if self.lexer.token == "}":
            self.lexer.next_token()
            return _Next.END
        return _Next.MEMBER

    def _type(self) -> _Next:
        """An @type: only the bean's own is let pass, and a hash map's in 5.x."""
        lexer = self.lexer
        lexer.next_token_with_colon()
        if lexer.token != STRING:
            raise FastjsonError("syntax error")
        type_name = lexer.string
        lexer.next_token_expecting(",")
        if type_name != BEAN and not (self.is_5 and type_name in HASH_MAPS):
            if self.is_5 and type_name in KNOWN_CLASSES:
                raise FastjsonError(f"type not match. {type_name} -> {BEAN}")
            self.refuse_type(type_name)
        return self._end_or_member()

    def _field(self, key: str) -> str | None:
        """JavaBeanDeserializer#smartMatch: case, '_' and '-' do not count. A field is looked up only once."""
        plain = key.replace("_", "").replace("-", "").lower() if key.isascii() else None
        for field in self.fields:
            if plain == field.lower() and field not in self.flags:
                return field
        return None

    def _set_field(self, field: str) -> None:
        if field == TABLE:
            self.offset_table = self.tables.read(f"set property error, {BEAN}#{TABLE}")
        else:
            # Typed in RocketMQ; a type that does not fit is let pass here.
            self.parse()
