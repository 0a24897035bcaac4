"""What the documentation says about each setting, and its bounds: the metadata of the fields of the sections."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

RECORD = "record"  # the key of a SettingRecord in the metadata of its field
DAY_MS = 86_400_000
WEEK_S = 604_800


@dataclass(frozen=True)
class SettingRecord:
    """The documentation and the bounds of one setting.

    ``meaning`` says in one line what the value is, and the reason for the default. ``change`` says when to change it.
    ``least`` and ``most`` are the bounds of a number. Spark fails beyond them, or nothing is found.
    """

    unit: str
    meaning: str
    change: str
    least: float = 0
    most: float = 0

    def with_unit(self, value: object) -> str:
        """Return a value of this setting as TOML in backticks, with its unit.

        >>> SettingRecord("row", "", "").with_unit(1000), SettingRecord("s", "", "").with_unit(60)
        ('`1000` rows', '`60` s')
        """
        if not self.unit or self.unit == "share":
            return f"`{json.dumps(value)}`"
        counted = self.unit not in ("s", "ms", "min", "MiB") and value != 1
        plural = "" if not counted else "es" if self.unit.endswith("s") else "s"
        return f"`{json.dumps(value)}` {self.unit}{plural}"


def setting(default: Any, unit: str, meaning: str, change: str, least: float = 0, most: float = 0) -> Any:
    """Return the dataclass field of a setting."""
    return field(default=default, metadata={RECORD: SettingRecord(unit, meaning, change, least, most)})


def table(meaning: str, change: str) -> dict[str, SettingRecord]:
    """Return the metadata of a field that holds a table of TOML."""
    return {RECORD: SettingRecord("", meaning, change)}


def seconds(default: int, meaning: str, change: str) -> Any:
    """Return the dataclass field of a setting in seconds."""
    return setting(default, "s", meaning, change, most=WEEK_S)


def days(meaning: str, change: str) -> Any:
    """Return the dataclass field of a number of days; 0: no bound."""
    return setting(0, "day", meaning, change, most=36_500)


def record_of(section: Any, key: str) -> SettingRecord:
    """Return the record of the setting ``key`` of a section, a class or an instance of it."""
    (found,) = [each for each in dataclasses.fields(section) if each.name == key]
    record: SettingRecord = found.metadata[RECORD]
    return record
