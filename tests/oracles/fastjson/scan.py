"""Literals of fastjson 1.2: strings with its own escapes, words, numbers with a type's letter, comments.

The reading position holds one character ahead. A character is a UTF-16 unit. Follows JSONLexerBase and
JSONScanner.
"""

from __future__ import annotations

import re

from mqreplay.core.java_numbers import parse_int
from mqreplay.words.errors import RocketMQError, StringIndexOutOfBounds

EOI = "\x1a"  # stands for the end of the text, and is the same character within it
BOM = "\ufeff"
WHITESPACE = frozenset(" \t\b\f\n\r")

# Tokens, by the names fastjson prints.
ERROR, INT, FLOAT, STRING, TRUE, FALSE, NULL, NEW = "error", "int", "float", "string", "true", "false", "null", "new"
IDENT, EOF, SET, TREE_SET, UNDEFINED, HEX = "ident", "EOF", "Set", "TreeSet", "undefined", "hex"
PUNCTUATION = frozenset("()[]{}:;.,")
# fmt: off
TOKEN_NUMBERS = {
    ERROR: 1, INT: 2, FLOAT: 3, STRING: 4, TRUE: 6, FALSE: 7, NULL: 8, NEW: 9, "(": 10, ")": 11, "{": 12, "}": 13,
    "[": 14, "]": 15, ",": 16, ":": 17, IDENT: 18, EOF: 20, SET: 21, TREE_SET: 22, UNDEFINED: 23, ";": 24, ".": 25,
    HEX: 26,
}
# fmt: on

_WORDS = {"new": NEW, "true": TRUE, "false": FALSE, "undefined": UNDEFINED, "Set": SET, "TreeSet": TREE_SET}
ESCAPES = dict(zip("01234567btnvfFr\"'/\\", "\0\1\2\3\4\5\6\7\b\t\n\v\f\f\r\"'/\\", strict=True))
HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_PLAIN = re.compile(r"""[^"'\\\x1a]+""")
_AFTER_WORD = WHITESPACE | set(",}]") | {EOI}


class FastjsonError(RocketMQError):
    """com.alibaba.fastjson.JSONException: text that fastjson 1.2 does not read."""

    java_class = "com.alibaba.fastjson.JSONException"


