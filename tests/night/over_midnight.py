"""Nights of some minutes each, over midnight, a day apart: each day has the end of one and the start of the next."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from night.cut import cut, first_instant
from night.later import DAY_MS, midnight_after, moved
from tests_shared import SAMPLE

SOURCE = SAMPLE / "orders-4.9.7"
GROUPS = {"crash-group", "reset-group"}
SINCE, UNTIL, MIDNIGHT = 500, 740, 110  # seconds of the recording; of the cut, at which midnight comes


def make_nights(folder: Path, number: int) -> list[Path]:
    """Write the recordings into the folder."""
    began = first_instant(SOURCE)
    plain = cut(SOURCE, folder / "plain", GROUPS, began + SINCE * 1000, began + UNTIL * 1000, every=2)
    by_ms, _ = midnight_after(plain, MIDNIGHT)
    return [moved(plain, folder / f"night-{n}", by_ms + n * DAY_MS) for n in range(number)]


def days_of_nights(nights: list[Path]) -> list[dt.date]:
    """Return the days of the recordings: one more than there are nights."""
    first = dt.datetime.fromtimestamp(first_instant(nights[0]) / 1000, dt.UTC).date()
    return [first + dt.timedelta(days=n) for n in range(len(nights) + 1)]
