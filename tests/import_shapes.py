"""Shapes of evidence that operators reported, imported as the command does: what came of each folder.

Each folder of SHAPES is what an operator has on disk. Its sources are public reports; details are replaced.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqreplay.cli.command_line import main
from mqreplay.decode.kinds import KINDS

SHAPES = Path(__file__).parent / "importer" / "shapes"
CHANGED_MS = 1_795_612_222_000  # the last change of every file: git keeps no times. 2026-11-25T13:10:22Z

Record = dict[str, Any]


def shape(name: str, *options: str) -> Any:
    """Give a test the fixture ``imported``: the import of a folder of SHAPES with these options of the command."""
    return pytest.mark.parametrize("imported", [(name, options)], indirect=True, ids=[name])


@dataclass(frozen=True)
class Imported:
    """The result of `mqreplay import`: its exit status, its report, what it said on stderr, and the recording."""

    status: int
    report: dict[str, Any]
    error: str
    recording: Path

    @property
    def words(self) -> str:
        """All that the user is told of the given files, without the advice on other evidence."""
        report = self.report
        told = [f"{path}: {why}" for path, why in self.refused] + report["notes"] + list(report["left_out"])
        return "\n".join([*told, *report.get("lines", {}).get("left_out", ()), self.error])

    @property
    def lines(self) -> dict[str, Any]:
        """How many lines of logs were read and used, and how many of each form were left out."""
        return self.report["lines"]

    @property
    def refused(self) -> list[tuple[str, str]]:
        """(path below the given folder, reason) of the files that were not recognised, a path perhaps twice."""
        return [(_below(one["path"]), one["why"]) for one in self.report["not_recognised"]]

    @property
    def recognised(self) -> dict[str, str]:
        """What each recognised file is, by its path below the given folder; without the copies of a broker's files."""
        return {_below(path): one["what"] for one in self.report["recognised"] for path in one["path"].split(", ")}

    @property
    def stems(self) -> list[str]:
        """The kinds of records that were written."""
        return sorted(path.name.partition(".")[0] for path in self.recording.glob("*.jsonl*"))

    def records(self, stem: str) -> list[Record]:
        """The records of a kind as they were written, after decoding each as ingest does."""
        return [record for record, _ in self._read(stem)]

    def rows(self, stem: str) -> list[Record]:
        """The records of a kind as ingest reads them."""
        return [row for _, row in self._read(stem)]

    def everything(self) -> list[Record]:
        """All records of all kinds."""
        return [record for stem in self.stems for record in self.records(stem)]

    def brokers(self) -> Record:
        """The content of brokers.json."""
        return json.loads((self.recording / "brokers.json").read_text(encoding="utf-8"))

    def copies(self, name: str) -> dict[tuple[str, int], bytes]:
        """The copies of a file by source, such as broker-a-0, and time in epoch ms."""
        found = (self.recording / "snapshots").glob(f"*/*/{name}")
        return {(path.parts[-3], int(path.parts[-2])): path.read_bytes() for path in found}

    def _read(self, stem: str) -> Iterator[tuple[Record, Record]]:
        for path in sorted(self.recording.glob(f"{stem}.jsonl*")):
            data = path.read_bytes()
            for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
                yield json.loads(line), KINDS[stem].decode(line)


def import_shape(name: str, folder: Path, *options: str, part: str = "") -> Imported:
    """Import a folder of SHAPES, or only a folder ``part`` of it, into ``folder``/recording."""
    given = folder / "in"
    shutil.copytree(SHAPES / name / part, given)
    for path in given.rglob("*"):
        os.utime(path, ns=(CHANGED_MS * 10**6, CHANGED_MS * 10**6))
    return import_folder(given, folder / "recording", *options)


def import_folder(given: Path, recording: Path, *options: str) -> Imported:
    """Run `mqreplay import --json` in this process. What is not an error of our own is raised."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = main(["import", str(given), "--out", str(recording), "--json", *options])
    assert status in (0, 2), error.getvalue()
    assert "crash" not in error.getvalue()
    assert recording.exists() == (status == 0)
    return Imported(status, json.loads(out.getvalue()), error.getvalue(), recording)


def ms(text: str) -> int:
    """Epoch ms of an ISO 8601 time with its zone."""
    return round(dt.datetime.fromisoformat(text).timestamp() * 1000)


def numbers(value: object) -> set[int]:
    """All whole numbers in a record."""
    if isinstance(value, dict):
        return set().union(*map(numbers, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(numbers, value))
    return {value} if type(value) is int else set()


def _below(path: str) -> str:
    return path.partition("/in/")[2] or path
