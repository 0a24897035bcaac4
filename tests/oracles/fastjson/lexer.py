"""Text to tokens as fastjson 1.2 sees it: what a broker accepts when it starts, and in which words it refuses.

Not JSON: bare and single-quoted names, comments, `+1`, `1L`, octal-looking escapes, stray control characters.
The lexer holds one character and one token ahead; which of the two a rule looks at decides what is let pass,
so both are kept here as fastjson keeps them. Follows JSONLexerBase and JSONScanner.
"""

from __future__ import annotations

from mqreplay.words.errors import ArrayIndexOutOfBounds
from oracles.fastjson.scan import (
    EOF,
    EOI,
    ERROR,
    ESCAPES,
    FALSE,
    HEX_DIGITS,
    IDENT,
    INT,
    PUNCTUATION,
    SET,
    STRING,
    TRUE,
    WHITESPACE,
    FastjsonError,
    Scanner,
)

# What nextToken(expect) takes without looking further.
_TAKEN = {"{": "{[", ",": ",}]", INT: "[{", STRING: "[{", "[": "[{", "]": "]"}
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_FIRST_OF_NAME = _LETTERS | {"$"}
_REST_OF_NAME = _LETTERS | frozenset("0123456789")


class Lexer(Scanner):
    """The tokens of one text."""

    def next_token(self) -> None:
        """Read one token. A character that begins none is an ERROR; control characters are passed over."""
        self.sp = 0
        while True:
            self.pos = self.bp
            ch = self.ch
            if ch == "/":
                self.skip_comment()
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
            self.scan_quoted(ch)
        elif ch in PUNCTUATION:
            self.next()
            self.token = ch
        elif "0" <= ch <= "9" or ch == "-":
            self.scan_number()
        elif ch == "+":
            self.next()
            self.scan_number()
        elif ch == "t":
            self.scan_word("true", TRUE)
        elif ch == "f":
            self.scan_word("false", FALSE)
        elif ch == "n":
            self.scan_null_or_new()
        elif ch in ("T", "N", "S", "u"):
            self.scan_ident()
        elif ch == "x":
            self.scan_hex()
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
                self.scan_null_or_new(accept_colon=False)
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
            self.scan_ident()
        else:
            self.next_token()

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
        parts = []
        while (ch := self.next()) != quote:
            if ch == EOI:
                raise FastjsonError("unclosed.str")
            parts.append(self._escape_in_name() if ch == "\\" else self._plain_run(ch))
        self.token = STRING
        self.sp = 0
        self.next()
        return "".join(parts)

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
        if ch in ESCAPES:
            return ESCAPES[ch]
        if ch == "x":
            value = 0
            for digit in (self.next(), self.next()):
                # The table of hexadecimal digits ends at 'f'; within it, what is no digit counts 0.
                if digit > "f":
                    raise ArrayIndexOutOfBounds(f"Index {ord(digit)} out of bounds for length 103")
                value = value * 16 + (int(digit, 16) if digit in HEX_DIGITS else 0)
            return chr(value)
        if ch == "u":
            return self.escape_u()
        raise FastjsonError("unclosed.str.lit")

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
