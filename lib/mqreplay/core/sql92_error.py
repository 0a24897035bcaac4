"""Error messages of RocketMQ's filter parser, which JavaCC generates.

A text here is a string of UTF-16 units, since JavaCC counts columns and shows characters by unit.
"""

from __future__ import annotations

from collections.abc import Iterable

from mqreplay.errors import FilterParseError, FilterTokenError, RocketMQError

# JavaCC's kinds of token in their order, and how it calls them.
TOKEN_IMAGE = {
    **{word: f'"{word}"' for word in ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS")},
    **{word: f'"{word}"' for word in ("CONTAINS", "STARTSWITH", "ENDSWITH")},
    **{kind: f"<{kind}>" for kind in ("DECIMAL_LITERAL", "FLOATING_POINT_LITERAL", "STRING_LITERAL", "ID")},
    **{"EQ": '"="', "NE": '"<>"', "GT": '">"', "GE": '">="', "LT": '"<"', "LE": '"<="'},
    **{"LPAR": '"("', "COMMA": '","', "RPAR": '")"', "PLUS": '"+"', "MINUS": '"-"'},
}
_KINDS = list(TOKEN_IMAGE)
_ESCAPES = {"\0": "", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES |= {'"': '\\"', "'": "\\'", "\\": "\\\\"}
_TAB = 8


def in_order(kinds: Iterable[str]) -> list[str]:
    """Kinds of token in JavaCC's order: SelectorParserConstants#tokenImage.

    >>> in_order({"ID", "NOT", "LPAR"})
    ['NOT', 'ID', 'LPAR']
    """
    return sorted(kinds, key=_KINDS.index)


def parse_error(text: str, at: int, kind: str | None, image: str, expected: list[str]) -> RocketMQError:
    """ParseException#initialise for the token of this kind and image at ``at`` (units), None at the end of the text.

    >>> str(parse_error("a BETWEEN 1", 11, None, "", ["AND"])).splitlines()[0]
    'org.apache.rocketmq.filter.parser.ParseException: Encountered "<EOF>" at line 1, column 11.'
    """
    # The end of a text is where its last character is; of an empty one JavaCC has no place yet.
    line, column = place(text, at if kind is not None else len(text) - 1) if text else (0, 0)
    found = "<EOF>" if kind is None else f' {TOKEN_IMAGE[kind]} "{add_escapes(image)} "'
    asked = "Was expecting:" if len(expected) == 1 else "Was expecting one of:"
    listed = "".join(f"{TOKEN_IMAGE[one]} ...\n    " for one in expected)
    return FilterParseError(f'Encountered "{found}" at line {line}, column {column}.\n{asked}\n    {listed}')


def token_error(text: str, at: int) -> RocketMQError:
    """TokenMgrError#LexicalError for the character at ``at`` (units), where no token starts.

    >>> print(token_error("a != 1", 2).message)
    Lexical error at line 1, column 3.  Encountered: "!" (33), after : ""
    """
    last = _last_read(text, at)
    line, column = place(text, last)
    if last == len(text) - 1:
        # JavaCC looks one character further before it tells, and finds the end of the text.
        line, column = (line + 1, 0) if text[last] in "\r\n" else (line, column + 1)
        after = text[at : last + 1] if last > at else ""
        found = "<EOF> "
    else:
        after = text[at:last]
        found = f'"{add_escapes(text[last])}" ({ord(text[last])}), '
    words = f'Lexical error at line {line}, column {column}.  Encountered: {found}after : "{add_escapes(after)}"'
    return FilterTokenError(words)


def _last_read(text: str, at: int) -> int:
    """The place of the last character JavaCC's automaton read, starting at ``at``, before it gave up."""
    if text[at] == "'" or text.startswith("/*", at):
        return len(text) - 1
    return min(at + 1, len(text) - 1) if text[at] in "./" else at


def place(text: str, at: int) -> tuple[int, int]:
    """Line and column of the character at ``at`` (units), both from 1; a tab jumps to the next 8.

    Follows SimpleCharStream#UpdateLineColumn.

    >>> place("a = 1", 4), place("a\\n\\tb", 3)
    ((1, 5), (2, 9))
    """
    line, column, previous = 1, 0, ""
    for char in text[: at + 1]:
        column += 1
        if previous == "\n" or (previous == "\r" and char != "\n"):
            line, column = line + 1, 1
        if char == "\t":
            column = column - 1 + (_TAB - (column - 1) % _TAB)
        previous = char
    return line, column


def add_escapes(image: str) -> str:
    """ParseException#addEscapes: a token as it may stand in a message.

    >>> add_escapes("'中'")
    "\\\\'\\\\u4e2d\\\\'"
    """
    return "".join(_ESCAPES.get(char, char if " " <= char <= "~" else f"\\u{ord(char):04x}") for char in image)
