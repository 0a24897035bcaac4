"""The page as text: pure, escaped, capped, and in the order an operator asks."""

from __future__ import annotations

import datetime as dt
import re

from mqreplay.report.build import build_report
from mqreplay.report.data import CAP, Listing, ReportData
from report_data import BEGAN, ENDED, HOSTILE, data, expectation, finding, offset_break, refused


def test_same_data_same_bytes():
    assert build_report(data()) == build_report(data())
    assert build_report(data()) == build_report(data(findings=list(reversed(data().findings))))


def test_a_quiet_night_says_so():
    assert "A quiet night" in build_report(data(findings=[]))


def test_nothing_at_all_is_a_page_too():
    page = build_report(ReportData("empty"))
    assert "A quiet night" in page
    assert "No instant was recorded" in page


def test_the_headline_counts_what_went_wrong():
    page = build_report(data(findings=[finding("1", severity="critical"), finding("2"), finding("3")]))
    assert "<h1><bdi>orders</bdi>: 1 critical finding, 2 warnings</h1>" in page
    page = build_report(data(findings=[finding("1", severity="info")]))
    assert "Nothing went wrong; some things to know" in page


def test_worst_first_then_earliest():
    late = BEGAN + dt.timedelta(minutes=9)
    found = [
        finding("a", severity="info"),
        finding("b", from_ts=late, to_ts=late),
        finding("c"),
        finding("d", severity="critical", from_ts=late, to_ts=late),
    ]
    shown = re.findall(r'<article class="finding \w+" id="f-(\w)"', build_report(data(findings=found)))
    assert shown == ["d", "c", "b", "a"]


def test_every_value_is_escaped_and_nothing_invisible_is_left():
    page = build_report(data(hostile=HOSTILE))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "onerror=" not in re.sub(r"&lt;.*?&gt;", "", page)
    assert not set("\u202e\u2066\x00\x1b\u200b\ufeff") & set(page)
    assert "⟨U+202E⟩" in page
    page.encode("utf-8")


def test_the_page_asks_for_nothing_outside_itself():
    page = build_report(data(hostile=HOSTILE))
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page.replace(HOSTILE, ""))
    assert set(re.findall(r'(?:src|href)="([^"#][^"]*)"', page)) == {"data:,"}


def test_a_long_list_is_capped_and_says_how_to_see_the_rest():
    page = build_report(data(quarantine=Listing([refused()], 1201)))
    assert "1,200 more" in page
    assert "SELECT * FROM bronze.quarantine" in page
    page = build_report(data(findings=[finding(f"{i:04}") for i in range(CAP + 3)]))
    assert page.count("<article") == CAP
    assert "3 more" in page
    assert f"{CAP + 3} warnings" in page


def test_failed_expectations_come_first_and_those_that_hold_are_folded():
    page = build_report(
        data(expectations=[expectation(passed=True), expectation(passed=False, table_name="silver.route")])
    )
    assert "1 / 2" in page
    assert page.index("silver.route") < page.index("1 expectation holds")
    assert "1 expectation failed" in page


def test_unknown_is_told_from_zero():
    page = build_report(data(breaks=Listing.of([offset_break(new_offset=None, redelivered_max=0)])))
    assert '<td class="n">–</td><td class="n">0</td></tr>' in page


def test_the_timeline_places_findings_and_hides_none():
    overlapping = [finding("1", to_ts=ENDED), finding("2", from_ts=BEGAN + dt.timedelta(minutes=30), to_ts=ENDED)]
    page = build_report(data(findings=overlapping))
    bars = re.findall(r'href="#f-(\d)".*?x="([\d.]+)" y="2" width="([\d.]+)"', page)
    assert bars == [("1", "0.0", "1000.0"), ("2", "500.0", "500.0")]
    assert page.count('<div class="lane') == 2
    assert "<svg" not in build_report(data(findings=[]))


def test_a_finding_without_instants_or_place():
    nowhere = dict.fromkeys(("consumer_group", "topic", "from_ts", "to_ts", "evidence"))
    page = build_report(data(findings=[finding("1", **nowhere)]))
    assert "None" not in page
