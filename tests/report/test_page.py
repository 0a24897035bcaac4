"""The page as text: pure, escaped, capped, and in the order an operator asks."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import re

from mqreplay.report.build import build_report
from mqreplay.report.data import MOST_FINDINGS, Listing, ReportData
from report_data import BEGAN, HOSTILE, data, expectation, finding, judged, offset_break, refused, unjudged


def test_same_data_same_bytes():
    assert build_report(data()) == build_report(data())
    assert build_report(data()) == build_report(data(findings=list(reversed(data().findings))))


def test_a_quiet_night_says_so():
    page = build_report(data(findings=[]))
    assert "<h1><bdi>No problem found in 1 h: 23,671 pulls judged." in page
    assert '<div class="verdict quiet">' in page


def test_a_night_that_was_not_judged_is_not_quiet():
    page = build_report(data(findings=[], coverage=[judged(), unjudged()]))
    assert '<div class="verdict unknown">' in page
    assert "No problem found in what could be judged: 23,671 pulls" in page
    assert "<b>Not judged:</b> <span>rebalances</span>" in page
    assert '<li>record it <span class="dim">(rebalances)</span></li>' in page
    assert "Without it no finding of kind idle_consumer" in page


def test_a_night_with_findings_to_know_alone_is_free_of_problems():
    page = build_report(data(findings=[finding("1", severity="info")]))
    assert '<div class="verdict info">\n<span class="sign" aria-hidden="true">✓</span>' in page
    assert "1 finding to know." in page


def test_what_a_healthy_night_cannot_show_is_one_line():
    page = build_report(data(findings=[], coverage=[judged(), unjudged(missing=("sends",))]))
    assert '<div class="verdict quiet">' in page
    assert '<p class="notice calm" id="limits"><b>This recording cannot show:</b> <span>rebalances</span>.</p>' in page
    assert 'role="note"' not in page


def test_nothing_at_all_is_a_page_too():
    page = build_report(ReportData("empty"))
    assert "Nothing could be judged." in page
    assert '<div class="verdict quiet">' not in page
    assert "no time was recorded" in page


def test_the_title_counts_what_went_wrong():
    page = build_report(data(findings=[finding("1", severity="critical"), finding("2"), finding("3")]))
    assert "<title>orders: 1 critical finding, 2 warnings – mqreplay</title>" in page
    page = build_report(data(findings=[finding("1", severity="info")]))
    assert "<title>orders: no problem found – mqreplay</title>" in page


def shown(page: str) -> list[str]:
    return re.findall(r'class="finding[ \w]* \w+" id="f-(\w+)"', page)


def test_worst_first_then_earliest():
    late = BEGAN + dt.timedelta(minutes=9)
    found = [
        finding("a", severity="info"),
        finding("b", from_ts=late, to_ts=late),
        finding("c"),
        finding("d", severity="critical", from_ts=late, to_ts=late),
    ]
    assert shown(build_report(data(findings=found))) == ["d", "c", "b", "a"]


def test_effects_come_below_their_cause():
    found = [finding("a"), finding("b", severity="critical"), finding("c", follows_from="b", severity="info")]
    page = build_report(data(findings=[*found, finding("e", follows_from="gone", severity="info")]))
    assert shown(page) == ["b", "c", "a", "e"]
    assert "1 finding follows from this" in page
    assert "Follows from finding gone, which is not on this page." in page


def test_every_value_is_escaped_and_nothing_invisible_is_left():
    page = build_report(data(hostile=HOSTILE))
    assert page.count("<script") == 1
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
    page = build_report(data(findings=[finding(f"{i:04}") for i in range(MOST_FINDINGS + 3)], findings_total=5_000))
    assert page.count("<article") == MOST_FINDINGS
    assert "4,200 more" in page
    assert "803 warnings" in page


def test_a_finding_names_its_known_issues():
    issue = {
        "finding_id": "a",
        "issue": 4215,
        "component": "broker",
        "versions": ["4.9.3" + HOSTILE],
        "mended_in": "4.9.4",
        "title": "the group consumes all of the queue again",
        "advice": "Until then: `mqadmin x -g GROUP`.",
    }
    found = [finding("a", consumer_group="pay"), finding("b")]
    page = build_report(data(findings=found, known_issues=[issue, issue | {"finding_id": "gone"}]))
    assert page.count("Known issue:") == 1
    assert (
        "apache/rocketmq#4215, mended in 4.9.4. It can explain this: the group consumes all of the queue again" in page
    )
    assert "mqadmin x -g pay</code>" in page
    assert page.count("<script") == 1


def test_commands_of_an_advice_name_the_finding_and_its_place():
    advice = "See `mqreplay explain FINDING` and `mqadmin x -g GROUP -t TOPIC -i CLIENT_ID`."
    page = build_report(data(findings=[finding(advice=advice, consumer_group="a'b$(x)")]))
    assert "<code>mqreplay explain 01234567</code>" in page
    # The group is quoted for the shell; the client is not known.
    quoted = "&#39;a&#39;&#34;&#39;&#34;&#39;b$(x)&#39;"
    assert f"<code>mqadmin x -g {quoted} -t pay-topic -i CLIENT_ID</code>" in page


def test_evidence_is_readable_and_says_how_to_see_the_rest():
    page = build_report(data())
    assert '<td class="t"><time>02:00:00.000</time></td><td class="name"><bdi>group pay-group</bdi></td>' in page
    assert "offset 63 -&gt; 28" in page
    assert "2 more rows: <code>mqreplay explain 01234567 --limit 3 --warehouse" in page


def test_failed_expectations_come_first_and_those_that_hold_are_folded():
    page = build_report(
        data(expectations=[expectation(passed=True), expectation(passed=False, table_name="silver.route")])
    )
    assert "1 of 2 hold" in page
    assert page.index("silver.route") < page.index("1 expectation holds")
    assert "1 expectation failed" in page


def test_unknown_differs_from_zero():
    page = build_report(data(breaks=Listing.of([offset_break(new_offset=None, redelivered_max=0)])))
    assert '<td class="n">–</td><td class="n">0</td></tr>' in page


def test_the_policy_allows_this_style_and_this_script_alone():
    page = build_report(data(hostile=HOSTILE))
    (header,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe" not in header
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in header
    assert " style=" not in page


def test_a_finding_without_instants_or_place():
    nowhere = dict.fromkeys(("consumer_group", "topic", "from_ts", "to_ts", "advice"))
    page = build_report(data(findings=[finding("1", **nowhere)]))
    assert "None" not in page
