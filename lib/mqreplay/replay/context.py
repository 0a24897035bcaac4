"""What all passes of a day share: the day, the settings, and the small tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from mqreplay.replay.day import Day, Skew
from mqreplay.settings import Settings

Frames = Mapping[str, pl.DataFrame]  # small silver tables by name


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


@dataclass(frozen=True)
class ReplayContext:
    """The shared context of a day's passes: settings, and small tables by the recorder's clock.

    ``raw`` are the small tables with the clients' times; ``small`` is the same if no clock was wrong. ``starts`` maps
    the instants after a gap in the recording to those from which it is certainly complete.
    """

    day: Day
    settings: Settings
    starts: Mapping[dt.datetime, dt.datetime]
    raw: Frames
    small: Frames
    skew: Skew | None

    @property
    def skewed_clients(self) -> list[str]:
        """Return the clients with a wrong clock."""
        return [] if self.skew is None else self.skew.clients

    def with_tables(self, *names: str) -> ReplayContext:
        """Return the context with only these small tables: a pass gives each task only the tables that it reads."""
        raw, small = ({name: rows[name] for name in names} for rows in (self.raw, self.small))
        return replace(self, raw=raw, small=small)
