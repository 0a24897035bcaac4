"""The coverage of a day's recordings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Recorded:
    """The coverage of the day's recordings: missing kinds of files, and the recorder's last instant.

    ``starts`` maps the instants after a gap to those from which the recording is certainly complete, with the slowest
    clock. ``clocks_reach``: how much earlier and later than the day the recordings go.
    """

    missing: Sequence[str]
    recorded_until: dt.datetime | None
    starts: Callable[[dt.timedelta], Mapping[dt.datetime, dt.datetime]]
    clocks_reach: dt.timedelta
