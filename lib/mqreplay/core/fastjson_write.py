"""A string as fastjson 1.2 writes it: JSON, and U+007F to U+009F, U+2028 and U+2029 escaped as well."""

from __future__ import annotations

_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_CODES = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_ESCAPES = str.maketrans({**{chr(code): f"\\u{code:04X}" for code in _CODES}, **_SHORT})


def json_string(s: str) -> str:
    """The string in double quotes, as SerializeWriter#writeStringWithDoubleQuote writes it.

    >>> print(json_string('a"b\\x01\\x7f/'))
    "a\\"b\\u0001\\u007F/"
    """
    return f'"{s.translate(_ESCAPES)}"'
