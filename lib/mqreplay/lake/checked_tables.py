"""Existing tables as the last run left them: a table that lost commits, or whose log changed, is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from mqreplay.lake.contract import Contract
from mqreplay.lake.data_checksums import check_files
from mqreplay.lake.delta_table import UnreadableLog, close_table
from mqreplay.lake.files import for_each, joined
from mqreplay.lake.table_files import Snapshot, read_snapshot, snapshot
from mqreplay.lake.table_log import all_commits, last_version, remove_checkpoints
from mqreplay.lake.table_versions import Noted, TableVersions, damaged_table
from mqreplay.words.errors import ContractError


class CheckedTables:
    """The tables under ``root``: which exist, and the files of each."""

    def __init__(self, root: str, contracts: Mapping[str, Contract]) -> None:
        """Take the folder ``root``, which need not exist."""
        self.root, self.contracts = root, contracts
        self._noted = TableVersions(root)
        self._changed: set[str] = set()  # tables with commits of this run that are not noted

    def location(self, name: str) -> str:
        """Return the folder of the table."""
        return joined(self.root, name.replace(".", "/"))

    def version(self, name: str) -> int | None:
        """Return the last version of the table; None without a table. No table is read."""
        return last_version(self.location(name))

    def exists(self, name: str) -> bool:
        """Return whether the table has a version. A folder whose writer died before version 0 is not a table.

        Raises DamagedTable if the table has lost the version that the last run left.
        """
        noted = self._noted.of(name)  # before the version: a run that works meanwhile raises both
        version = self.version(name)
        if noted is not None and (version is None or version < noted.version):
            noted = self._noted.anew(name)  # a run may have rolled the table back
        if noted is not None and (version is None or version < noted.version):
            now = "it is missing" if version is None else f"it has version {version}"
            raise damaged_table(self.location(name), f"the last run left version {noted.version}, and {now}")
        return version is not None

    def snapshot(self, name: str) -> Snapshot:
        """Return the last version of an existing table. Raises DamagedTable if its log has changed since the last run.

        A damaged checkpoint is not needed while all commits are there.
        """
        place = self.location(name)
        try:
            found = snapshot(place)
            if self._is_as_noted(name, found):
                return found
            error: ContractError = damaged_table(place, "its log lists other files than the last run left")
        except UnreadableLog as unreadable:
            error = damaged_table(place, f"its log cannot be read ({unreadable.reason})")
        with all_commits(place) as copy, suppress(ContractError):
            if copy is not None and self._is_as_noted(name, found := read_snapshot(copy)):
                return found
        raise error

    def _is_as_noted(self, name: str, found: Snapshot) -> bool:
        noted = self._noted.of(name)
        if noted is not None and not _is_same_or_later(found, noted):
            noted = self._noted.anew(name)
        return noted is None or _is_same_or_later(found, noted)

    def check(self, name: str, *, checksums: bool) -> None:
        """Raise DamagedTable if the table is not as the last run left it. Without ``checksums`` no data is read."""
        if self.exists(name):
            check_files(self.location(name), self.snapshot(name).files, checksums=checksums)

    def mend_log(self, name: str) -> None:
        """Remove the checkpoints of an existing table if one is damaged and all commits are there."""
        place, found = self.location(name), self.snapshot(name)
        with suppress(UnreadableLog):
            if snapshot(place).digest == found.digest:
                return
        remove_checkpoints(place)
        close_table(place)

    def note_versions(self, names: Iterable[str] = ()) -> None:
        """Note the versions of the tables that this run has changed, and those of ``names``."""
        changed = self._changed | set(names)
        if changed and not self._noted.is_kept():
            changed |= set(self.contracts)
        self._changed -= changed
        if changed:
            self._noted.write(for_each(self._version_to_note, sorted(changed), self.root))

    def _version_to_note(self, name: str) -> Noted | None:
        if self.version(name) is None:
            return None
        found = snapshot(self.location(name))
        return Noted(found.version, found.digest)


def _is_same_or_later(found: Snapshot, noted: Noted) -> bool:
    """Return whether a table may be the noted one: the listed name of a commit does not show that Delta reads it."""
    return found.digest == noted.digest if found.version == noted.version else found.version > noted.version
