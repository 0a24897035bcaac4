"""The lines of a file that may be a log: decoded, read, and counted by what became of them."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, cast

from mqreplay.decode.encodings import encoding_of
from mqreplay.decode.logs.line_time import MAX_LINE_BYTES, text_of_line
from mqreplay.decode.logs.log_line import LogLine, UnusableLine, read_log_line
from mqreplay.decode.logs.other_clients import other_client
from mqreplay.errors import DecodeError
from mqreplay.record.imports.files.sources import Source

NO_LINE: Final = "it has no line of a RocketMQ log"
OTHER: Final = "lines that no decision uses"
_HEAD_BYTES: Final = 4096
_LARGE: Final = 1 << 20  # bytes; a smaller file is read whatever it is
_CONTROLS: Final = bytes({*range(32)} - {*b"\t\n\r\x1b"})
_MOST_CONTROLS: Final = 0.08  # of the first bytes of a text; one in ten of random bytes
_SHOWN: Final = 120  # characters of an example
_LOG: Final = re.compile(r"\.(?:log|out)\b")


@dataclass
class LineCount:
    """How many lines were read and used, and how many not, by form. ``read`` is ``used`` and all of ``left_out``.

    ``examples`` has a line of each form. ``headed`` counts lines in RocketMQ's layouts without a fact.
    """

    read: int = 0
    used: int = 0
    headed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    trouble: str | None = None  # why a file could not be read to its end

    @property
    def of_rocketmq(self) -> bool:
        """Return whether a line is of RocketMQ, used or not."""
        return bool(self.used or self.headed or any(form in self.examples for form in self.left_out))

    def leave_out(self, form: str, place: str | None, text: str) -> None:
        """Count a line that is not used; ``place``: of an example, PATH:LINE."""
        self.left_out[form] += 1
        if place is not None:
            self.examples.setdefault(form, f"{place}: {text[:_SHOWN]!r}")

    def add(self, other: LineCount) -> None:
        """Add the count of another file."""
        self.read += other.read
        self.used += other.used
        self.headed += other.headed
        self.left_out += other.left_out
        self.examples = other.examples | self.examples

    def give_up(self, used: int, form: str) -> None:
        """Count lines that were used as left out after all."""
        self.used -= used
        self.left_out[form] += used

    def as_dict(self) -> dict[str, Any]:
        """Return the count for JSON."""
        forms = {name: count for name, count in sorted(self.left_out.items()) if count}
        return {"read": self.read, "used": self.used, "left_out": forms, "examples": self.examples}


def why_no_log(path: str, count: LineCount) -> str | None:
    """Return why no line of a file is evidence; None for a file that is no log, by its name and its lines.

    >>> why_no_log("app.log", LineCount(read=3))
    'it has no line of a RocketMQ log'
    >>> why_no_log("notes.txt", LineCount(read=3)) is None
    True
    """
    if not count.of_rocketmq and _LOG.search(path.rpartition("/")[2]) is None:
        return None
    if count.trouble is not None:
        return count.trouble
    if not count.read:
        return "it is empty"
    unusable = [form for form in count.left_out if form in count.examples]
    if unusable:
        examples = {form: count.examples[form].removeprefix(f"{path}:") for form in unusable}
        shown = "; ".join(f"{form} ({count.left_out[form]:,}), such as line {examples[form]}" for form in unusable)
        return f"no line of it can be used: {shown}"
    damaged = [form for form in count.left_out if form.startswith("damaged")]
    if damaged:
        return f"no line of it can be used: {', '.join(f'{form}: {count.left_out[form]:,}' for form in damaged)}"
    if count.headed:
        return "no decision uses this log of RocketMQ: no line of it says what a client or a broker did"
    return NO_LINE


def log_lines(source: Source, count: LineCount, digest: Any = None) -> Iterator[LogLine]:
    """Yield the lines of a file that have a time, with a fact or without. Every line is counted.

    ``digest``: a hash that is updated by the bytes of the lines.
    """
    for raw in _raw_lines(source, count, digest):
        count.read += 1
        place = f"{source.path}:{count.read}"
        foreign = False
        try:
            if isinstance(raw, str):
                text = raw.rstrip("\r\n")
            else:
                text, foreign = _text_of(raw)
            line = read_log_line(text)
        except UnusableLine as error:
            named = other_client(text) if error.code in ("no_date", "bad_message", "bad_queue") else None
            count.leave_out(named or error.form, place, text)
            continue
        except DecodeError as error:
            count.leave_out(f"damaged lines ({error.code})", None, "")
            continue
        if line is not None and line.fact is not None:
            count.used += 1
        elif line is not None and line.unread is not None:
            count.leave_out(line.unread, place, text)
        elif foreign:
            count.leave_out("damaged lines (not_utf8)", None, "")
        elif line is None and (named := other_client(text)) is not None:
            count.leave_out(named, place, text)
        else:
            count.headed += line is not None
            count.left_out[OTHER] += 1
        if line is not None:
            yield line


def _text_of(raw: bytes) -> tuple[str, bool]:
    """Return the text of a line, and whether it is not UTF-8: a JVM on a Chinese Windows writes GBK."""
    try:
        return text_of_line(raw), False
    except DecodeError as error:
        if error.code != "not_utf8":
            raise
        try:
            return raw.decode("gb18030").rstrip("\r\n"), True
        except UnicodeDecodeError:
            raise error from None


def _raw_lines(source: Source, count: LineCount, digest: Any) -> Iterator[bytes | str]:
    """Yield the lines of a file, as text if it is UTF-16; only the first bytes of an overlong line."""
    try:
        with source.open() as stream:
            stream = cast(io.BufferedReader, stream)
            encoding = encoding_of(stream.peek(_HEAD_BYTES))
            if source.size > _LARGE and _is_binary(stream.peek(_HEAD_BYTES)):
                count.trouble = "it is no text"
                return
            stream.read(encoding.mark_bytes)
            if encoding.codec == "utf-8":
                yield from _bounded(stream, digest)
            else:
                yield from _decoded(stream, encoding.codec, digest)
    except EOFError:
        count.trouble = "it is cut short; the lines before the cut were read"
    except DecodeError as error:
        count.trouble = error.detail


def _is_binary(head: bytes) -> bool:
    """Return whether a file is no text, by its first bytes, in UTF-8 or another encoding with bytes of ASCII.

    A log that was truncated while its writer had it open begins with zeros alone.
    """
    controls = len(head) - len(head.translate(None, _CONTROLS))
    is_text = encoding_of(head).codec != "utf-8" or not any(head)
    return not is_text and controls > _MOST_CONTROLS * len(head)


def _bounded(stream: BinaryIO, digest: Any) -> Iterator[bytes]:
    while line := stream.readline(MAX_LINE_BYTES + 1):
        whole = line.endswith(b"\n") or len(line) <= MAX_LINE_BYTES
        if digest is not None:
            digest.update(line)
        yield line
        while not whole:
            rest = stream.readline(MAX_LINE_BYTES + 1)
            whole = rest.endswith(b"\n") or not rest


def _decoded(stream: BinaryIO, codec: str, digest: Any) -> Iterator[str]:
    text = io.TextIOWrapper(stream, codec, "replace", newline="\n")
    while line := text.readline(MAX_LINE_BYTES + 1):
        if digest is not None:
            digest.update(line.encode("utf-8", "replace"))
        yield line
