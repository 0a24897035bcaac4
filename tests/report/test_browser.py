"""The page in a real Chromium: nothing runs, nothing is fetched, everything can be reached and fits."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from browser_page import Page, chromium
from mqreplay.report.build import build_report
from report_data import HOSTILE, data, finding, offset_break

SIZES = [(1280, 900), (400, 800)]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from chromium(tmp_path_factory.mktemp("chromium"))


@pytest.fixture(params=SIZES, ids=str)
def opened(request, browser, tmp_path):
    return lambda html: Page(browser, html, tmp_path / "report.html", request.param)


def assert_still_and_alone(page: Page) -> None:
    assert page.browser.get_log("browser") == []
    assert len(page.fetched()) == 1
    assert page.asks("document.scripts.length") == 0
    assert page.asks("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_hostile_names_do_nothing(opened):
    page = opened(build_report(data(hostile=HOSTILE)))
    assert page.browser.title != "owned"
    assert HOSTILE[:20] in page.browser.title
    assert page.all("img") == []
    assert_still_and_alone(page)


def test_names_of_any_length_fit(opened):
    long = "%RETRY%" + "x" * 248
    place = {"consumer_group": long, "topic": long, "client_id": long, "summary": f"Group {long} lags."}
    page = opened(build_report(data(cluster=long, findings=[finding(**place)])))
    assert_still_and_alone(page)


def test_everything_has_a_name_and_a_place(opened):
    page = opened(build_report(data()))
    assert [e.tag_name for e in page.all("h1, h2")] == ["h1", *["h2"] * 7]
    assert len(page.all("table")) == len(page.all("table > caption")) == len(page.all("[role=region][aria-label]"))
    ids = page.asks("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert {a.get_attribute("href").split("#")[1] for a in page.all("nav a")} <= set(ids)
    assert page.all("html[lang=en]")
    assert_still_and_alone(page)


def test_the_keyboard_reaches_findings_and_evidence(opened):
    page = opened(build_report(data()))
    page.browser.switch_to.active_element.send_keys(Keys.TAB)
    assert page.browser.switch_to.active_element.text == "Skip to the findings"
    fold = page.all("article details summary")[0]
    assert not page.all("article details li")[0].is_displayed()
    fold.send_keys(Keys.ENTER)
    assert page.all("article details li")[0].is_displayed()
    page.all(".timeline a")[0].send_keys(Keys.ENTER)
    assert page.asks("location.hash") == "#f-0123456789abcdef"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(opened, scheme):
    page = opened(build_report(data(findings=[finding(s, severity=s) for s in ("critical", "warning", "info")])))
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for css in (".tag.critical", ".tag.warning", ".tag.info", ".where", "summary", "caption", "td.bad", "td.good"):
        assert contrast(page, css) >= 4.5, css


def contrast(page: Page, css: str) -> float:
    """The ratio of WCAG between an element's text and the first background behind it."""
    return page.asks(
        f"""(function (e) {{
            const parts = c => c.match(/[\\d.]+/g).map(Number);
            const light = c => parts(c).slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
            let behind = e;
            while (parts(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
            const [a, b] = [light(getComputedStyle(e).color), light(getComputedStyle(behind).backgroundColor)];
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        }})(document.querySelector({css!r}))"""
    )


def test_wide_tables_scroll_by_themselves(opened):
    from mqreplay.report.data import Listing

    page = opened(build_report(data(breaks=Listing.of([offset_break(topic="t" * 255)]))))
    assert_still_and_alone(page)
    assert page.asks("[...document.querySelectorAll('.wrap')].every(e => e.tabIndex === 0)")


def test_the_sample_night(night, opened):
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.report.collect import collect

    page = opened(build_report(collect(Warehouse(night.root), "DefaultCluster")))
    outcome = night.outcomes["DefaultCluster"]
    critical = sum(f["severity"] == "critical" for f in outcome.findings)
    warnings = sum(f["severity"] == "warning" for f in outcome.findings)
    headline = f"DefaultCluster: {critical} critical findings, {warnings} warnings"
    assert page.all("h1")[0].text == headline
    assert len(page.all("article.finding")) == len(page.all(".timeline a")) == len(outcome.findings)
    assert "Recorded 2026-11-21 02:39:52.427 – 02:58:22.550 UTC" in page.all("header")[0].text
    assert_still_and_alone(page)
