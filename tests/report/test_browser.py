"""The page in a real Chromium: nothing is fetched, everything can be reached, fits, and is fast."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from browser_page import Page
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.build import build_report
from mqreplay.report.data import Listing
from mqreplay.report.pictures.finding_times import draw_finding_times
from mqreplay.report.pictures.night import NightSpan, PictureData
from report_data import BEGAN, CHAIN, HOSTILE, data, evidence, finding, judged, offset_break, unjudged

SIZES = [(1280, 900), (400, 800)]


@pytest.fixture(params=SIZES, ids=str)
def opened(request, browser, tmp_path):
    return lambda html: Page(browser, html, tmp_path / "report.html", request.param)


@pytest.fixture
def page(browser, tmp_path):
    return Page(browser, build_report(data(findings=CHAIN)), tmp_path / "report.html", SIZES[0])


def assert_quiet_and_alone(page: Page) -> None:
    assert page.browser.get_log("browser") == []
    assert len(page.fetched()) == 1
    assert page.asks("document.scripts.length") == 1
    assert page.asks("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def visible_findings(page: Page) -> list[str]:
    return page.asks(
        "[...document.querySelectorAll('.finding')].filter(e => e.offsetParent && !e.classList.contains('context'))"
        ".map(e => e.id.slice(2))"
    )


def test_hostile_names_do_nothing(opened):
    page = opened(build_report(data(hostile=HOSTILE)))
    assert page.browser.title != "owned"
    assert HOSTILE[:20] in page.browser.title
    assert page.all("img") == []
    assert_quiet_and_alone(page)


def test_names_of_any_length_fit(opened):
    long = "%RETRY%" + "x" * 248
    place = {"consumer_group": long, "topic": long, "client_id": long, "summary": f"Group {long} lags."}
    page = opened(
        build_report(data(cluster=long, findings=[finding(**place)], evidence={"0123456789abcdef": evidence(long)}))
    )
    page.all(".evidence > summary")[0].click()
    assert_quiet_and_alone(page)


def test_everything_has_a_name_and_a_place(opened):
    page = opened(build_report(data()))
    assert [e.tag_name for e in page.all("h1, h2")] == ["h1", *["h2"] * 7]
    assert len(page.all("table:not(.lines)")) == len(page.all("table > caption"))
    ids = page.asks("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert {a.get_attribute("href").split("#")[1] for a in page.all("nav a")} <= set(ids)
    assert page.asks("[...document.querySelectorAll('#filters input, #filters select')].every(e => e.closest('label'))")
    assert page.all("html[lang=en]")
    assert_quiet_and_alone(page)


def test_the_keyboard_reaches_findings_and_evidence(page):
    page.browser.switch_to.active_element.send_keys(Keys.TAB)
    assert page.browser.switch_to.active_element.text == "Skip to the findings"
    page.all("#f-bb02 > summary")[0].send_keys(Keys.ENTER)
    assert page.all("#f-bb02 .inside")[0].is_displayed()
    page.all("#f-cc03 a.id")[0].send_keys(Keys.ENTER)
    assert page.asks("location.hash") == "#f-cc03"
    assert page.browser.switch_to.active_element.get_attribute("id") == "f-cc03"


def test_search_and_filters_keep_causes_as_context_and_go_into_the_fragment(page):
    assert visible_findings(page) == ["aa01", "bb02", "cc03", "dd04"]
    page.all("[name=q]")[0].send_keys("delivered AGAIN")
    assert visible_findings(page) == ["bb02"]
    assert page.all("#f-aa01")[0].is_displayed()
    assert page.asks("document.querySelector('#matches').textContent") == "1 of 4 findings match"
    assert page.asks("location.hash") == "#q=delivered%20AGAIN"
    page.all("[type=reset]")[0].click()
    page.browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert visible_findings(page) == ["aa01", "bb02", "cc03", "dd04"]
    assert page.asks("location.hash") == ""
    page.all("[value=warning] + span")[0].click()
    assert visible_findings(page) == ["cc03"]
    page.all("[name=kind]")[0].send_keys("broker_down")
    assert visible_findings(page) == []
    assert page.all("#nothing")[0].is_displayed()


def test_filters_hide_empty_lists_of_effects_and_say_how_many_match(page):
    effects = "[...document.querySelectorAll('.effects > p')].filter(e => e.offsetParent).map(e => e.textContent)"
    assert page.asks(effects) == ["1 finding follows from this"]
    page.all("[name=q]")[0].send_keys("offsets")
    assert page.asks(effects) == []
    page.all("[name=q]")[0].clear()
    page.all("[name=q]")[0].send_keys("delivered")
    assert page.asks(effects) == ["1 finding follows from this, 1 matches"]
    page.all("[type=reset]")[0].click()
    page.browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert page.asks(effects) == ["1 finding follows from this"]


def test_findings_over_the_night_show_what_the_filters_leave(browser, tmp_path):
    night = NightSpan(BEGAN, BEGAN.replace(minute=59))
    when = draw_finding_times(PictureData.of_night(Warehouse(str(tmp_path)), "c", night, CHAIN))
    page = Page(browser, build_report(data(findings=CHAIN, pictures=[when])), tmp_path / "report.html", SIZES[0])
    marks = (
        "[...document.querySelectorAll('#p-when a')].filter(e => getComputedStyle(e).visibility === 'visible')"
        ".map(e => e.getAttribute('href').slice(3)).sort()"
    )
    counts = (
        "Object.fromEntries([...document.querySelectorAll('#p-when .p-end')].map(e => [e.dataset.kind, e.textContent]))"
    )
    kind = CHAIN[1]["kind"]
    assert page.asks(marks) == ["aa01", "bb02", "cc03", "dd04"]
    page.all("[value=critical] + span")[0].click()
    assert page.asks(marks) == ["aa01"]
    assert page.asks(counts) == {"broker_down": "1", kind: "0"}
    assert [e.text for e in page.all("#p-when .faint")] == [kind, "0"]
    page.all("[type=reset]")[0].click()
    page.browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert page.asks(marks) == ["aa01", "bb02", "cc03", "dd04"]
    assert page.asks(counts) == {"broker_down": "1", kind: "3"}
    assert page.browser.get_log("browser") == []


@pytest.mark.parametrize(
    ("fragment", "found"),
    [
        ("severity=critical,info", ["aa01", "bb02", "dd04"]),
        ("consumer_group=pay", ["cc03", "dd04"]),
        ("topic=ship-topic", ["dd04"]),
        ("broker_name=broker-a", ["aa01"]),
        ("kind=broker_down", ["aa01"]),
        ("from=2026-11-21T02:30:00", ["cc03"]),
        ("to=02:30:00", ["aa01", "bb02", "dd04"]),
        ("q=cc03", ["cc03"]),
        ("kind=%E0%A4%A&q=stood", ["cc03"]),
    ],
)
def test_filters_are_read_from_the_fragment(page, fragment, found):
    page.asks(f"void (location.hash = {fragment!r})")
    page.browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert visible_findings(page) == found
    assert page.browser.get_log("browser") == []


def test_a_permalink_opens_and_marks_its_finding_whatever_the_filters(page, browser):
    browser.get(browser.current_url.split("#")[0] + "#f-bb02&severity=warning")
    browser.refresh()
    assert page.all("#f-bb02.target[open]")
    assert page.all("#f-bb02 .inside")[0].is_displayed()
    assert page.all("[value=warning]")[0].is_selected()
    page.all("#f-cc03 a.id")[0].click()
    assert page.asks("location.hash") == "#f-cc03&severity=warning"
    assert [e.get_attribute("id") for e in page.all(".target")] == ["f-cc03"]
    assert page.browser.get_log("browser") == []


def test_commands_name_the_warehouse_of_the_page_and_are_copied(browser, tmp_path):
    (tmp_path / "my night" / "report").mkdir(parents=True)
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    page = Page(browser, build_report(data(findings=CHAIN)), tmp_path / "my night" / "report" / "c.html", SIZES[0])
    command = f"mqreplay explain aa01 --warehouse '{tmp_path}/my night'"
    assert page.all("#f-aa01 .command")[0].text == command
    assert page.all("#fill") == []
    button = page.all("#f-aa01 .copy")[0]
    assert button.get_attribute("aria-label") == "Copy mqreplay explain aa01"
    button.click()
    page.browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert button.get_attribute("data-did") == "copied"
    page.all("[name=q]")[0].send_keys(Keys.CONTROL, "v")
    assert page.all("[name=q]")[0].get_attribute("value") == command
    assert_quiet_and_alone(page)


def test_commands_of_a_page_elsewhere_leave_the_warehouse_open(page):
    assert page.all("#f-aa01 .command")[0].text == "mqreplay explain aa01 --warehouse …"
    assert page.all("#fill")[0].is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(opened, scheme):
    found = [finding(s, severity=s) for s in ("critical", "warning", "info")]
    page = opened(build_report(data(findings=found, coverage=[judged(differing=3), unjudged()])))
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    texts = (
        ".tag.critical, .tag.warning, .tag.info, h1, .facts dt, .where, .id, .note, .fold > summary, caption, .notice"
    )
    for css in [*texts.split(", "), "td.bad", "td .unsure", ".filters label"]:
        assert contrast(page, css) >= 4.5, css
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


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
    page = opened(build_report(data(breaks=Listing.of([offset_break(topic="t" * 255)]))))
    page.asks("document.querySelectorAll('.fold').forEach(e => e.open = true)")
    assert_quiet_and_alone(page)
    assert page.asks("[...document.querySelectorAll('.wrap, .picture-box')].every(e => e.tabIndex === 0)")


def test_a_thousand_findings_and_ten_thousand_groups_stay_small_and_fast(browser, tmp_path):
    found = [
        finding(
            f"{i:08x}",
            consumer_group=f"group-{i * 10}",
            summary=f"Group group-{i * 10} stood still on pay-topic for 95 s.",
            severity=("critical", "warning", "info")[i % 3],
            follows_from=f"{i - 1:08x}" if i % 5 == 4 else None,
        )
        for i in range(1_000)
    ]
    commands = {f["finding_id"]: [f"mqreplay {name} --group {f['consumer_group']}" for name in "abc"] for f in found}
    proof = {f["finding_id"]: evidence() for f in found}
    many = data(
        findings=found, evidence=proof, findings_total=12_345, commands=commands, of_cluster=" --cluster orders"
    )
    html = build_report(many)
    assert len(html) < 3_000_000
    page = Page(browser, html, tmp_path / "report.html", SIZES[0])
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 100))")
    assert page.asks("performance.getEntriesByName('first-contentful-paint')[0].startTime") < 1_000
    assert "11,545 more" in page.asks("document.querySelector('#list').parentElement.textContent")
    took = page.asks(
        "(() => { const q = document.querySelector('[name=q]'); const t = performance.now(); q.value = 'group-4560';"
        "q.dispatchEvent(new Event('input', {bubbles: true})); void document.body.offsetHeight;"
        "return performance.now() - t })()"
    )
    assert took < 1_000
    assert visible_findings(page) == [f"{456:08x}"]
    assert_quiet_and_alone(page)


def test_the_sample_night(night, sample_html, opened):
    page = opened(sample_html)
    outcome = night.outcomes["DefaultCluster"]
    assert page.all("h1")[0].text == outcome.verdict
    assert len(page.all(".finding")) == len(outcome.findings)
    assert "2026-11-21 02:39:52 – 02:58:22" in page.all("header")[0].text
    assert len(sample_html) < 3_000_000
    assert_quiet_and_alone(page)


def test_every_picture_of_the_sample_is_drawn_and_its_marks_lead_to_findings(sample_html, browser, tmp_path):
    page = Page(browser, sample_html, tmp_path / "report.html", SIZES[0])
    names = [e.get_attribute("id") for e in page.all("figure")]
    assert names == [
        *("p-when", "p-brokers", "p-failovers", "p-lag", "p-offsets", "p-owners", "p-allocation", "p-slaves")
    ]
    drawn = "#p-brokers .p-down, #p-lag .p-line, #p-offsets .p-break, #p-owners .p-double, #p-owners .p-hatch"
    for css in [
        *drawn.split(", "),
        "#p-allocation .p-got",
        "#p-slaves .p-slave",
        "#p-slaves .p-limit",
        ".judged .p-agree",
    ]:
        assert page.asks(f"document.querySelector({css!r}).getBoundingClientRect().width") > 0, css
    marked = page.asks("[...document.querySelectorAll('.picture a')].map(a => a.getAttribute('href').slice(1))")
    assert len(marked) > 50
    assert page.asks(
        "[...document.querySelectorAll('.picture a')].every(a => document.querySelector(a.hash || a.href.baseVal))"
    )
    page.all("#p-brokers a")[0].send_keys(Keys.ENTER)
    target = page.all(".target")[0].get_attribute("id")
    assert page.asks("location.hash") == f"#{target}"
    back = page.all(f"#{target} .seen a")[0]
    assert back.get_attribute("href").endswith("#p-brokers")
