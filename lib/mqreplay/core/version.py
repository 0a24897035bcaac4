"""RocketMQ versions and their order, for rules that changed.

Every rule that changed takes a ``version`` argument and calls `at_least`; there is no global version.
"""

from __future__ import annotations

import re

from mqreplay.errors import IllegalArgument

# The versions whose classes answered the vectors: clients, stores and common code 4.9.8, brokers and name
# servers 4.9.7.
CLIENT_4 = "4.9.8"
BROKER_4 = "4.9.7"

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
