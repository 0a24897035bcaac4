"""A broker's settings as text: what is absent, or no number, has the default (MixAll#properties2Object)."""

from __future__ import annotations

from collections.abc import Mapping

from mqreplay.core.java_numbers import parse_int
from mqreplay.words.errors import NumberFormat


def int_setting(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return a whole number among the settings. Follows MixAll#properties2Object.

    >>> int_setting({"slaveTimeout": "500"}, "slaveTimeout", 3000), int_setting({"slaveTimeout": ""}, "slaveTimeout", 9)
    (500, 9)
    """
    try:
        return parse_int(properties[name])
    except (KeyError, NumberFormat):
        return default


def is_set(properties: Mapping[str, str], name: str) -> bool:
    """Return whether a setting that is false by default is true ; MixAll#properties2Object.

    >>> is_set({"slaveReadEnable": "True"}, "slaveReadEnable"), is_set({}, "slaveReadEnable")
    (True, False)
    """
    return properties.get(name, "").lower() == "true"
