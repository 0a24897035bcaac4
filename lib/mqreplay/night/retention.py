"""How long rows are kept: the first day of each layer, and which days can still be judged."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping

from mqreplay.lake.local_folder import LAYERS
from mqreplay.night.steps import Span, last_recorded
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError
from mqreplay.words.time_span import ONE_DAY

DAYS_BEFORE = 1  # before the lookback: no instant of a client is corrected by more (replay/day.py)
MOST_DAYS = 36_500
DAYS = re.compile(r"([0-9]{1,5})d")
Keep = Mapping[str, int]  # layer -> days; a layer that is kept for ever is not among them


def keep_of(settings: Settings, text: str | None) -> dict[str, int]:
    """Return how many days of each layer are kept, by the settings and by --keep, which overrides them.

    Raises InputError for other text, and for fewer days than the next night needs.

    >>> from mqreplay.settings import MaintainSettings
    >>> keep_of(Settings(), "90d") == {"bronze": 90, "silver": 90, "gold": 90}
    True
    >>> keep_of(Settings(maintain=MaintainSettings(keep_gold_days=400)), "silver=30d")
    {'silver': 30, 'gold': 400}
    """
    days = {layer: int(getattr(settings.maintain, f"keep_{layer}_days")) for layer in LAYERS}
    days |= _days_of(text) if text is not None else {}
    least = least_days(settings.replay.lookback_minutes)
    for layer, number in days.items():
        if 0 < number < least:
            raise InputError(f"{layer} rows of {number} d are too few: the next night needs those of {least} days")
    return {layer: number for layer, number in days.items() if number}


def _days_of(text: str) -> dict[str, int]:
    parts = [part.strip().rpartition("=") for part in text.split(",")]
    found = {layer: DAYS.fullmatch(number) for layer, _, number in parts}
    is_whole = len(parts) == 1 and not parts[0][0] and not parts[0][1]
    if not all(found.values()) or len(found) < len(parts) or not (is_whole or found.keys() <= set(LAYERS)):
        raise InputError(f"--keep {text}: give days such as 90d, or days of layers such as silver=30d,gold=400d")
    days = {layer: int(match[1]) for layer, match in found.items() if match}
    if max(days.values()) > MOST_DAYS:
        raise InputError(f"--keep {text}: {MOST_DAYS} days are the most; 0d keeps all days")
    return dict.fromkeys(LAYERS, days[""]) if is_whole else days


def first_kept(keep: Keep, found: list[Span], today: dt.date) -> dict[str, dt.date]:
    """Return the first day of each layer that is kept: the days are counted back from the last recorded day.

    Not from ``today``: otherwise the days of a cluster that is no longer recorded, and of an old recording, would go.
    That day is by the clock of the recorder, or else of the clients; a clock that is fast does not reach beyond today.
    """
    last = last_recorded(found)
    if last is None:
        return {}
    last_day = min(last.date(), today)
    return {layer: dt.date.fromordinal(max(2, last_day.toordinal() - days + 1)) for layer, days in keep.items()}


def first_judged(kept: Mapping[str, dt.date], lookback_minutes: int) -> dt.date:
    """Return the first day that can be judged again: the rows that it needs are kept.

    These are the rows of its lookback, and of a day before that for clients with a wrong clock. ``kept`` is the first
    kept day of each layer (lake/result_cache.py).
    """
    firsts = [day for layer, day in kept.items() if layer in ("silver", "gold")]
    return max(firsts) + _days_before(lookback_minutes) * ONE_DAY if firsts else dt.date.min


def least_days(lookback_minutes: int) -> int:
    """Return how many days must be kept so that the last one and later ones can be judged."""
    return _days_before(lookback_minutes) + 1


def _days_before(lookback_minutes: int) -> int:
    return DAYS_BEFORE - (-dt.timedelta(minutes=lookback_minutes) // ONE_DAY)
