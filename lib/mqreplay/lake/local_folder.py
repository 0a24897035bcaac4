"""Check folders given by a user: a folder of this machine that Python, Java and Spark can name, or a URI of a store."""

from __future__ import annotations

import locale
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from mqreplay.errors import InputError
from mqreplay.lake.files import OBJECT_SCHEMES, SCHEMES, is_remote, scheme_of

# As s3://bucket/x, file:/x or dbfs:/x. "./a:b" and "a:b" are folders.
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
LONGEST_PART = 255  # bytes, of Linux's file systems
LONGEST_PATH = 3000  # bytes, of 4,095: paths below the folder are longer
UTF8_LOCALE = "C.UTF-8"
REPLACED = "?\ufffd"  # Java's replacement for a character that its character set lacks


def check_folders(warehouse: str, recordings: Sequence[str] = ()) -> None:
    """Raise InputError if a folder cannot be used, or if the warehouse and a recording overlap.

    A warehouse inside a recording would be part of it: each run would find the files of the last run as new ones.
    """
    root = folder(warehouse, "warehouse")
    for recording in (folder(each, "recording") for each in recordings):
        if _is_inside(root, recording):
            raise InputError(f"warehouse {root} is inside the recording {recording}; give --warehouse another folder")
        if _is_inside(recording, root):
            raise InputError(f"recording {recording} is inside the warehouse {root}; give --warehouse another folder")


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def folder(text: str, what: str) -> str:
    """Return the absolute path of a user's folder with links resolved, or a URI without a slash at its end.

    ``what`` names it in errors. The folder need not exist. Raises InputError.
    """
    return _uri(text, what) if is_remote(text) and scheme_of(text) != "file" else str(local_folder(text, what))


def _uri(text: str, what: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in SCHEMES:
        raise InputError(
            f"{what} {text!r}: no store of this scheme is supported; there are {', '.join(SCHEMES)}, and local folders"
        )
    parts = rest.rstrip("/").split("/")
    if not parts[0]:
        name = "bucket" if scheme.lower() in OBJECT_SCHEMES else "host"
        raise InputError(f"{what} {text!r} names no {name}: write {scheme}://{name.upper()}/FOLDER")
    if any(part in ("", ".", "..") for part in parts) or any(unicodedata.category(c) in ("Cc", "Cs") for c in rest):
        raise InputError(f"{what} {text!r} has an empty part, '.', '..' or a control character; write its plain path")
    return f"{scheme.lower()}://{'/'.join(parts)}"


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
    """Raise InputError if the ``command``, which reads files of this machine, is given the URI of a store."""
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
