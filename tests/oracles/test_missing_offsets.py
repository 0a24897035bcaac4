"""Messages that a slave's copy lacks, by minute."""

from __future__ import annotations

import pytest

from oracles.missing_offsets import MinuteOfCopy, missing_by_minute, missing_messages
from oracles.offset_evidence import OffsetChange

MOST = 2**63 - 1
MINUTE_US = 60_000_000


def shows(minute: float, offset: int | None) -> OffsetChange:
    return OffsetChange(None, int(minute * MINUTE_US), None, offset)


@pytest.mark.parametrize(
    ("master", "slave", "missing"),
    [
        (9, 4, (5, 0)),
        (4, 4, (0, 0)),
        (4, 9, (0, 0)),
        (0, None, (0, 1)),
        (None, 0, (0, 1)),
        (None, None, (0, 0)),
        (2**53, 0, (2**53, 0)),
        (2**53 + 1, 0, (0, 1)),
        (MOST, MOST - 3, (3, 0)),
        (MOST, -MOST, (0, 1)),
        (-MOST, MOST, (0, 0)),
    ],
)
def test_what_a_copy_lacks(master: int | None, slave: int | None, missing: tuple[int, int]) -> None:
    assert missing_messages(master, slave) == missing


def test_a_minute_is_the_rise_since_the_minute_before() -> None:
    found = missing_by_minute([shows(0, 9), shows(2, 20), shows(5, 21)], [shows(0.5, 4), shows(2.9, 18), shows(7, 30)])
    assert [minute[1:] for minute in found] == [
        (5, 0, True, True),
        (-3, 0, True, True),
        (1, 0, True, False),
        (-3, 0, False, True),
    ]
    assert [minute.minute // MINUTE_US for minute in found] == [0, 2, 5, 7]


def test_what_is_not_known_any_more_and_is_again() -> None:
    found = missing_by_minute([shows(0, 9), shows(3, None)], [shows(1, 4), shows(2, None)])
    assert [minute[1:3] for minute in found] == [(0, 1), (5, -1), (-5, 1), (0, -1)]


def test_a_minute_begins_at_its_full_minute() -> None:
    last = OffsetChange(None, MINUTE_US - 1, None, 5)
    assert missing_by_minute([last, shows(1, 7)], []) == [
        MinuteOfCopy(0, 0, 1, True, False),
        MinuteOfCopy(MINUTE_US, 0, 0, True, False),
    ]


def test_of_changes_of_one_instant_the_last_in_order_counts() -> None:
    assert missing_by_minute([shows(0, 9), shows(0, 7)], [shows(0, 4)])[0].messages == 3
    assert missing_by_minute([shows(1, 9), shows(0, 7)], [shows(0, 4)])[0].messages == 3


def test_nothing_changes() -> None:
    assert missing_by_minute([], []) == []
