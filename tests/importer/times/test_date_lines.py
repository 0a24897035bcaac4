"""Lines that `date` and scripts write between commands, in usual locales; lines that only look so."""

from __future__ import annotations

import datetime as dt

import pytest

from each_case import for_each
from mqreplay.importer.times.date_lines import date_of_line

MOMENT = 1770964060000  # 2026-02-13 06:27:40 UTC
CHINA = dt.timezone(dt.timedelta(hours=8))
DATES = [
    "2026年 02月 13日 星期五 06:27:40 UTC",
    "2026年02月13日 星期五 06时27分40秒 UTC",
    "Fr 13. Feb 06:27:40 UTC 2026",
    "Fr 13. Feb 2026 06:27:40 UTC",
    "Fr 13 Feb 2026 06:27:40 UTC",
    "vendredi 13 février 2026, 06:27:40 (UTC+0000)",
    "ven. 13 févr. 2026 06:27:40 UTC",
    "ven. févr. 13 06:27:40 UTC 2026",
    "2026/02/13 周五 06:27:40.12",
    "Fri 02/13/2026  6:27:40.12",
    "02/13/2026 06:27:40 AM",
    "13.02.2026  6:27:40,12",
    "Fri, 13 Feb 2026 06:27:40 +0000",
    "2026-02-13T06:27:40+00:00",
    "2026-02-13 06:27:40+00:00",
    "2026-02-13 06:27:40 +0000",
    "2026-02-13 06:27:40 UTC",
    "Fri Feb 13 06:27:40 AM UTC 2026",
    "Fri Feb 13 06:27:40 2026",
    "1770964060",
    "1770964060123",
    "20260213062740",
    "20260213 06:27:40",
    "viernes, 13 de febrero de 2026, 06:27:40 UTC",
    "vie 13 feb 2026 06:27:40 UTC",
    "vie feb 13 06:27:40 UTC 2026",
    "ven 13 feb 2026, 06:27:40, UTC",
    "sex 13 fev 2026 06:27:40 UTC",
    "Sex Fev 13 06:27:40 UTC 2026",
    "Пт 13 фев 2026 06:27:40 UTC",
    "Пт фев 13 06:27:40 UTC 2026",
    "пятница, 13 февраля 2026 г. 06:27:40 (UTC)",
    "2026年  2月 13日 金曜日 06:27:40 UTC",
    "2026年 2月13日 金曜日 06時27分40秒 UTC",
    "2026. 02. 13. (금) 06:27:40 UTC",
    "2026년 02월 13일 금요일 06시 27분 40초 UTC",
    "2026. 02. 13. (금) 오전 06:27:40 UTC",
    "五  2月 13 06:27:40 UTC 2026",
    "vr 13 feb 2026  6:27:40 UTC",
    "pią, 13 lut 2026, 06:27:40 UTC",
    "pe 13.2.2026 klo 06.27.40 +0000",
    "fre 13 feb 2026 06:27:40 UTC",
    "Cum 13 Şub 2026 06:27:40 UTC",
    "Fri Feb 13 15:27:40 JST 2026",
    "Fri Feb 13 01:27:40 EST 2026",
    "==== Fri Feb 13 06:27:40 UTC 2026 ====",
    "date: 2026-02-13 06:27:40",
    "时间：2026-02-13 06:27:40",
    "[2026-02-13 06:27:40]",
    "Fri Feb 13 2026 14:27:40 GMT+0800 (China Standard Time)",
    "Fri Feb 13 2026 14:27:40 GMT+0800 (中国标准时间)",
    "Universal time: Fri 2026-02-13 06:27:40 UTC",
    "2026/02/13 06:27:40",
    "2026/2/13 6:27:40",
    "2026年2月13日 6:27:40",
    "13/02/2026 06:27:40",
    "Friday, February 13, 2026 6:27:40 AM",
    "Friday, 13 February 2026 06:27:40",
    "2026年2月13日 星期五 上午 06:27:40 UTC",
    "# Fri Feb 13 06:27:40 UTC 2026",
    "Fri 13 Feb 2026 06:27:40 AM UTC",
    "Fri 13 Feb 06:27:40 UTC 2026",
    "Fri Feb 13 06:27:40 Z 2026",
]


