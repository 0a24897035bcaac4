"""Text to tokens as fastjson 1.2 sees it: what a broker accepts when it starts, and in which words it refuses.

Not JSON: bare and single-quoted names, comments, `+1`, `1L`, octal-looking escapes, stray control characters.
The lexer holds one character and one token ahead; which of the two a rule looks at decides what is let pass,
so both are kept here as fastjson keeps them. A character is a UTF-16 unit. Follows JSONLexerBase and
JSONScanner.
"""

from __future__ import annotations

from mqreplay.decode.java_number import parse_int
from mqreplay.errors import ArrayIndexOutOfBounds, FastjsonError, StringIndexOutOfBounds

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

# What nextToken(expect) takes without looking further.
_TAKEN = {"{": "{[", ",": ",}]", INT: "[{", STRING: "[{", "[": "[{", "]": "]"}
_WORDS = {"new": NEW, "true": TRUE, "false": FALSE, "undefined": UNDEFINED, "Set": SET, "TreeSet": TREE_SET}
_ESCAPES = dict(zip("01234567btnvfFr\"'/\\", "\0\1\2\3\4\5\6\7\b\t\n\v\f\f\r\"'/\\", strict=True))
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_AFTER_WORD = WHITESPACE | set(",}]") | {EOI}
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_FIRST_OF_NAME = _LETTERS | {"$"}
_REST_OF_NAME = _LETTERS | frozenset("0123456789")