class Scanner:
    """The reading position of one text: the character ``ch`` at ``bp``, and the last token."""

    def __init__(self, text: str) -> None:
        """text in UTF-16 units (see fastjson.utf16). The first character is read, no token yet."""
        self.text = text
        self.len = len(text)
        self.bp = -1
        self.pos = 0
        self.token = ""
        self.np = 0  # where the last literal begins
        self.sp = 0  # its length
        self.string = ""  # the last string, without quotes and escapes
        self.ch = ""
        if self.next() == BOM:
            self.next()

    def char_at(self, index: int) -> str:
        """The character there, EOI past the end."""
        return self.text[index] if index < self.len else EOI

    def next(self) -> str:
        """Go one character on, also past the end."""
        self.bp += 1
        self.ch = self.text[self.bp] if self.bp < self.len else EOI
        return self.ch

    def is_eof(self) -> bool:
        """Whether nothing follows; an EOI as the last character counts as nothing."""
        return self.bp == self.len or (self.ch == EOI and self.bp + 1 >= self.len)

    def info(self) -> str:
        """Where in which text, for messages."""
        if self.bp > self.len:
            raise StringIndexOutOfBounds(f"String index out of range: {self.len}")
        before = self.text[: self.bp]
        line = before.count("\n") + 1
        # A line break counts as the first column of the line it opens.
        column = self.bp - before.rfind("\n") + 1 if line > 1 else self.bp + 1
        return f"pos {self.bp}, line {line}, column {column}{self.text[:65535]}"

    def skip_whitespace(self) -> None:
        """Pass over white space and comments."""
        while True:
            if self.ch in WHITESPACE:
                self.next()
            elif self.ch == "/":
                self.skip_comment()
            else:
                return

    def skip_comment(self) -> None:
        """Pass over the comment that begins with the "/" here."""
        opened = self.next()
        if opened == "/":
            while self.next() not in ("\n", EOI):
                pass
            if self.ch == "\n":
                self.next()
        elif opened == "*":
            self.next()
            while self.ch != EOI:
                star = self.ch == "*"
                self.next()
                if star and self.ch == "/":
                    self.next()
                    return
        else:
            raise FastjsonError("invalid comment")

    def escape_u(self) -> str:
        """The character of four hexadecimal digits."""
        digits = self.next() + self.next() + self.next() + self.next()
        return chr(parse_int(digits, 16) & 0xFFFF)

    def scan_string(self) -> None:
        """A string in double quotes, from the quote at ``ch``."""
        self.scan_quoted('"')

    def scan_quoted(self, quote: str) -> None:
        """A string from the quote at ``ch`` to the next one; within it, an EOI is a character."""
        self.np = self.bp
        parts = []
        while (ch := self.next()) != quote:
            if ch == EOI and self.is_eof():
                raise self._unclosed(quote, ch)
            parts.append(self._escape_in_string(quote) if ch == "\\" else self._plain_run(ch))
        self.string = "".join(parts)
        self.sp = len(self.string)
        self.token = STRING
        self.next()

    def _plain_run(self, ch: str) -> str:
        """``ch``, and what follows up to the next character that means something in a string."""
        run = _PLAIN.match(self.text, self.bp)
        if run is None:
            return ch
        self.bp = run.end() - 1
        self.ch = self.text[self.bp]
        return run[0]

    def _escape_in_string(self, quote: str) -> str:
        ch = self.next()
        if ch in ESCAPES:
            return ESCAPES[ch]
        if ch == "x":
            digits = self.next() + self.next()
            if not HEX_DIGITS.issuperset(digits):
                raise FastjsonError(f"invalid escape character \\x{digits}")
            return chr(int(digits, 16))
        if ch == "u":
            return self.escape_u()
        raise self._unclosed(quote, ch)

    @staticmethod
    def _unclosed(quote: str, ch: str) -> FastjsonError:
        return FastjsonError(f"unclosed string : {ch}" if quote == '"' else "unclosed single-quote string")

    def is_ref(self) -> bool:
        """Whether the last string is $ref, written plainly."""
        return self.sp == 4 and self.text[self.np + 1 : self.np + 5] == "$ref"

    def scan_word(self, word: str, token: str) -> None:
        """The word true or false, and what may stand after it."""
        for letter in word:
            if self.ch != letter:
                raise FastjsonError(f"error parse {word}")
            self.next()
        if self.ch not in _AFTER_WORD and self.ch not in ":/":
            raise FastjsonError(f"scan {word} error")
        self.token = token

    def scan_null_or_new(self, accept_colon: bool = True) -> None:
        """The word null or new; a colon after null only where it may be a name."""
        word = "null" if self.next() == "u" else "new"
        for letter in word[1:]:
            if self.ch != letter:
                raise FastjsonError(f"error parse {word}")
            self.next()
        if self.ch not in _AFTER_WORD and not (word == "null" and self.ch == ":" and accept_colon):
            raise FastjsonError(f"scan {word} error")
        self.token = word

    def scan_ident(self) -> None:
        """Letters and digits of any script, the first unseen: a word with a meaning, or an IDENT."""
        self.np = self.bp - 1
        self.sp += 1
        while self.next().isalnum():
            self.sp += 1
        ident = self.text[self.np + 1 : self.np + 1 + self.sp]
        self.string = ident
        self.token = NULL if ident.lower() == "null" else _WORDS.get(ident, IDENT)

    def scan_hex(self) -> None:
        """Bytes as x'1F': upper-case digits."""
        if self.next() != "'":
            raise FastjsonError(f"illegal state. {self.ch}")
        self.np = self.bp
        if self.next() != "'":
            while (ch := self.next()) != "'":
                if not ("0" <= ch <= "9" or "A" <= ch <= "F"):
                    raise FastjsonError(f"illegal state. {ch}")
                self.sp += 1
            self.sp += 1
        self.next()
        self.token = HEX

    def _skip_digits(self) -> None:
        while "0" <= self.ch <= "9":
            self.next()

    def scan_number(self) -> None:
        """An INT or FLOAT from ``ch`` on: sign, digits, fraction, exponent and a type's letter, each optional."""
        self.np = self.bp
        self.token = INT
        if self.ch == "-":
            self.next()
        self._skip_digits()
        if self.ch == ".":
            self.token = FLOAT
            self.next()
            self._skip_digits()
        if self.ch in ("L", "S", "B"):
            self.next()
        elif self.ch in ("F", "D"):
            self.token = FLOAT
            self.next()
        elif self.ch in ("e", "E"):
            self.token = FLOAT
            if self.next() in ("+", "-"):
                self.next()
            self._skip_digits()
            if self.ch in ("F", "D"):
                self.next()
        self.sp = self.bp - self.np

    def number(self) -> str:
        """The last number as written."""
        return self.text[self.np : self.np + self.sp]
