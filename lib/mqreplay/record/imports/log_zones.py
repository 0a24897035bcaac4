"""The time zone of a log, from the user, from times in its lines, or from its layout; with a check."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from mqreplay.decode.logs.line_time import CHINA, FIXED_ZONE, epoch_ms_of, utc_offset_ms, zone_text
from mqreplay.record.imports.log_files import Process

Span = tuple[int, int]  # first and last epoch ms
_MARGIN_MS: Final = 10 * 60 * 1000
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True)
class Zone:
    """The conversion of a log's times to epoch ms. ``why`` is for the report; ``proven``: lines show the zone."""

    epoch_ms: Callable[[int], int]
    why: str
    proven: bool


def zone_of(process: Process, chosen: dt.tzinfo | None, of_clients: int | None) -> tuple[Zone, str | None]:
    """Return the zone of a log, and a note if its own lines contradict it.

    ``chosen`` is the user's --time-zone. ``of_clients`` is the offset, in ms, that all other clients' logs show.
    """
    offsets = [
        (wall_ms, offset)
        for wall_ms, epoch_ms in process.written
        if (offset := utc_offset_ms(wall_ms, epoch_ms)) is not None
    ]
    fixed = process.layout == FIXED_ZONE
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
    """Return the offset from UTC in ms on which all clients' logs agree; None if they do not."""
    offsets = {
        utc_offset_ms(*pair) for process in found if process.layout != FIXED_ZONE for pair in process.written[-50:]
    } - {None}
    return offsets.pop() if len(offsets) == 1 else None


def misfit(process: Process, zone: Zone, evidence: Span | None) -> str | None:
    """Return a note if the log and the other files do not overlap in time, with the zones in which they would."""
    if evidence is None or zone.proven:
        return None
    first, last = zone.epoch_ms(process.first_ms), zone.epoch_ms(process.last_ms)
    if _meet((first, last), evidence):
        return None
    shifts = [hours for hours in range(-12, 15) if _meet(_shifted(process, hours * _HOUR_MS), evidence)]
    fits = ", ".join(zone_text(hours * _HOUR_MS) for hours in shifts)
    apart = (
        f"{process.name} is from {_utc(first)} to {_utc(last)} UTC, in {zone.why}; all other imported files are from "
    )
    end = f"they would overlap in {fits}; give --time-zone" if fits else "they overlap in no time zone"
    return f"{apart}{_utc(evidence[0])} to {_utc(evidence[1])} UTC: {end}"


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


def _shifted(process: Process, offset_ms: int) -> Span:
    return process.first_ms - offset_ms, process.last_ms - offset_ms


def _meet(one: Span, other: Span) -> bool:
    return one[0] - _MARGIN_MS <= other[1] and other[0] - _MARGIN_MS <= one[1]


def _utc(epoch_ms: int) -> str:
    return (dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=epoch_ms)).isoformat(" ", "seconds")
