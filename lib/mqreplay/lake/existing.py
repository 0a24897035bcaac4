"""Check that a folder holds a warehouse."""

from __future__ import annotations

from pathlib import Path

from mqreplay.errors import InputError
from mqreplay.lake.files import files_of, is_remote
from mqreplay.lake.local_folder import folder
from mqreplay.local_files import permitted

LAYERS = ("bronze", "silver", "gold")


def require_warehouse(root: str) -> None:
    """Raise InputError if there is no warehouse, before anything is read."""
    place = folder(root, "warehouse")
    with permitted(place):
        found = files_of(place).names(place)
        if not found and (is_remote(place) or not Path(place).is_dir()):
            raise InputError(f"warehouse {root} does not exist; run nightly with a recording first")
        if not set(LAYERS) & set(found):
            raise InputError(f"{root} is not a warehouse: it lacks {', '.join(LAYERS)}; run nightly with it first")
