"""Parts of an estate's recording, as recordings of their own: the same files, by hard links."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .sizes import HOUR_MS, START_MS


def snapshots_of(recording: Path) -> Path:
    """The snapshots alone; made beside it, if it is not there."""
    alone = recording.with_name(f"{recording.name}-snapshots")
    if not alone.exists():
        shutil.copytree(recording / "snapshots", alone / "snapshots", copy_function=os.link)
        os.link(recording / "brokers.json", alone / "brokers.json")
    return alone


def first_hours(recording: Path, hours: int) -> Path:
    """What was recorded in the day's first hours: as many brokers, groups and queues; made beside it, if not there.

    It has no answers.json: the known places of trouble are spread over the day.
    """
    part = recording.with_name(f"{recording.name}-{hours}h")
    if part.exists():
        return part
    (part / "snapshots").mkdir(parents=True)
    os.link(recording / "brokers.json", part / "brokers.json")
    for path in recording.glob("*.jsonl.gz"):
        if int(path.name.split(".")[1][:2]) < hours:  # HourlyLines names them
            os.link(path, part / path.name)
    for moment in recording.glob("snapshots/*/*"):
        if int(moment.name) < START_MS + hours * HOUR_MS:
            shutil.copytree(moment, part / moment.relative_to(recording), copy_function=os.link)
    return part
