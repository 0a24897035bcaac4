"""Check folders that a user names: of this machine, with a name that Python, Java and Spark can read, or a URI."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mqreplay.errors import InputError
from mqreplay.lake.files import OBJECT_SCHEMES, SCHEMES, is_remote, scheme_of
from mqreplay.local_files import local_folder

# As s3://bucket/x, file:/x or dbfs:/x. "./a:b" and "a:b" are folders.
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
LONGEST_PART = 255  # bytes, of Linux's file systems
LONGEST_PATH = 3000  # bytes, of 4,095: paths below the folder are longer
UTF8_LOCALE = "C.UTF-8"
REPLACED = "?\ufffd"  # Java's replacement for a character that its character set lacks


NO_TABLES = re.compile(r"[%\\]")  # delta-rs parses a path as a URL


def check_folders(warehouse: str, recordings: Sequence[str] = ()) -> None:
    """Raise InputError if a folder cannot be used, or if the warehouse and a recording overlap.

    A warehouse inside a recording would be part of it: each run would find the files of the last run as new ones.
    """
    root = folder(warehouse, "warehouse")
    check_table_folder(root, "warehouse ")
    for recording in (folder(each, "recording") for each in recordings):
        if _is_inside(root, recording):
            raise InputError(f"warehouse {root} is inside the recording {recording}; give --warehouse another folder")
        if _is_inside(recording, root):
            raise InputError(f"recording {recording} is inside the warehouse {root}; give --warehouse another folder")


def check_table_folder(path: str, what: str = "") -> None:
    """Raise InputError for a folder of this machine that cannot hold Delta tables. ``what`` names it in the error."""
    if not is_remote(path) and NO_TABLES.search(path):
        raise InputError(f"{what}{path} has a % or \\ in its name, which Delta tables cannot have; use another folder")


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
