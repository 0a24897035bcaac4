"""One small recording at three times of a night, each with more in it; a run finds it in its folder, or moved."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mqreplay.settings import load_settings
from night.cut import cut
from tests_shared import SAMPLE, made_once, run

SOURCE = SAMPLE / "bulk-5.3.3"
KINDS = ("pull_log", "offset_commits", "heartbeats")
FIRST_MS, LAST_MS = 1795229270000, 1795229400000
PULLS = (1, 2, 2)  # thirds of the pulls that each state has: the second state changes a file that the first has


@dataclass(frozen=True)
class State:
    """What the recording holds (0 to 2, each more than the one before), and whether its folder was moved."""

    content: int
    moved: bool = False

    def __str__(self) -> str:
        return f"content {self.content}{', moved' if self.moved else ''}"


@dataclass(frozen=True)
class Recordings:
    """The folder that keeps the recording's contents while no run reads them."""

    folder: Path

    @contextmanager
    def placed(self, state: State) -> Iterator[str]:
        """Put the recording where a run finds it, and return its folder."""
        kept, now = self._kept(state.content), self.folder / ("elsewhere" if state.moved else "night")
        kept.rename(now)
        try:
            yield str(now)
        finally:
            now.rename(kept)

    def _kept(self, content: int) -> Path:
        return self.folder / f"content-{content}"


def make_recordings(folder: Path) -> Recordings:
    """Write the contents into the folder.

    The second has one file changed, one that is new, snapshots that come late, and later snapshots; the third has one
    more kind of file, and again late and later snapshots.
    """
    contents = [folder / f"content-{number}" for number in range(3)]
    cut(SOURCE, contents[2], from_ms=FIRST_MS, to_ms=LAST_MS, every=3, kinds=(*KINDS, "consume_log", "routes"))
    shutil.copy(SOURCE / "brokers.json", contents[2])
    for number in (1, 0):
        later, now = contents[number + 1], contents[number]
        shutil.copytree(later, now)
        (now / ("routes.jsonl.gz" if number else "consume_log.jsonl.gz")).unlink()
        for origin in sorted((now / "snapshots").iterdir()):
            moments = sorted(origin.iterdir())
            for missing in [*moments[2:3], *moments[len(moments) * 3 // 4 :]]:
                shutil.rmtree(missing)
    for thirds, content in zip(PULLS, contents, strict=True):
        path = content / "pull_log.jsonl.gz"
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        path.write_bytes(gzip.compress(b"".join(lines[: len(lines) * thirds // 3]), 1, mtime=0))
    return Recordings(folder)


def small_night() -> tuple[str, str]:
    """Return the third content, and a warehouse of its night on this machine; tests must write to neither."""

    def judge(folder: Path) -> None:
        (folder / "recordings").mkdir()
        make_recordings(folder / "recordings")
        recordings = [str(folder / "recordings" / "content-2")]
        run("nightly", str(folder / "warehouse"), load_settings(), lambda what: None, recordings=recordings)

    folder = made_once("small-night", judge, SOURCE)
    return str(folder / "recordings" / "content-2"), str(folder / "warehouse")
