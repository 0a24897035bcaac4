"""Check folders given by a user: local, and with a name that Python, Java and Spark can use."""

from __future__ import annotations

import locale
import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from mqreplay.errors import InputError

# As s3a://bucket/x, file:/x or dbfs:/x. "./a:b" and "a:b" are folders.
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
LONGEST_PART = 255  # bytes, of Linux's file systems
LONGEST_PATH = 3000  # bytes, of 4,095: paths below the folder are longer
UTF8_LOCALE = "C.UTF-8"
REPLACED = "?\ufffd"  # Java's replacement for a character that its character set lacks


def check_folders(warehouse: str, recordings: Sequence[str] = ()) -> None:
    """Raise InputError if a folder cannot be used, or if the warehouse and a recording overlap.

    A warehouse inside a recording would be part of it: each run would find the files of the last run as new ones.
    """
    root = local_folder(warehouse, "warehouse")
    for recording in (local_folder(each, "recording") for each in recordings):
        if root == recording or recording in root.parents:
            raise InputError(f"warehouse {root} is inside the recording {recording}; give --warehouse another folder")
        if root in recording.parents:
            raise InputError(f"recording {recording} is inside the warehouse {root}; give --warehouse another folder")


def local_folder(text: str, what: str) -> Path:
    """Return the absolute path of a user's folder with links resolved; ``what`` names it in errors.

    Raises InputError for a path that is not local, or a name that Java cannot use. The folder need not exist.
    """
    if URI.match(text):
        scheme, _, rest = text.partition(":")
        local = "/" + rest.lstrip("/") if scheme == "file" else f"./{text}"
        raise InputError(
            f"{what} {text!r} is a URI: only folders of this machine are supported; write {local} for a local folder"
        )
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
