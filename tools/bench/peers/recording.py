"""The files of a recording, by kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A broker's consumerOffset.json, each with its epoch ms, in time order."""

    source_name: str
    broker_name: str
    broker_id: int
    moments: list[int]
    paths: list[str]


def sources(recording: Path) -> list[Source]:
    """Every broker that has snapshots."""
    found = []
    for folder in sorted((recording / "snapshots").iterdir()):
        name, _, broker_id = folder.name.rpartition("-")
        moments = sorted(int(entry.name) for entry in folder.iterdir())
        paths = [f"{folder}/{ts}/consumerOffset.json" for ts in moments]
        found.append(Source(folder.name, name, int(broker_id), moments, paths))
    return found


def lines_of(recording: Path, stem: str) -> list[Path]:
    """The gzipped JSONL files of one kind, in order."""
    return sorted(recording.glob(f"{stem}.*jsonl.gz"))


def cluster_of(recording: Path) -> str:
    """The cluster's name."""
    return json.loads((recording / "brokers.json").read_bytes())["cluster"]
