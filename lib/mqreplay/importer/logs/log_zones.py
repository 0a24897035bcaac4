"""The time zone of a log, from the user, from times in its lines, or from its layout; with a check."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from mqreplay.decode.logs.line_time import (
    CHINA,
    FIXED_ZONE,
    LOCAL,
    STATED,
    Clock,
    epoch_ms_of,
    utc_offset_ms,
    zone_text,
)
from mqreplay.importer.logs.log_files import Process

Span = tuple[int, int]  # first and last epoch ms
_MARGIN_MS: Final = 10 * 60 * 1000
_LEAST_GAP_MS: Final = 2 * 60 * 60 * 1000  # a shorter gap is mostly that between two steps of an operator
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True)
class Zone:
    """The conversion of the times of a layout to epoch ms. ``why`` is for the report; ``proven``: lines show it."""

    epoch_ms: Callable[[int], int]
    why: str
    proven: bool


STATED_ZONE: Final = Zone(lambda wall_ms: wall_ms, "in its lines", True)


@dataclass(frozen=True)
class Zones:
    """The zone of each layout of the lines of one process."""

    by_layout: dict[str, Zone]

    def epoch_ms(self, clock: Clock) -> int:
        """Return the instant of a line, epoch ms."""
        return self.by_layout[clock.layout].epoch_ms(clock.wall_ms)

    @property
    def why(self) -> str:
        """Return what shows the zones, for the report."""
        return "; ".join(dict.fromkeys(zone.why for zone in self.by_layout.values()))


def zones_of(process: Process, chosen: dt.tzinfo | None, of_clients: int | None) -> tuple[Zones, list[str]]:
    """Return the zones of a process's lines, and notes where the lines contradict them.

    ``chosen`` is the user's --time-zone. ``of_clients`` is the offset, in ms, that all other clients' logs show.
    """
    found = {layout: _zone_of(process, layout, chosen, of_clients) for layout in process.layouts}
    notes = [note for _, note in found.values() if note]
    return Zones({layout: zone for layout, (zone, _) in found.items()}), notes


def _zone_of(
    process: Process, layout: str, chosen: dt.tzinfo | None, of_clients: int | None
) -> tuple[Zone, str | None]:
    if layout == STATED:
        return STATED_ZONE, None
    offsets = [
        (wall_ms, offset)
        for wall_ms, epoch_ms in process.written(layout)
        if (offset := utc_offset_ms(wall_ms, epoch_ms)) is not None
    ]
    fixed = layout == FIXED_ZONE
    if chosen is not None:
        zone = Zone(lambda wall_ms: epoch_ms_of(wall_ms, chosen), f"{chosen} by --time-zone", False)
        return zone, _contradiction(process, zone, offsets)
    if offsets:
        seen = sorted({zone_text(offset) for _, offset in offsets})
        zone = Zone(_by_lines(offsets), f"{', '.join(seen)} by the times in its lines", True)
        odd = fixed and any(offset != 8 * _HOUR_MS for _, offset in offsets)
        return zone, f"{process.name} is not in RocketMQ's usual +08:00 but in {', '.join(seen)}" if odd else None
    if fixed:
        return Zone(lambda wall_ms: epoch_ms_of(wall_ms, CHINA), "+08:00 by RocketMQ's own log settings", False), None
    if of_clients is not None:
        return Zone(
            lambda wall_ms: wall_ms - of_clients, f"{zone_text(of_clients)} as in other clients' logs", False
        ), None
    return Zone(lambda wall_ms: wall_ms, "UTC, because nothing shows the host's time zone", False), None


def client_offset(found: Sequence[Process]) -> int | None:
    """Return the offset from UTC in ms on which all logs in their hosts' own zones agree; None if they do not."""
    offsets = {utc_offset_ms(*pair) for process in found for pair in process.written(LOCAL)[-50:]} - {None}
    return offsets.pop() if len(offsets) == 1 else None


def misfits(process: Process, zones: Zones, evidence: Span | None) -> list[str]:
    """Return a note if lines and the other files do not overlap in time, with the zones in which they would."""
    found = (_misfit(process, layout, zone, evidence) for layout, zone in zones.by_layout.items())
    return [note for note in found if note]


def _misfit(process: Process, layout: str, zone: Zone, evidence: Span | None) -> str | None:
    if evidence is None or zone.proven:
        return None
    walls = process.span(layout)
    first, last = zone.epoch_ms(walls[0]), zone.epoch_ms(walls[1])
    if max(evidence[0] - last, first - evidence[1]) < _LEAST_GAP_MS:
        return None
    shifts = [hours for hours in range(-12, 15) if _meet(_shifted(walls, hours * _HOUR_MS), evidence)]
    fits = ", ".join(zone_text(hours * _HOUR_MS) for hours in shifts)
    difference = (
        f"{process.name} is from {_utc(first)} to {_utc(last)} UTC, in {zone.why}; all other imported files are from "
    )
    end = (
        f"they would overlap in {fits}; give --time-zone if they are of the same hours"
        if fits
        else "they overlap in no time zone"
    )
    return f"{difference}{_utc(evidence[0])} to {_utc(evidence[1])} UTC: {end}"


def _by_lines(offsets: list[tuple[int, int]]) -> Callable[[int], int]:
    """Return the conversion by the offset of the last line that shows one: daylight saving time changes it."""
    changes = [offsets[0], *(now for before, now in pairwise(offsets) if before[1] != now[1])]
    starts = [wall_ms for wall_ms, _ in changes]
    return lambda wall_ms: wall_ms - changes[max(bisect_right(starts, wall_ms) - 1, 0)][1]


def _contradiction(process: Process, zone: Zone, offsets: list[tuple[int, int]]) -> str | None:
    odd = {offset for wall_ms, offset in offsets if wall_ms - zone.epoch_ms(wall_ms) != offset}
    if not odd:
        return None
    shown = ", ".join(sorted(map(zone_text, odd)))
    return f"{process.name} is read in {zone.why}, but the times in its own lines show {shown}: leave --time-zone out"


def _shifted(walls: Span, offset_ms: int) -> Span:
    return walls[0] - offset_ms, walls[1] - offset_ms


def _meet(one: Span, other: Span) -> bool:
    return one[0] - _MARGIN_MS <= other[1] and other[0] - _MARGIN_MS <= one[1]


def _utc(epoch_ms: int) -> str:
    return (dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=epoch_ms)).isoformat(" ", "seconds")
