"""Whether the tables of a warehouse have names in a catalog. A warehouse keeps the kind that it began with.

A journal of table versions, and the caches, are true for one kind only.
"""

from __future__ import annotations

from mqreplay.errors import InputError
from mqreplay.lake.existing import LAYERS
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.small_file import read_json, write_json

MARK = ".mqreplay.catalog"


def require_names(root: str, names: CatalogNames | None) -> None:
    """Note that the tables of a new warehouse have these names, or none. Raises InputError if it began otherwise."""
    begun = _begun_with(root)
    if begun is None and names is not None:
        if set(LAYERS) & set(files_of(root).names(root)):
            raise InputError(
                f"warehouse {root} was begun without --catalog, so its tables are read by path: leave out --catalog "
                "(mqreplay register gives them names), or give a new --warehouse"
            )
        write_json(joined(root, MARK), {"catalog": names.catalog, "prefix": names.prefix})
    elif begun is not None and begun != names:
        raise InputError(
            f"warehouse {root} was begun with {_options(begun)}, so its tables are written by these names: "
            "give the same, or a new --warehouse"
        )


def _begun_with(root: str) -> CatalogNames | None:
    path = joined(root, MARK)
    if files_of(path).info(path) is None:
        return None
    try:
        found = read_json(path)
        return CatalogNames(found["catalog"], found["prefix"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is damaged; give a new --warehouse and run the recordings again") from None


def _options(names: CatalogNames) -> str:
    return f"--catalog {names.catalog}" + (f" --prefix {names.prefix}" if names.prefix else "")
