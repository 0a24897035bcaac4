"""When a client may not pull: DefaultMQPushConsumerImpl#pullMessage compares with >, in this order."""

from __future__ import annotations

import pytest

from mqreplay.core.flow_control import COUNT, SIZE, SPAN, flow_control, largest_cached_count


@pytest.mark.parametrize(
    ("count", "mib", "span", "orderly", "expected"),
    [
        (1000, 100, 2000, False, None),
        (1001, 101, 2001, False, COUNT),
        (1000, 101, 2001, False, SIZE),
        (1000, 100, 2001, False, SPAN),
        (1000, 100, 2001, True, None),
        (1001, 0, 0, True, COUNT),
        (0, 0, 0, False, None),
    ],
)
def test_the_first_threshold_that_is_passed(
    count: int, mib: int, span: int, orderly: bool, expected: str | None
) -> None:
    assert flow_control(count, mib, span, orderly) == expected


def test_the_settings_of_the_client_count() -> None:
    assert flow_control(11, 0, 10, False, 10, 1, 9) == COUNT
    assert flow_control(10, 2, 10, False, 10, 1, 9) == SIZE
    assert flow_control(10, 1, 10, False, 10, 1, 9) == SPAN
    assert largest_cached_count(10, 5) == 15
