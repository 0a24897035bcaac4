"""RocketMQ versions and their order, for rules that changed.

Every rule that changed takes a ``version`` argument and calls `at_least`; there is no global version.
"""

from __future__ import annotations

import re
from typing import Final

from mqreplay.words.errors import IllegalArgument

# The versions whose classes answered the vectors: of 4.9, clients, stores and common code 4.9.8, brokers and name
# servers 4.9.7. Where only the major version is known, they stand for it.
CLIENT_4 = "4.9.8"
BROKER_4 = "4.9.7"
CLIENT_5 = BROKER_5 = "5.3.3"

# MQVersion's ordinal of V5_0_0. Each release since 4.0.0 has two ordinals: its snapshot's and, one higher, its own.
V5_0_0: Final = 413
_FIRST, _LAST = 213, 611  # ordinals of V4_0_0 and V5_9_9: ten releases of each of ten minor versions

_NUMBERS = re.compile(r"[Vv]?(\d+)[._](\d+)(?:[._](\d+))?")


def version_key(version: str) -> tuple[int, int, int]:
    """The three numbers of a version, from ``5.3.3``, ``V5_3_3`` (MQVersion's name) or ``5.4.0-SNAPSHOT``.

    Raises IllegalArgument where there are no numbers to read: a version is never guessed. No method of RocketMQ:
    it keeps versions as ordinals (MQVersion).

    >>> version_key("4.9.8"), version_key("V5_3_3"), version_key("5.4-SNAPSHOT")
    ((4, 9, 8), (5, 3, 3), (5, 4, 0))
    """
    match = _NUMBERS.match(version)
    if match is None:
        raise IllegalArgument(f"not a RocketMQ version: {version!r}; write it like 5.3.3")
    return int(match[1]), int(match[2]), int(match[3] or 0)


def at_least(version: str, since: str) -> bool:
    """Whether version is since or later. No method of RocketMQ: its releases are what differs.

    >>> at_least("5.3.3", "5.0.0"), at_least("4.9.8", "4.10.0")
    (True, False)
    """
    return version_key(version) >= version_key(since)


def version_of_ordinal(ordinal: int) -> str | None:
    """Return the version that clients and brokers send as a number in each request; None before 4.0.0 and after 5.9.9.

    Follows MQVersion#value2Version.

    >>> version_of_ordinal(407), version_of_ordinal(479), version_of_ordinal(478), version_of_ordinal(0)
    ('4.9.7', '5.3.3', '5.3.3-SNAPSHOT', None)
    """
    if not _FIRST <= ordinal <= _LAST:
        return None
    number = 500 + (ordinal - V5_0_0 + 1) // 2
    release = ".".join(str(number))
    return release if (ordinal - V5_0_0) % 2 == 0 else f"{release}-SNAPSHOT"
