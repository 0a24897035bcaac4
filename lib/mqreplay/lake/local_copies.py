"""Rows of tables as files in the temporary folder, beside the tables: whoever has them need not ask Spark for them."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_files import TableFile

Between = tuple[dt.date, dt.date]  # days, both included


@dataclass
class Copy:
    """All rows of a cluster (None: of all), of some days (None: of all). Each file has rows of one partition."""

    cluster: str | None
    between: Between | None
    files: list[TableFile]

    def has(self, cluster: str | None, between: Between | None) -> bool:
        """Return whether the copy has all rows of the cluster and days; None means all."""
        if self.cluster is not None and cluster != self.cluster:
            return False
        if self.between is None:
            return True
        return between is not None and self.between[0] <= between[0] and between[1] <= self.between[1]

    def replace(self, replaced: RowFilter | None, files: Sequence[TableFile]) -> None:
        """Replace the files of whole partitions, if any, by those files that belong to the copy."""
        if replaced is not None:
            self.files = [file for file in self.files if not replaced.may_have(file.cluster, file.day, file.day)]
        self.files += [file for file in files if self.has(file.cluster, None if file.day is None else (file.day,) * 2)]


class LocalCopies:
    """The copies of all tables. A file that is in no copy any more is removed."""

    def __init__(self) -> None:
        self._copies: dict[str, list[Copy]] = defaultdict(list)

    def files(self, name: str, cluster: str | None, between: Between | None) -> list[TableFile] | None:
        """Return the files of a copy that has all these rows, and maybe others; None without one."""
        return next((copy.files for copy in self._copies[name] if copy.has(cluster, between)), None)

    def keep(self, name: str, copy: Copy) -> None:
        """Keep a copy of the table as it is now."""
        self._copies[name].append(copy)

    def replace(self, name: str, replaced: RowFilter | None, files: Sequence[TableFile]) -> None:
        """Follow a commit that replaced whole partitions, if any, by the rows of these files."""
        before = self._paths(name) | {file.path for file in files}
        for copy in self._copies[name]:
            copy.replace(replaced, files)
        remove_files(before - self._paths(name))

    def forget(self, name: str, cluster: str | None = None) -> None:
        """Follow a commit of unknown rows, of one cluster or of any."""
        before = self._paths(name)
        self._copies[name] = [
            copy for copy in self._copies[name] if None not in (cluster, copy.cluster) and copy.cluster != cluster
        ]
        remove_files(before - self._paths(name))

    def _paths(self, name: str) -> set[str]:
        return {file.path for copy in self._copies[name] for file in copy.files}


def remove_files(paths: Iterable[str]) -> None:
    """Remove the files that are still there."""
    for path in paths:
        Path(path).unlink(missing_ok=True)
