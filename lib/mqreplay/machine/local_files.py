"""Files and folders of this machine: check a user's folder, open a regular file, and name errors and files.

A path that begins with a scheme such as ``s3://`` belongs to a store, see mqreplay.lake.files.
"""

from __future__ import annotations

import errno
import locale
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BufferedReader
from pathlib import Path

from mqreplay.words.errors import InputError, UnreadableInput

STORE_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://")
# As s3://bucket/x, file:/x or dbfs:/x. "./a:b" and "a:b" are folders.
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
LONGEST_PART = 255  # bytes, of Linux's file systems
LONGEST_PATH = 3000  # bytes, of 4,095: paths below the folder are longer
UTF8_LOCALE = "C.UTF-8"
REPLACED = "?\ufffd"  # Java's replacement for a character that its character set lacks
# Errors of this machine while it opens or reads a file: the file may be in order.
MACHINE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
NOT_REGULAR = "it is a pipe, socket, device or folder, not a file"
OUTSIDE = "a link leads out of the recording"
# A pipe without a writer must not block, and a terminal must not become the controlling one.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def is_remote(path: str) -> bool:
    """Return whether a path is a URI of a store.

    >>> is_remote("s3://bucket/x"), is_remote("/x"), is_remote("a:b")
    (True, False, False)
    """
    return STORE_URI.match(path) is not None


def scheme_of(path: str) -> str:
    """Return the scheme of a URI; empty for a path of this machine."""
    match = STORE_URI.match(path)
    return match["scheme"].lower() if match else ""


def local_folder(text: str, what: str) -> Path:
    """Return the absolute path of a user's folder with links resolved; ``what`` names it in errors.

    Raises InputError for a path that is not local, or a name that Java cannot use. The folder need not exist.
    """
    if URI.match(text):
        scheme, _, rest = text.partition(":")
        local = "/" + rest.lstrip("/") if scheme == "file" else f"./{text}"
        raise InputError(f"{what} {text!r} is a URI, but a local folder is needed here; write {local} for it")
    try:
        path = Path(text).resolve()
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} {text!r}: the name of its folder is not UTF-8; rename it") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a NUL
        raise InputError(f"{what} {text!r} is not a valid folder name: {error}") from None
    if not text or any(unicodedata.category(c) == "Cc" for c in str(path)):
        raise InputError(f"{what} {text!r} is empty or has a control character; rename the folder")
    _check_length(path, what)
    _check_java(str(path), what)
    return path


def check_on_disk(paths: Iterable[str], command: str) -> None:
    """Raise InputError if the ``command``, which reads files of this machine, gets the URI of a store."""
    for path in paths:
        if is_remote(path):
            raise InputError(f"mqreplay {command} reads files of this machine: copy {path} to a local folder first")


def output_folder(text: str) -> Path:
    """Return the folder of --out, see local_folder. Raises InputError."""
    if is_remote(text):
        raise InputError(f"--out {text!r} is a URI: make the recording in a local folder and copy it")
    return local_folder(text, "--out")


def is_utf8(encoding: str) -> bool:
    """Return whether the character set is UTF-8."""
    return encoding.lower().replace("-", "").replace("_", "") == "utf8"


def _check_java(path: str, what: str) -> None:
    """Check Java's character set under spark-submit, where Java starts before Python."""
    encoding = locale.getencoding()
    if "PYSPARK_GATEWAY_PORT" not in os.environ or is_utf8(encoding):
        return
    if not path.isascii() or any(character in path for character in REPLACED):
        raise InputError(
            f"{what} {path!r}: Java was started with the character set {encoding} and cannot name it; "
            f"set LC_ALL={UTF8_LOCALE} for spark-submit"
        )


def _check_length(path: Path, what: str) -> None:
    longest = max(len(part.encode()) for part in path.parts)
    if longest > LONGEST_PART or len(str(path).encode()) > LONGEST_PATH:
        raise InputError(f"{what} {str(path)[:80]}... is too long for the file system; choose another name")


def open_regular(path: str, root: str | None = None) -> BufferedReader:
    """Open a regular file inside the folder ``root``, links resolved; None: anywhere. Raises OSError.

    A listed file may have been replaced since, so both are checked on the open file.
    """
    # Devices are not opened: for some of them that has an effect.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
    descriptor = os.open(path, _FLAGS)
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR)
        if root is not None and not _is_inside(descriptor, path, root, opened):
            raise OSError(errno.EPERM, OUTSIDE)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def is_within(resolved: str, root: str) -> bool:
    """Return whether a resolved path is inside the resolved folder ``root``.

    >>> is_within("/a/b", "/a"), is_within("/ab", "/a"), is_within("/a", "/a"), is_within("/b", "/")
    (True, False, True, True)
    """
    return resolved == root or resolved.startswith(root.rstrip("/") + "/")


def _is_inside(descriptor: int, path: str, root: str, opened: os.stat_result) -> bool:
    """Return whether the open file is the one that ``path`` names without a link, inside ``root``."""
    with suppress(OSError):  # Linux knows where an open file is: one question instead of one for each part of the path
        if is_within(os.readlink(f"/proc/self/fd/{descriptor}"), _resolved(root)):
            return True
    resolved = os.path.realpath(path)
    return is_within(resolved, _resolved(root)) and os.path.samestat(os.lstat(resolved), opened)


@lru_cache(maxsize=64)
def _resolved(folder: str) -> str:
    return os.path.realpath(folder)


def trouble_of(error: OSError) -> str:
    """Return the system's error message for an unreadable file, without the file name."""
    return error.strerror or str(error)


def unreadable(error: OSError) -> UnreadableInput:
    """Return the refusal of an input file. Raises the error itself if this machine lacks open files or memory.

    >>> unreadable(PermissionError(13, "Permission denied")).detail
    'it cannot be read: Permission denied'
    """
    if error.errno in MACHINE_ERRORS:
        raise error
    return UnreadableInput(trouble_of(error))


@contextmanager
def permitted(path: str) -> Iterator[None]:
    """Within, a file or folder that may not be read is an InputError. ``path`` is named if the system names none."""
    try:
        yield
    except PermissionError as error:
        closed = path if is_remote(path) else closed_part(str(error.filename or path))
        raise InputError(
            f"{closed} cannot be read: {trouble_of(error)}; change its mode or owner, or run mqreplay as a user who "
            "may read it"
        ) from None


def closed_part(path: str) -> str:
    """Return the folder that keeps this user from the path; the path itself if none of its folders does."""
    above = (str(each) for each in reversed(Path(path).parents))
    return next((each for each in above if not os.access(each, os.X_OK, effective_ids=True)), path)


def escaped(name: bytes) -> str:
    r"""Return a file's name so that UTF-8 can write it.

    >>> print(escaped(b"caf\xe9"))
    caf\xe9
    """
    return name.decode("utf-8", "backslashreplace")
