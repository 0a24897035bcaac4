"""Check that a folder holds a warehouse."""

from __future__ import annotations

from mqreplay.errors import InputError
from mqreplay.lake.local_folder import local_folder

LAYERS = ("bronze", "silver", "gold")


def require_warehouse(root: str) -> None:
    """Raise InputError if there is no warehouse, before anything is read."""
    folder = local_folder(root, "warehouse")
    try:
        if not folder.is_dir():
            raise InputError(f"warehouse {root} does not exist; run nightly with a recording first")
        if not any((folder / layer).is_dir() for layer in LAYERS):
            raise InputError(f"{root} is not a warehouse: it lacks {', '.join(LAYERS)}; run nightly with it first")
    except PermissionError as error:
        raise InputError(f"warehouse {root} cannot be read: {error.strerror}") from None
