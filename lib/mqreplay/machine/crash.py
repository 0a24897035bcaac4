"""Report of an unexpected error: one line for the terminal, and a log file with the details.

Standard library only, and loaded before the run: it must work on a full disk and with too many open files.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from mqreplay import __version__
from mqreplay.machine.java_output import output_of_java
from mqreplay.machine.log_folder import log_folders
from mqreplay.machine.machine_failures import DEEPEST, MACHINE, Failure, described, error_chain
from mqreplay.words.errors import OwnDiskError
from mqreplay.words.printable import printable, scheme_alone, without_secrets

LONGEST_CRASH_TEXT = 200  # characters of an error's own text that the terminal shows
SECRET = re.compile(
    r"(?i)((?:password|passwd|secret|token|credential|access[._-]?key)[\w.\-]*[\"']?\s*[=:]\s*)[^\s,;\"']+"
)


NO_JAVA = Failure(
    r"JAVA_GATEWAY_EXITED|Java gateway process exited",
    "Java did not start",
    "run it with --engine local, which needs no Java, or see `mqreplay doctor`, which checks Java",
)
JAVA_DIED = Failure(
    r"Py4JNetworkError|Answer from Java side is empty|An error occurred while trying to connect to the Java server|"
    r"Error while (sending|receiving)|ConnectionRefusedError|ConnectionResetError|BrokenPipeError",
    "Java ended",
    "see whether memory was short (`dmesg` names a process that was killed), and run it again",
)


def crash_line(error: BaseException, arguments: Sequence[str], warehouse: str | None) -> str:
    """Return the line for the terminal, after the rest was written to a log file."""
    failure, cause = failure_of(error.__cause__ or error if isinstance(error, OwnDiskError) else error)
    folders = [*([warehouse] if warehouse else []), tempfile.gettempdir()]
    places = error.folder if isinstance(error, OwnDiskError) else " and ".join(folders)
    if failure is None:
        happened, do = (
            "an error that mqreplay did not expect",
            "run it again; if it fails again, report it with the log",
        )
    else:
        happened, do = failure.happened, failure.do.format(places=places)
    with suppress(Exception):
        log = write_log(error, arguments, warehouse)
        where = f"log: {log}" if log is not None else "no log could be written"
        return f"{happened} ({cause}); nothing stored before is lost; {do}; {where}"
    return f"{happened} ({cause}); nothing stored before is lost; {do}; no log could be written"


def failure_of(error: BaseException) -> tuple[Failure | None, str]:
    """Return the known failure of the error (None if it is not known), and its cause in a few words.

    >>> failure, cause = failure_of(OSError(28, "No space left on device", "/w"))
    >>> failure.happened, cause
    ('the disk is full', "OSError: [Errno 28] No space left on device: '/w'")
    >>> failure_of(KeyError("kind"))
    (None, "KeyError: 'kind'")
    """
    causes = list(_causes(error))
    for failure in (*MACHINE, NO_JAVA):
        for cause in causes:
            if re.search(failure.words, cause):
                return failure, _short(
                    _line_with(failure.words, cause) if failure is not NO_JAVA else _first_of_java(cause)
                )
    if any(re.search(JAVA_DIED.words, cause) for cause in causes):
        java = "\n".join(output_of_java())
        why = next((failure for failure in MACHINE if re.search(failure.words, java)), None)
        return (JAVA_DIED, _short(causes[0])) if why is None else (why, _short(_line_with(why.words, java)))
    return None, _short(causes[-1])


def is_of_machine(error: BaseException) -> bool:
    """Return whether the machine failed, and not the request."""
    return failure_of(error)[0] is not None


def _causes(error: BaseException) -> Iterator[str]:
    """Yield the error as text, then its causes in Python and Java, down to the innermost one."""
    for cause in error_chain(error):
        yield described(cause)
        yield from _java_causes(cause)


def java_exceptions(error: BaseException) -> Iterator[Any]:
    """Yield the Java exception that an error carries, and its causes; none if Java has ended."""
    with suppress(Exception):
        cause, depth = _java_exception(error), 0
        while cause is not None and depth < DEEPEST:
            yield cause
            cause, depth = cause.getCause(), depth + 1


def _java_causes(error: BaseException) -> list[str]:
    found: list[str] = []
    with suppress(Exception):
        for cause in java_exceptions(error):
            found.append(str(cause.toString()))
    return found


def _java_exception(error: BaseException) -> Any:
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _line_with(words: str, text: str) -> str:
    return next((line for line in text.splitlines() if re.search(words, line)), text)


def _first_of_java(otherwise: str) -> str:
    lines = [line for line in output_of_java() if line.strip()]
    return lines[0] if lines else otherwise


def _short(text: str) -> str:
    line = _without_secrets(next((line.strip() for line in text.splitlines() if line.strip()), "no text"))
    return line if len(line) <= LONGEST_CRASH_TEXT else f"{line[: LONGEST_CRASH_TEXT - 3]}..."


def write_log(error: BaseException, arguments: Sequence[str], warehouse: str | None) -> Path | None:
    """Write the details of the error to a log; return the file, or None if no folder can be written."""
    now = dt.datetime.now(dt.UTC)
    text = "\n".join(_log_lines(error, arguments, now)) + "\n"
    for address in _channels(arguments):
        text = text.replace(printable(address), scheme_alone(address))
    for folder in log_folders(warehouse):
        path = folder / f"mqreplay-{now:%Y%m%dT%H%M%SZ}-{os.getpid()}.log"
        try:
            folder.mkdir(exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except OSError:
            continue
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            return path
        except OSError:  # the disk is full: half a log would mislead
            path.unlink(missing_ok=True)
    return None


def _log_lines(error: BaseException, arguments: Sequence[str], now: dt.datetime) -> Iterator[str]:
    yield f"time: {now:%Y-%m-%d %H:%M:%S} UTC"
    yield f"mqreplay: {__version__}"
    yield f"python: {platform.python_version()} on {platform.platform()}"
    for package in ("pyspark", "delta-spark", "great-expectations", "pyarrow"):
        with suppress(metadata.PackageNotFoundError):
            yield f"{package}: {metadata.version(package)}"
    yield f"command: {' '.join(map(_without_secrets, map(printable, arguments)))}"
    yield "error:"
    yield from _indented(traceback.format_exception(error))
    java = _java_stack(error)
    if java:
        yield "error in Java:"
        yield from _indented([java])
    yield "last lines from Java and its Python workers:"
    yield from _indented(output_of_java())


def _channels(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the addresses of --notify: any part of them may be a secret."""
    for before, argument in zip(("", *arguments), arguments, strict=False):
        option, _, value = argument.partition("=")
        for address in (argument if before == "--notify" else "", value if option == "--notify" else ""):
            if "://" in address:
                yield address


def _java_stack(error: BaseException) -> str:
    with suppress(Exception):
        cause = _java_exception(error)
        if cause is not None:
            from py4j.protocol import Py4JJavaError  # already loaded if there is a Java

            return str(Py4JJavaError("", cause)).strip()
    return ""


def _indented(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of texts, indented, so that a name with a line feed cannot imitate a line of the log."""
    for text in texts:
        for line in text.split("\n"):
            if line.strip():
                yield f"  {_without_secrets(printable(line.expandtabs(4)))}"


def _without_secrets(text: str) -> str:
    """Return the text without passwords, keys and tokens.

    >>> _without_secrets("fs.s3a.secret.key=abc https://me:pw@host/x")
    'fs.s3a.secret.key=*** https://me:***@host/x'
    """
    return SECRET.sub(r"\1***", without_secrets(text))