@for_each(DATES)
def test_dates_of_usual_locales(line):
    found = date_of_line(line, dt.UTC)
    assert found is not None
    assert found.ms is not None, found.why
    assert 0 <= found.ms - MOMENT < 1000


@for_each(DATES)
def test_a_text_with_a_zone_does_not_depend_on_the_zone_of_the_user(line):
    here, there = date_of_line(line, dt.UTC), date_of_line(line, CHINA)
    assert (here.ms - there.ms == 0) is here.has_zone


@pytest.mark.parametrize(
    "line", ["Fri Feb 13 14:27:40 CST 2026", "2026年02月13日 星期五 14时27分40秒 CST", "2026-02-13 14:27:40 CST"]
)
def test_a_name_of_several_zones(line):
    assert date_of_line(line, CHINA, True).ms == MOMENT
    asked = date_of_line(line, dt.UTC)
    assert asked.ms is None
    assert asked.why.startswith(f"CST in {line!r} may be China (+08:00), US Central (-06:00) or Cuba (-05:00); give ")
    other = date_of_line(line, dt.UTC, True)
    assert "is not the zone that --time-zone names" in other.why, "CST is not UTC, whatever the user gave"


@pytest.mark.parametrize("zone", ["IST", "BST", "AST", "XST"])
def test_other_names_are_not_utc_without_a_word(zone):
    found = date_of_line(f"Fri Feb 13 06:27:40 {zone} 2026", dt.UTC)
    assert found.ms is None
    assert "give --time-zone" in found.why


@pytest.mark.parametrize(
    "line",
    [
        "Th 6 13 Th02 2026 06:27:40 UTC",
        "ศ. 13 ก.พ. 2569 06:27:40 UTC",
        "06:27:40",
        "Fri 13/02/26 06:27",
        "02/13/2026 99:27:40",
        "Fri Feb 30 06:27:40 UTC 2026",
        "2026-02-13 06:27:40 CST UTC",
        "Fri, 13 Feb 2026 06:27:40 +4000",
    ],
)
def test_a_date_that_cannot_be_read_is_named(line):
    found = date_of_line(line, dt.UTC)
    assert found.ms is None
    assert repr(line) in found.why or "the zone CST UTC" in found.why or "does not exist" in found.why


def test_a_day_that_may_be_two():
    assert "may be two days" in date_of_line("02/03/2026 06:27:40", dt.UTC).why
    assert date_of_line("Mon 02/03/2026 06:27:40", dt.UTC).ms == 1772432860000, "only 2 March is a Monday"


@pytest.mark.parametrize("line", ["2026-02-13", "Fri 02/13/2026", "2026年2月13日", "13 février 2026"])
def test_a_day_alone(line):
    found = date_of_line(line, dt.UTC)
    assert (found.ms, found.day.ms) == (None, 1770940800000)


@pytest.mark.parametrize(
    "line",
    [
        "total 12",
        "drwxr-xr-x 2 root root 4096 Feb 13 06:27 bin",
        "-rw-r--r-- 1 root root 4096 Feb 13  2026 x",
        "broker-a                          0     0                     631                     2026-02-13 06:27:30,408",
        "2026-02-13 06:27:40 INFO main - started",
        "On 2026-02-13 at 06:27 the broker restarted",
        "Consume TPS: 0.71",
        "bootTimestamp : 1520772974542",
        " 06:27:40 up 12 days,  3:04,  2 users,  load average: 0.00, 0.01, 0.05",
        "12:00 meeting with team",
        "10.0.0.1:10911",
        "runtime : [ 0 days, 12 hours, 13 minutes, 14 seconds ]",
        "RTC time: Fri 2026-02-13 06:27:40",
    ],
)
def test_other_lines(line):
    assert date_of_line(line, dt.UTC) is None
