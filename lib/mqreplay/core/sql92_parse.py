"""Text of a SQL92 filter to a tree, and what was wrong with it.

The grammar is in sql92.lark. RocketMQ's parser reads from the left with one token of lookahead and acts at once,
so that it may refuse a comparison before it has seen a character that is no token. A text that is wrong is
therefore finished here with made-up tokens: its tree says which of RocketMQ's acts came before the error.

Error messages are those of JavaCC, which generates RocketMQ's parser. A text here is a string of UTF-16 units, since
JavaCC counts columns and shows characters by unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from mqreplay.core.version import at_least
from mqreplay.words.errors import FilterParseError, FilterTokenError, RocketMQError

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
Node = Tree[Token]

_END = "$END"
_WORDS_SINCE_5_1_3 = ("CONTAINS", "STARTSWITH", "ENDSWITH")
_OPERAND = {"NOT", "TRUE", "FALSE", "NULL", "DECIMAL_LITERAL", "FLOATING_POINT_LITERAL", "STRING_LITERAL", "ID"}
_OPERAND |= {"LPAR", "MINUS"}
_ORDERS = {"GT", "GE", "LT", "LE"}
# What finishes an expression soonest, in the order of preference.
_FINISHING = ("RPAR", "ID", "STRING_LITERAL", "NULL", "AND", "LPAR", "IN")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a text does not parse. Places are in UTF-16 units.

    ``at`` is the position of RocketMQ's parser; ``unread`` is set if the next token could not even be read, and is
    then the place of the last token that could.
    """

    error: RocketMQError
    at: int
    unread: int | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of a text (finished with made-up tokens if there is a failure), and the failure."""

    tree: Node
    failure: Failure | None


def parse(text: str, version: str) -> Parsed:
    """Parse the first complete expression of ``text``, a string of UTF-16 units; the rest is ignored.

    Follows SelectorParser#JmsSelector.

    >>> parse("a = 1) b", "4.9.7").tree.data
    Token('RULE', 'start')
    >>> print(str(parse("a = ", "4.9.7").failure.error.message).splitlines()[0])
    Encountered "<EOF>" at line 1, column 4.
    """
    with_words = at_least(version, "5.1.3")
    parser = _parser(with_words).parse_interactive(text)
    read: list[Token] = []
    unreadable: int | None = None
    offending: Token | None = None
    try:
        for token in parser.iter_parse():
            read.append(token)
    except UnexpectedCharacters as error:
        unreadable = error.pos_in_stream
    except UnexpectedToken:
        offending = read.pop()
    accepted = {kind for kind in _accepted(parser) if with_words or kind not in _WORDS_SINCE_5_1_3}
    tree = _finish(parser, len(text))
    if unreadable is not None:
        return Parsed(tree, _unreadable(text, tree, read, unreadable))
    if _END in accepted:
        return Parsed(tree, None)
    return Parsed(tree, _unexpected(text, tree, read, offending, accepted, with_words))


def last_token(node: Node) -> Token:
    """The last token of a tree's text. No method of RocketMQ: its parser has no tree.

    >>> str(last_token(parse("a = 1", "4.9.7").tree))
    '1'
    """
    last: Node | Token = node
    while isinstance(last, Tree):
        last = last.children[-1]
    return last


def start_of(token: Token) -> int:
    """Where a token starts, in UTF-16 units. No method of RocketMQ: its tokens know line and column.

    >>> start_of(Token("ID", "a", start_pos=3))
    3
    """
    return token.start_pos if token.start_pos is not None else 0


@cache
def _parser(with_words: bool) -> Lark:
    grammar = files("mqreplay.core").joinpath("sql92.lark").read_text(encoding="utf-8")
    names = {} if with_words else dict.fromkeys(_WORDS_SINCE_5_1_3, lambda word: word.update(type="ID"))
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        keep_all_tokens=True,
        maybe_placeholders=False,
        g_regex_flags=re.ASCII,
        lexer_callbacks=names,
    )


def _finish(parser: InteractiveParser, end: int) -> Node:
    """Return the tree after adding made-up tokens at the end of the text."""
    while _END not in (accepted := _accepted(parser)):
        kind = next(kind for kind in _FINISHING if kind in accepted)
        parser.feed_token(Token(kind, "", start_pos=end))
    tree: Node = parser.feed_token(Token(_END, "", start_pos=end))
    return tree


def _accepted(parser: InteractiveParser) -> set[str]:
    kinds: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return kinds


def _unreadable(text: str, tree: Node, read: list[Token], at: int) -> Failure:
    plus = _open_plus(tree, at)
    if plus is not None:
        return Failure(token_error(text, at), start_of(plus))
    return Failure(token_error(text, at), at, start_of(read[-1]) if read else None)


def _unexpected(
    text: str, tree: Node, read: list[Token], token: Token | None, accepted: set[str], with_words: bool
) -> Failure:
    at = len(text) if token is None else start_of(token)
    plus = _open_plus(tree, at)
    if plus is not None:
        # LOOKAHEAD("+" unaryExpr()): a plus is only read as one if all that belongs to it can be read.
        token, expected = plus, in_order(_OPERAND)
    elif "ID" in accepted:
        expected = in_order(_OPERAND) + (["PLUS"] if with_words else [])
    elif "IN" in accepted and "GT" not in accepted:
        # LOOKAHEAD(2): NOT behind an operand is refused itself, if no BETWEEN or the like follows.
        token, expected = read[-1], in_order(accepted | _ORDERS)
    elif accepted == {"NOT", "NULL"}:
        expected = ["NOT", "NULL"] if with_words else ["NOT"]
    else:
        expected = in_order(accepted)
    if token is None:
        return Failure(parse_error(text, at, None, "", expected), at)
    return Failure(parse_error(text, start_of(token), token.type, token, expected), start_of(token))


def _open_plus(tree: Node, at: int) -> Token | None:
    """The outermost plus whose operand was not read in full when the parser came to ``at``."""
    signs = [node.children[0] for node in tree.find_data("plus") if start_of(last_token(node)) >= at]
    tokens = [sign for sign in signs if isinstance(sign, Token)]
    return min(tokens, key=start_of, default=None)


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
    encountered = "<EOF>" if kind is None else f' {TOKEN_IMAGE[kind]} "{add_escapes(image)} "'
    asked = "Was expecting:" if len(expected) == 1 else "Was expecting one of:"
    listed = "".join(f"{TOKEN_IMAGE[one]} ...\n    " for one in expected)
    return FilterParseError(f'Encountered "{encountered}" at line {line}, column {column}.\n{asked}\n    {listed}')


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
        encountered = "<EOF> "
    else:
        after = text[at:last]
        encountered = f'"{add_escapes(text[last])}" ({ord(text[last])}), '
    words = f'Lexical error at line {line}, column {column}.  Encountered: {encountered}after : "{add_escapes(after)}"'
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
    """Return a token as an error message shows it (ParseException#addEscapes).

    >>> add_escapes("'中'")
    "\\\\'\\\\u4e2d\\\\'"
    """
    return "".join(_ESCAPES.get(char, char if " " <= char <= "~" else f"\\u{ord(char):04x}") for char in image)
