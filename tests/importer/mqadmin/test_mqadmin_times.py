"""The time of each output: by date lines, the path, the rows, or the file's last change; never a guess in silence."""

from __future__ import annotations

import datetime as dt

import pytest

from importer.mqadmin.mqadmin_texts import GROUP, TOPIC, topic_row
from mqreplay.importer.mqadmin.output_files import times_of
from mqreplay.importer.mqadmin.outputs import outputs_of
from mqreplay.importer.times.name_times import time_of_path

CHINA = dt.timezone(dt.timedelta(hours=8))
MOMENT, MINUTE, DAY = 1770964060000, 60_000, 86_400_000  # 2026-02-13 06:27:40 UTC
STORED = MOMENT - 9_592
MIDNIGHT = 1770940800000
ORDERS = f"$ mqadmin topicStatus -t orders\n{TOPIC}"
PAY = f"$ mqadmin consumerProgress -g pay\n{GROUP}"
FIRST, SECOND = "Fri Feb 13 06:27:40 UTC 2026\n", "Fri Feb 13 06:28:40 UTC 2026\n"


def times(text, path="night.txt", modified=MOMENT + DAY, zone=dt.UTC, zone_is_set=False):
    outputs = outputs_of(text, zone, zone_is_set)
    named = time_of_path(path.split("/"), zone)
    return [time for _, time in times_of(outputs, named, modified, zone, zone_is_set)]


def of(text, **how):
    return [time.ms for time in times(text, **how)]


@pytest.mark.parametrize(
    "text",
    [
        f"$ date\n{FIRST}{ORDERS}$ date\n{SECOND}{ORDERS}",
        f"+ date\n{FIRST}+ sh mqadmin topicStatus -t orders\n{TOPIC}+ date\n{SECOND}{ORDERS.replace('$', '+')}",
        f"C:\\b>echo %date% %time%\nFri 02/13/2026  6:27:40.00\n{ORDERS}C:\\b>x\n2026/02/13 周五  6:28:40.00\n{ORDERS}",
        f"2026-02-13\n06:27:40\n{ORDERS}2026-02-13\n06:28:40\n{ORDERS}",
        f"1770964060\n{ORDERS}1770964120\n{ORDERS}",
        f"2026-02-13 06:27:40 {ORDERS}2026-02-13 06:28:40 {ORDERS}",
        f"{ORDERS}$ date\n{FIRST}{ORDERS}$ date\n{SECOND}",
    ],
    ids=["date", "set -x", "Windows", "day and clock", "epoch", "before the command", "after the command"],
)
def test_a_date_for_each_output(text):
    assert of(text) == [MOMENT, MOMENT + MINUTE]


@pytest.mark.parametrize("line", ["Th 6 13 Th02 2026 06:27:40 UTC", "Mon Mar 22 10:12:00 CST 2021", "xyz"])
def test_after_a_date_that_is_not_understood_the_last_change_is_not_taken(line):
    found = times(f"$ date\n{line}\n{ORDERS}")
    assert [time.ms for time in found] == [None]
    assert repr(line) in found[0].how
    assert of(f"$ date\n{line}\n{ORDERS}$ date\n{line}\n{ORDERS}", path="1770964060/a.txt") == [MOMENT, None], (
        "the path's time is of the first one"
    )


def test_other_commands_after_a_dated_output():
    found = times(f"{FIRST}{ORDERS}{PAY}{ORDERS}")
    assert [time.ms for time in found] == [MOMENT, MOMENT, None]
    assert found[1].how == "the date before an earlier output of the file"
    assert "without a date between" in found[2].how
    later = topic_row("broker-a", 2, 0, 9, "2026-02-13 09:00:00,000")
    assert of(f"{FIRST}{PAY}{ORDERS}{later}")[1] == MOMENT + 9_140_000, "its rows show that it is later"


def test_the_last_change_is_later_than_dates_in_the_file():
    found = times(f"{ORDERS}{FIRST}{PAY}")
    assert [time.ms for time in found] == [None, MOMENT]
    assert "later outputs of the file have one" in found[0].how
    assert of(f"{ORDERS}{PAY}") == [MOMENT + DAY] * 2


@pytest.mark.parametrize("path", ["2026-02-13/a.txt", "a_20260213.txt", "2026/02/13/a.txt", "2026-02-13/06/a.txt"])
def test_a_day_is_no_time(path):
    found = times(ORDERS, path=path)
    assert [(time.ms, time.is_sure) for time in found] == [(STORED, False)]
    assert "the last time in its rows" in found[0].how
    if "/06/" not in path:
        assert of(ORDERS, path=path, zone=CHINA, zone_is_set=True) == [STORED - 8 * 3_600_000]


def test_a_day_and_the_last_change_within_it():
    assert of(ORDERS, path="2026-02-13/a.txt", modified=MOMENT + 5) == [MOMENT + 5]
    assert of(ORDERS, path="2026-02-13/a.txt", modified=MIDNIGHT + 5) == [STORED], "changed before its own rows"


def test_a_day_without_times_in_the_rows():
    text = "$ mqadmin clusterList\n#Cluster Name  #Broker Name  #BID  #Addr  #Version\nC  b  0  h:10911  V4_9_7  0.00\n"
    [found] = times(text, path="2026-02-13/a.txt")
    assert (found.ms, found.is_sure) == (MIDNIGHT, False)
    assert "its beginning is used" in found.how


def test_a_time_is_sure_if_its_zone_is_known():
    assert [time.is_sure for time in times(FIRST + ORDERS)] == [True]
    assert [time.is_sure for time in times(f"2026-02-13 06:27:40\n{ORDERS}")] == [False]
    assert [time.is_sure for time in times(f"2026-02-13 06:27:40\n{ORDERS}", zone_is_set=True)] == [True]


def test_the_last_column_that_a_terminal_broke_is_no_date():
    row = topic_row("broker-a", 0, 0, 631, "").rstrip()
    text = f"{FIRST}{ORDERS}{row}\n    2026-02-13 06:20:30,408\n{PAY}"
    assert of(text) == [MOMENT, MOMENT]
