"""The page on a phone and on paper, in a real Chromium."""

from __future__ import annotations

from dataclasses import replace

from browser_page import Page
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.build import build_report
from mqreplay.report.pictures.finding_times import draw_finding_times
from mqreplay.report.pictures.night import NightSpan, PictureData
from report_data import BEGAN, CHAIN, data, finding


def test_on_a_phone_contents_stay_targets_are_large_and_pictures_show_the_mark(browser, tmp_path):
    night = NightSpan(BEGAN, BEGAN.replace(minute=59))
    when = draw_finding_times(PictureData.of_night(Warehouse(str(tmp_path)), "c", night, CHAIN))
    html = build_report(data(findings=CHAIN, pictures=[replace(when, name="times")]))
    page = Page(browser, html, tmp_path / "report.html", (390, 844))
    page.browser.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")
    small = (
        "[...document.querySelectorAll('a, button, summary, select, input:not([type=checkbox])')]"
        ".filter(each => !each.closest('svg, .skip')).map(each => [each.textContent, each.getBoundingClientRect()])"
        ".filter(([, box]) => box.width && (box.width < 24 || box.height < 24)).map(([text, ]) => text)"
    )
    assert page.asks(small) == []
    page.browser.execute_script("scrollTo(0, document.body.scrollHeight)")
    assert page.asks("document.querySelector('nav').getBoundingClientRect().top") == 0
    page.browser.execute_script("document.querySelector('#f-cc03 .seen a[href=\"#p-times\"]').click()")
    mark = page.asks("document.querySelector('#p-times a[href=\"#f-cc03\"]').getBoundingClientRect().left")
    assert 0 < mark < 390
    assert page.asks("document.querySelector('#p-times .picture-box').scrollLeft") > 0
    assert page.asks("document.documentElement.scrollWidth") <= 390


def test_a_finger_hits_a_mark_of_a_picture_within_24_px(browser, tmp_path):
    night = NightSpan(BEGAN, BEGAN.replace(minute=59))
    when = draw_finding_times(PictureData.of_night(Warehouse(str(tmp_path)), "c", night, CHAIN))
    html = build_report(data(findings=CHAIN, pictures=[replace(when, name="times")]))
    page = Page(browser, html, tmp_path / "report.html", (390, 844))
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    middle = "document.querySelector('#p-times a[href=\"#f-cc03\"] .p-mark').getBoundingClientRect()"
    try:
        for away, hit in ((30, ""), (11, "#f-cc03")):
            page.browser.execute_script("document.querySelector('#f-cc03 .seen a[href=\"#p-times\"]').click()")
            page.browser.execute_script("history.replaceState(null, '', '#')")
            x, y, height = page.asks(f"(box => [box.x + box.width / 2, box.y + box.height / 2, box.height])({middle})")
            assert height / 2 < 11
            assert page.asks(f"document.elementFromPoint({x}, {y + away}).closest('a')") is None
            tap = {"type": "touchStart", "touchPoints": [{"x": x, "y": y + away}]}
            browser.execute_cdp_cmd("Input.dispatchTouchEvent", tap)
            browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            page.browser.execute_async_script("setTimeout(arguments[0], 300)")
            assert page.asks("location.hash") == hit
    finally:
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_no_part_of_a_printed_page_is_higher_than_half_a_sheet(browser, tmp_path):
    """What is not broken leaves at most its own height empty. A sheet is A4 at 96 dots an inch, without its margins."""
    night = NightSpan(BEGAN, BEGAN.replace(minute=59))
    many = [finding(f"f{n}", kind=f"kind_{n}") for n in range(60)]
    when = draw_finding_times(PictureData.of_night(Warehouse(str(tmp_path)), "c", night, many))
    page = Page(browser, build_report(data(findings=many, pictures=[when])), tmp_path / "report.html", (718, 1047))
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    heights = (
        "[...document.querySelectorAll('*')].filter(each => getComputedStyle(each).breakInside === 'avoid')"
        ".map(each => each.getBoundingClientRect().height)"
    )
    assert 0 < max(page.asks(heights)) < 1047 / 2
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_sample_is_printed_whole(sample_html, browser, tmp_path):
    page = Page(browser, sample_html, tmp_path / "report.html", (800, 1100))  # A4 by its margins
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.asks("document.documentElement.scrollWidth - innerWidth") <= 0
        width = page.asks("document.querySelector('main').clientWidth")
        assert all(
            box <= width for box in page.asks("[...document.querySelectorAll('.picture')].map(e => e.clientWidth)")
        )
        assert not page.all("#filters")[0].is_displayed()
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert len(printed) > 50_000
