"""The lines of a file that may be a log: decoded, read, and counted by what became of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, cast

from mqreplay.decode.logs.broker_facts import StartFailed
from mqreplay.decode.logs.client_facts import ListenerThrew
from mqreplay.decode.logs.exceptions import Thrown, cause_in, exception_in, exceptions_in, joined, request_in
from mqreplay.decode.logs.line_time import MAX_LINE_BYTES, text_of_line
from mqreplay.decode.logs.log_line import (
    LOGS,
    LogLine,
    UnusableLine,
    begins_record,
    has_level,
    read_log_line,
    with_exception,
)
from mqreplay.decode.logs.other_clients import GRPC, other_client
from mqreplay.decode.logs.remoting_log import RequestFailed
from mqreplay.decode.text import encoding_of
from mqreplay.importer.files.layout import base_name
from mqreplay.importer.files.other_files import log_of_thread, unused_log, unused_message
from mqreplay.importer.files.sources import Source
from mqreplay.importer.logs.line_count import ERRORS, OTHER, LineCount
from mqreplay.words.errors import DecodeError

_HEAD_BYTES: Final = 4096
_LARGE: Final = 1 << 20  # bytes; a smaller file is read whatever it is
_CONTROLS: Final = bytes({*range(32)} - {*b"\t\n\r\x1b"})
_MOST_CONTROLS: Final = 0.08  # of the first bytes of a text; one in ten of random bytes
_OTHER_REQUEST: Final = "show neither a send nor a pull (give rocketmq_client.log of the client, and broker.log)"


@dataclass
class _Record:
    """A line of a log, and the exceptions in it and below it: the causes of what it reports."""

    line: LogLine | None  # None: a line of an application
    text: str
    chain: list[Thrown] = field(default_factory=list)
    request: str | None = None  # that the stack shows
    form: str | None = None  # under which the line was counted
    forms: list[str] = field(default_factory=list)  # the lines with exceptions, too
    place: str | None = None  # PATH:LINE of the first exception

    def take_cause(self, cause: str | None, count: LineCount) -> None:
        """Take the first exception below a line: it completes a fact that has a cause, else it is shown with it."""
        if cause is not None and self.form is not None:
            count.add_cause(self.form, cause)
        match self.line:
            case LogLine(fact=StartFailed() | RequestFailed() | ListenerThrew() as fact) if (
                cause and fact.cause is None
            ):
                self.line = self.line._replace(fact=fact._replace(cause=cause))
                count.left_out[OTHER] -= 1
                count.used += 1

    def finish(self, count: LineCount) -> LogLine | None:
        """Return the line with what the exceptions say; None for a line without a time. Correct the count."""
        if not self.chain:
            return self.line
        thrown = joined(self.chain, self.request)
        whole = with_exception(self.line, self.text, thrown)
        is_unnamed = self.form is not None and self.form.startswith((OTHER, *ERRORS.values()))
        is_moved = is_unnamed and (whole is not None or not self.forms)
        forms = [*self.forms, *([self.form] if is_moved and self.form is not None else [])]
        for form in forms:
            count.left_out[form] -= 1
        if whole is not None:
            count.used += len(forms)
            return whole
        is_other = thrown.request is None or self.line is not None
        named = unused_message(thrown.text) if is_other else None
        lack = _OTHER_REQUEST if is_other else "have no date"
        form = named or f"exceptions of RocketMQ's clients, {thrown.java_class}, that {lack}"
        for _ in forms:
            count.leave_out(form, self.place, thrown.text)
        return self.line


def log_lines(source: Source, count: LineCount, digest: Any = None) -> Iterator[LogLine]:
    """Yield the lines of a file that have a time, with a fact or without. Every line is counted.

    ``digest``: a hash that is updated by the bytes of the lines.
    """
    record = _Record(None, "")
    for text, line, form in _counted_lines(source, count, digest):
        exceptions = exceptions_in(text)
        is_below = line is None and (not has_level(text[: exceptions[0][1]]) if exceptions else not begins_record(text))
        if is_below and not exceptions:
            record.request = record.request or (request_in(text) if record.chain else None)
            record.take_cause(cause_in(text), count)
            continue
        if not is_below:
            if (whole := record.finish(count)) is not None:
                yield whole
            record = _Record(line, text, form=form)
        if exceptions:
            record.chain += [thrown for thrown, _ in exceptions]
            record.request = record.request or request_in(text)
            record.place = record.place or f"{source.path}:{count.read}"
            if is_below and form is not None:
                record.forms.append(form)
    if (whole := record.finish(count)) is not None:
        yield whole


def _counted_lines(source: Source, count: LineCount, digest: Any) -> Iterator[tuple[str, LogLine | None, str | None]]:
    """Yield the text of each line, what it holds by itself, and the form under which it is left out (None: used)."""
    name = base_name(source.path)
    is_of_rocketmq = name.partition(".")[0] in LOGS or unused_log(name) is not None
    for raw in _raw_lines(source, count, digest):
        count.read += 1
        place = f"{source.path}:{count.read}"
        text, line, foreign = "", None, False
        form: str | None
        try:
            if isinstance(raw, str):
                text = raw.rstrip("\r\n")
            else:
                text, foreign = _text_of(raw)
            line = read_log_line(text)
        except UnusableLine as error:
            named = other_client(text) if error.code in ("no_date", "bad_message", "bad_queue") else None
            form = named or error.form
            count.leave_out(form, place, text)
        except DecodeError as error:
            form = f"damaged lines ({error.code})"
            count.leave_out(form, None, "")
        else:
            form = _form_of(text, line, foreign)
            if form is None:
                count.used += 1
            else:
                if form == OTHER and line is not None:
                    count.headed += 1
                    log = log_of_thread(line.thread)
                    count.logs.update([] if log is None else [log.words])
                    if is_of_rocketmq or log is not None:
                        head = text[: len(text) - len(line.message)]
                        is_of_grpc = other_client(text) == GRPC
                        form = GRPC if is_of_grpc else count.error_form(head, line.message) or OTHER
                is_plain = form == OTHER or form.startswith("damaged")
                count.leave_out(form, None if is_plain else place, text)
        yield text, line, form


def _form_of(text: str, line: LogLine | None, foreign: bool) -> str | None:
    """Return the form under which a line is left out; None for a line with a fact."""
    if line is not None and line.fact is not None:
        return None
    message = text if line is None else line.message
    is_exception = "  DESC: " in message or (line is None and exception_in(message) is not None)
    if not is_exception and (form := unused_message(message)) is not None:
        return form
    if foreign:
        return "damaged lines (not_utf8)"
    return (other_client(text) if line is None else None) or OTHER


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
