"""Compact tables that have names in a catalog, and remove files that no recent version needs: by Spark's commands."""

from __future__ import annotations

from mqreplay.lake.catalog_tables import CatalogTables


def sizes(tables: CatalogTables, name: str) -> tuple[int, int]:
    """Return the number of the table's files, and their bytes."""
    detail = tables.sql(name, f"DESCRIBE DETAIL {tables.table_name(name)}").collect()[0]
    return int(detail.numFiles), int(detail.sizeInBytes)


def compact(tables: CatalogTables, name: str) -> None:
    """Rewrite the small files of each partition, in one commit that changes no row."""
    tables.sql(name, f"OPTIMIZE {tables.table_name(name)}").collect()
    tables.changed(name)


def remove_unused(tables: CatalogTables, name: str, days: int, *, dry_run: bool = False) -> int:
    """Remove the files that no version of the last ``days`` days uses; return their number, at most 1,000 (VACUUM).

    With ``dry_run`` none is removed. Delta removes log entries at its checkpoints.
    """
    vacuum = f"VACUUM {tables.table_name(name)} RETAIN {24 * days} HOURS"
    unused = tables.sql(name, f"{vacuum} DRY RUN").count()
    if unused and not dry_run:
        tables.sql(name, vacuum).collect()
    return unused
