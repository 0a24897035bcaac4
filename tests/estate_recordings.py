"""Small recordings of several clusters."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path

from night.cut import cut
from tests_shared import SAMPLE

SOURCE = SAMPLE / "bulk-5.3.3"
FIRST_MS, LAST_MS = 1795229270000, 1795229300000
CLUSTERS = ("a", "b", "c")
KINDS = ("pull_log", "offset_commits", "heartbeats", "consume_log", "routes")


def small_recording(folder: Path, cluster: str, kinds: Collection[str] = KINDS) -> Path:
    """Write 30 s of the sample into the folder, as a recording of the cluster; return the folder."""
    cut(SOURCE, folder, from_ms=FIRST_MS, to_ms=LAST_MS, every=3, kinds=kinds)
    described = json.loads((SOURCE / "brokers.json").read_text(encoding="utf-8"))
    text = json.dumps(described).replace(described["cluster"], cluster)
    (folder / "brokers.json").write_text(text, encoding="utf-8")
    return folder


def copied(recording: Path, folder: Path, cluster: str) -> Path:
    """Write the same recording as one of another cluster; return the folder."""
    shutil.copytree(recording, folder)
    described = (folder / "brokers.json").read_text(encoding="utf-8")
    text = described.replace(json.loads(described)["cluster"], cluster)
    (folder / "brokers.json").write_text(text, encoding="utf-8")
    return folder
