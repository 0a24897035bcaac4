"""Heads of log lines of both versions, time zones, and lines that no RocketMQ writes."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from mqreplay.decode.logs.line_time import (
    CHINA,
    FIXED_ZONE,
    LOCAL,
    MAX_LINE_BYTES,
    epoch_ms_of,
    own_head,
    text_of_line,
    utc_offset_ms,
    written_epoch_ms,
)
from mqreplay.words.errors import DecodeError

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "layout", "exact", "message"),
    [
        ("2026-11-21 02:40:08,249 INFO RocketmqClient - hello - there", LOCAL, True, "hello - there"),
        (
            "2026-11-21 10:48:06.803 INFO  [12739] [RebalanceService] [o.a.r.c.i.c.RebalanceImpl#?:?] - hello",
            FIXED_ZONE,
            True,
            "hello",
        ),
        ("2026-11-21 10:40:08 WARN HeartbeatThread_2 - hello", FIXED_ZONE, False, "hello"),
        ("2026-11-21 10:45:00 INFO - [GROUP_GET_NUMS] [a@b]", FIXED_ZONE, False, "[GROUP_GET_NUMS] [a@b]"),
    ],
)
def test_a_line_of_each_log(text: str, layout: str, exact: bool, message: str) -> None:
    line = own_head(text)
    assert line is not None
    assert (line.clock.layout, line.clock.exact, line.message) == (layout, exact, message)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "java.lang.RuntimeException: 2026-11-21 10:40:08 INFO x - y",
        "\tat a.B.c(B.java:1)",
        "2026-11-21",
        "Caused by: x",
    ],
)
def test_lines_of_a_stack_trace_have_no_head(text: str) -> None:
    assert own_head(text, 0) is None


@pytest.mark.parametrize(
    "text", ["2026-02-30 10:40:08 INFO a - b", "2026-01-01 24:00:00 INFO a - b", "0001-01-01 00:00:00 INFO a - b"]
)
def test_a_time_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="bad_time"):
        own_head(text)


@pytest.mark.parametrize(
    ("line", "code"),
    [(b"\xff\n", "not_utf8"), (b"a\0b\n", "nul_bytes"), (b"x" * (MAX_LINE_BYTES + 1), "too_large")],
)
def test_bytes_of_no_log_are_refused(line: bytes, code: str) -> None:
    with pytest.raises(DecodeError, match=code):
        text_of_line(line)


def test_the_times_inside_a_line_give_its_zone() -> None:
    updated = "pay-topic Rebalance changed, also update version: 1795228807062, 1795228808400"
    joined = (
        "new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: ClientChannelInfo [channel=[id: 0x1, "
        "L:/127.0.0.1:1 - R:/127.0.0.1:2], clientId=c, language=JAVA, version=407, lastUpdateTimestamp=1795228808369]"
    )
    assert written_epoch_ms(updated) == 1795228808400
    assert written_epoch_ms(joined) == 1795228808369
    # The last heartbeat of a client that leaves was earlier than the line.
    assert written_epoch_ms(joined.replace("new consumer connected", "unregister a consumer")) is None
    line = own_head(f"2026-11-21 08:10:08,400 INFO RocketmqClient - {updated}")
    assert line is not None
    assert utc_offset_ms(line.clock.wall_ms, 1795228808400) == 5.5 * HOUR


@pytest.mark.parametrize("apart", [7 * 60_000, 19 * HOUR, -19 * HOUR])
def test_a_difference_that_no_zone_has_gives_none(apart: int) -> None:
    assert utc_offset_ms(1795228808400 + apart, 1795228808400) is None


def test_a_wall_time_in_a_zone_with_summer_time() -> None:
    def wall(*parts: int) -> int:
        return int(dt.datetime(*parts, tzinfo=dt.UTC).timestamp() * 1000)

    berlin = ZoneInfo("Europe/Berlin")
    assert epoch_ms_of(wall(2026, 7, 1, 12), berlin) == wall(2026, 7, 1, 10)
    assert epoch_ms_of(wall(2026, 12, 1, 12), berlin) == wall(2026, 12, 1, 11)
    assert epoch_ms_of(wall(2026, 12, 1, 12), CHINA) == wall(2026, 12, 1, 4)
