"""The results of the tasks of a pass, merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from mqreplay.decisions.group_status import merged_status
from mqreplay.replay.tasks import Files, Part

MERGED_AT_ONCE = 8  # parts of a frame


@dataclass(frozen=True)
class Merged:
    """The results of the tasks of a pass."""

    parts: Sequence[Part]

    def each(self, name: str) -> list[pl.DataFrame]:
        """Return a frame of each task in order."""
        return [part.frames[name] for part in self.parts if name in part.frames]

    def frame(self, name: str) -> pl.DataFrame:
        """Return the frames of all tasks as one."""
        return pl.concat(self.each(name))

    def files(self) -> Files:
        """Return the files of each gold table."""
        made: Files = {}
        for part in self.parts:
            for table, files in part.files.items():
                made.setdefault(table, []).extend(files)
        return made


def with_status_merged(parts: Iterable[Part]) -> list[Part]:
    """Return the parts, with the groups' status merged into the first: each shard has most groups and windows."""
    made: list[Part] = []
    status: list[pl.DataFrame] = []
    for part in parts:
        status.append(part.frames.pop("status"))
        if len(status) == MERGED_AT_ONCE:
            status = [merged_status(status)]
        made.append(part)
    made[0].frames["status"] = merged_status(status)
    return made
