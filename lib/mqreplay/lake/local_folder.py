"""Check folders that a user names: folders of this machine that Python, Java and Spark can name, URIs, warehouses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from mqreplay.lake.files import files_of, is_remote
from mqreplay.lake.store_protocol import OBJECT_SCHEMES, SCHEMES
from mqreplay.machine.local_files import local_folder, permitted, scheme_of
from mqreplay.words.errors import InputError

UNUSABLE_NAME = re.compile(r"[%\\]")  # delta-rs parses a path as a URL
LAYERS = ("bronze", "silver", "gold")


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
    if not is_remote(path) and UNUSABLE_NAME.search(path):
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


def require_warehouse(root: str) -> None:
    """Raise InputError if there is no warehouse, before anything is read."""
    place = folder(root, "warehouse")
    with permitted(place):
        found = files_of(place).names(place)
        if not found and (is_remote(place) or not Path(place).is_dir()):
            raise InputError(f"warehouse {root} does not exist; run nightly with a recording first")
        if not set(LAYERS) & set(found):
            raise InputError(f"{root} is not a warehouse: it lacks {', '.join(LAYERS)}; run nightly with it first")