class Lexer:
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

    def next_token(self) -> None:
        """Read one token. A character that begins none is an ERROR; control characters are passed over."""
        self.sp = 0
        while True:
            self.pos = self.bp
            ch = self.ch
            if ch == "/":
                self._skip_comment()
            elif ch in WHITESPACE:
                self.next()
            elif self._scan(ch):
                return
            elif self.is_eof():
                if self.token == EOF:
                    raise FastjsonError("EOF error")
                self.token = EOF
                self.pos = self.bp
                return
            else:
                self.next()
                if ch > "\x1f" and ch != "\x7f":
                    self.token = ERROR
                    return

    def _scan(self, ch: str) -> bool:
        """Read the token that begins with ch, if one does."""
        if ch == '"' or ch == "'":
            self._scan_string(ch)
        elif ch in PUNCTUATION:
            self.next()
            self.token = ch
        elif "0" <= ch <= "9" or ch == "-":
            self.scan_number()
        elif ch == "+":
            self.next()
            self.scan_number()
        elif ch == "t":
            self._scan_word("true", TRUE)
        elif ch == "f":
            self._scan_word("false", FALSE)
        elif ch == "n":
            self._scan_null_or_new()
        elif ch in ("T", "N", "S", "u"):
            self._scan_ident()
        elif ch == "x":
            self._scan_hex()
        else:
            return False
        return True

    def next_token_expecting(self, expect: str) -> None:
        """Read one token, with a short cut for the one expected: only white space may stand before it."""
        self.sp = 0
        if expect == IDENT:
            self._next_ident()
            return
        while True:
            ch = self.ch
            if ch in _TAKEN.get(expect, ""):
                self.token = ch
                self.next()
            elif ch == EOI and expect in (",", "]", EOF):
                self.token = EOF
            elif ch == "n" and expect == ",":
                self._scan_null_or_new(accept_colon=False)
            elif ch in WHITESPACE:
                self.next()
                continue
            else:
                self.next_token()
            return

    def next_token_with_colon(self) -> None:
        """Read ':' and the token after it; only white space may stand before the colon."""
        self.sp = 0
        while self.ch in WHITESPACE:
            self.next()
        if self.ch != ":":
            raise FastjsonError(f"not match : - {self.ch}, info : {self.info()}")
        self.next()
        self.next_token()

    def _next_ident(self) -> None:
        while self.ch in WHITESPACE:
            self.next()
        if self.ch in ("_", "$") or self.ch.isalpha():
            self._scan_ident()
        else:
            self.next_token()

    def skip_whitespace(self) -> None:
        """Pass over white space and comments."""
        while True:
            if self.ch in WHITESPACE:
                self.next()
            elif self.ch == "/":
                self._skip_comment()
            else:
                return

    def _skip_comment(self) -> None:
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

    def scan_name(self) -> str | None:
        """An object's next name, quoted or bare; None, with the token set, at '}', ',' and the end."""
        self.skip_whitespace()
        ch = self.ch
        if ch == '"' or ch == "'":
            return self.scan_quoted_name(ch)
        if ch in ("}", ","):
            self.next()
            self.token = ch
            return None
        if ch == EOI:
            self.token = EOF
            return None
        return self.scan_bare_name()

    def scan_quoted_name(self, quote: str) -> str:
        """A name from the quote at ``ch`` (whatever stands there) to the next one."""
        self.np = self.bp
        chars = []
        while (ch := self.next()) != quote:
            if ch == EOI:
                raise FastjsonError("unclosed.str")
            chars.append(self._escape_in_name() if ch == "\\" else ch)
        self.token = STRING
        self.sp = 0
        self.next()
        return "".join(chars)

    def scan_bare_name(self) -> str | None:
        """A name of letters, digits, '_', '$' first, and anything beyond U+00FF; None for the name null."""
        if self.token == ERROR and self.pos == 0 and self.bp == 1:
            self.bp = 0
        if self.ch < "\u0100" and self.ch not in _FIRST_OF_NAME:
            raise FastjsonError(f"illegal identifier : {self.ch}{self.info()}")
        self.np = self.bp
        first = self.ch
        while self.next() >= "\u0100" or self.ch in _REST_OF_NAME:
            pass
        self.sp = self.bp - self.np
        self.token = IDENT
        name = first + self.text[self.np + 1 : self.bp]
        return None if self.text[self.np : self.bp] == "null" else name

    def _escape_in_name(self) -> str:
        ch = self.next()
        if ch in _ESCAPES:
            return _ESCAPES[ch]
        if ch == "x":
            value = 0
            for digit in (self.next(), self.next()):
                # The table of hexadecimal digits ends at 'f'; within it, what is no digit counts 0.
                if digit > "f":
                    raise ArrayIndexOutOfBounds(f"Index {ord(digit)} out of bounds for length 103")
                value = value * 16 + (int(digit, 16) if digit in _HEX_DIGITS else 0)
            return chr(value)
        if ch == "u":
            return self._escape_u()
        raise FastjsonError("unclosed.str.lit")

    def _escape_u(self) -> str:
        digits = self.next() + self.next() + self.next() + self.next()
        return chr(parse_int(digits, 16) & 0xFFFF)

    def scan_string(self) -> None:
        """A string in double quotes, from the quote at ``ch``."""
        self._scan_string('"')

    def _scan_string(self, quote: str) -> None:
        self.np = self.bp
        chars = []
        while (ch := self.next()) != quote:
            if ch == EOI and self.is_eof():
                raise self._unclosed(quote, ch)
            chars.append(self._escape_in_string(quote) if ch == "\\" else ch)
        self.string = "".join(chars)
        self.sp = len(chars)
        self.token = STRING
        self.next()

    def _escape_in_string(self, quote: str) -> str:
        ch = self.next()
        if ch in _ESCAPES:
            return _ESCAPES[ch]
        if ch == "x":
            digits = self.next() + self.next()
            if not _HEX_DIGITS.issuperset(digits):
                raise FastjsonError(f"invalid escape character \\x{digits}")
            return chr(int(digits, 16))
        if ch == "u":
            return self._escape_u()
        raise self._unclosed(quote, ch)

    @staticmethod
    def _unclosed(quote: str, ch: str) -> FastjsonError:
        return FastjsonError(f"unclosed string : {ch}" if quote == '"' else "unclosed single-quote string")

    def is_ref(self) -> bool:
        """Whether the last string is $ref, written plainly."""
        return self.sp == 4 and self.text[self.np + 1 : self.np + 5] == "$ref"

    def _scan_word(self, word: str, token: str) -> None:
        for letter in word:
            if self.ch != letter:
                raise FastjsonError(f"error parse {word}")
            self.next()
        if self.ch not in _AFTER_WORD and self.ch not in ":/":
            raise FastjsonError(f"scan {word} error")
        self.token = token

    def _scan_null_or_new(self, accept_colon: bool = True) -> None:
        word = "null" if self.next() == "u" else "new"
        for letter in word[1:]:
            if self.ch != letter:
                raise FastjsonError(f"error parse {word}")
            self.next()
        if self.ch not in _AFTER_WORD and not (word == "null" and self.ch == ":" and accept_colon):
            raise FastjsonError(f"scan {word} error")
        self.token = word

    def _scan_ident(self) -> None:
        self.np = self.bp - 1
        self.sp += 1
        while self.next().isalnum():
            self.sp += 1
        ident = self.text[self.np + 1 : self.np + 1 + self.sp]
        self.string = ident
        self.token = NULL if ident.lower() == "null" else _WORDS.get(ident, IDENT)

    def _scan_hex(self) -> None:
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

    def match_field(self, name: str) -> bool:
        """If ``"name":`` stands here, go past it and read the value's first token. White space is passed either way."""
        field = f'"{name}":'
        while not self.text.startswith(field, self.bp):
            if self.ch not in WHITESPACE:
                return False
            self.next()
        self.bp += len(field)
        self.ch = self.char_at(self.bp)
        if self.ch in ("{", "["):
            self.token = self.ch
            self.next()
        elif self.text.startswith("Set[", self.bp):
            self.bp += 3
            self.ch = "["
            self.token = SET
        else:
            self.next_token()
        return True

    def is_blank_input(self) -> bool:
        """Whether the text is white space up to its end or its first EOI, which is then the token."""
        blank = all(ch in WHITESPACE for ch in self.text.partition(EOI)[0])
        if blank:
            self.token = EOF
        return blank
