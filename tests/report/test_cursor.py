"""The moving cursor in a real Chromium: one time axis for all pictures, and the state beside them."""

from __future__ import annotations

import datetime as dt
import random
import re
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser_page import Page
from mqreplay.answers.state import state_at
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.night.page import page_data
from mqreplay.report.build import build_report

SIZES = [(1280, 900), (400, 800)]
CURSORS = "[...document.querySelectorAll('.p-cursor')].map(e => e.getAttribute('x1'))"
VIEWS = "[...document.querySelectorAll('svg.timed')].map(e => [e.dataset.from, e.dataset.to].join())"
GROUPS = """Object.fromEntries([...document.querySelectorAll('.moment tbody tr')].map(row => [row.dataset.group,
    [...row.querySelectorAll('td.n')].map(cell => cell.textContent)]))"""
FRAME = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"


@pytest.fixture(scope="module")
def sample(night: Any) -> Recorded:
    return recorded(Warehouse(night.root), "DefaultCluster")


@pytest.fixture(scope="module")
def html(sample: Recorded) -> str:
    return build_report(page_data(sample.warehouse, sample.cluster))


@pytest.fixture(params=SIZES, ids=str)
def page(request: Any, browser: webdriver.Chrome, html: str, tmp_path: Any) -> Page:
    return Page(browser, html, tmp_path / "report.html", request.param)


@pytest.fixture
def wide(browser: webdriver.Chrome, html: str, tmp_path: Any) -> Page:
    return Page(browser, html, tmp_path / "report.html", SIZES[0])


def goes_to(page: Page, moment: str) -> None:
    page.browser.execute_script(f"location.hash = 't={moment}'")
    page.browser.execute_async_script(FRAME)


def presses(page: Page, what: str, times: int = 1) -> None:
    for _ in range(times):
        page.browser.execute_script(f"document.querySelector('[data-do={what}]').click()")
    page.browser.execute_async_script(FRAME)


def number(text: str) -> int | None:
    return None if text == "–" else int(text.replace(",", ""))


def assert_quiet_and_alone(page: Page) -> None:
    assert page.browser.get_log("browser") == []
    assert len(page.fetched()) == 1
    assert page.asks("document.scripts.length") == 1
    assert page.asks("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_the_cursor_goes_through_all_pictures_and_into_the_fragment(page: Page) -> None:
    goes_to(page, "02:51:40")
    assert page.all("[name=moment]")[0].get_attribute("value") == "02:51:40"
    places = page.asks(CURSORS)
    assert len(places) == len(page.all("svg.timed")) == 6
    assert len(set(places)) == 1
    page.browser.execute_script("document.querySelector('#p-lag .picture-box').focus()")
    ActionChains(page.browser).send_keys(Keys.ARROW_RIGHT).perform()
    later = page.asks(CURSORS)
    assert len(set(later)) == 1
    assert float(later[0]) > float(places[0])
    shown = page.all("[name=moment]")[0].get_attribute("value")
    assert shown > "02:51:40"
    assert page.asks("location.hash") == f"#t={shown}"
    assert_quiet_and_alone(page)


def test_a_pointer_moves_the_cursor_and_marks_still_lead_to_findings(wide: Page) -> None:
    picture = wide.all("#p-lag svg")[0]
    wide.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
    ActionChains(wide.browser).move_to_element(picture).click().perform()
    first = wide.asks("location.hash")
    assert re.fullmatch(r"#t=02:4\d:\d\d|#t=02:5\d:\d\d", first)
    ActionChains(wide.browser).move_to_element(picture).click_and_hold().move_by_offset(90, 0).release().perform()
    assert wide.asks("location.hash") > first
    wide.all("#p-brokers a[href^='#f-']")[0].send_keys(Keys.ENTER)
    assert wide.all(".target.finding")


def test_all_pictures_zoom_and_pan_together(page: Page) -> None:
    goes_to(page, "02:51:40")
    down = "#p-brokers rect.p-down:not(.p-hatched)"
    bars = f"[...document.querySelectorAll('{down}')].map(e => Number(e.getAttribute('width')))"
    whole = page.asks(bars)
    presses(page, "in", 2)
    views = page.asks(VIEWS)
    assert len(views) == 6
    assert len(set(views)) == 1
    begin, end = map(int, views[0].split(","))
    assert end - begin == pytest.approx((18 * 60 + 30) * 1_000 / 1.8**2, rel=0.01)
    assert page.asks(bars)[0] == pytest.approx(whole[0] * 1.8**2, rel=0.02)
    ticks = page.asks("[...document.querySelectorAll('#p-lag .p-tick')].map(e => e.textContent)")
    assert 3 <= len(ticks) <= 8
    presses(page, "right")
    assert int(page.asks(VIEWS)[0].split(",")[0]) > begin
    presses(page, "all")
    assert len(set(page.asks(VIEWS))) == 1
    assert page.asks(bars) == pytest.approx(whole, abs=0.2)
    assert_quiet_and_alone(page)


def test_the_keyboard_and_the_wheel_zoom(wide: Page) -> None:
    goes_to(wide, "02:45:00")
    wide.browser.execute_script("document.querySelector('#p-owners .picture-box').focus()")
    ActionChains(wide.browser).send_keys("+", "+").perform()
    wide.browser.execute_async_script(FRAME)
    begin, end = map(int, wide.asks(VIEWS)[0].split(","))
    ActionChains(wide.browser).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    wide.browser.execute_async_script(FRAME)
    assert int(wide.asks(VIEWS)[0].split(",")[0]) > begin
    wide.browser.execute_script(
        "document.querySelector('#p-lag svg').dispatchEvent(new WheelEvent('wheel', {deltaY: -200, ctrlKey: true,"
        "clientX: 600, bubbles: true, cancelable: true}))"
    )
    wide.browser.execute_async_script(FRAME)
    nearer = wide.asks(VIEWS)
    assert len(set(nearer)) == 1
    first, last = map(int, nearer[0].split(","))
    assert last - first < end - begin


def test_pictures_open_at_the_names_of_their_rows_on_a_phone(
    browser: webdriver.Chrome, html: str, tmp_path: Any
) -> None:
    page = Page(browser, html, tmp_path / "report.html", (390, 800))
    page.browser.execute_async_script(FRAME)
    scrolled = "[...document.querySelectorAll('.picture-box')].map(box => box.scrollLeft)"
    wider = "[...document.querySelectorAll('.picture-box')].filter(box => box.scrollWidth > box.clientWidth).length"
    assert page.asks(wider) > 1
    assert set(page.asks(scrolled)) == {0}
    page.browser.execute_script(
        "const cursor = document.querySelector('[name=cursor]'); cursor.value = cursor.max;"
        "cursor.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.browser.execute_async_script(FRAME)
    assert max(page.asks(scrolled)) > 0


def touches(page: Page, kind: str, *places: tuple[float, float]) -> None:
    points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
    page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_two_fingers_zoom_and_pan_and_one_scrolls(browser: webdriver.Chrome, html: str, tmp_path: Any) -> None:
    page = Page(browser, html, tmp_path / "report.html", (390, 800))
    touch = {"enabled": True, "maxTouchPoints": 2}
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", touch)
    try:
        page.browser.execute_script("document.querySelector('#p-lag svg').scrollIntoView({block: 'start'})")
        box = page.asks("(b => [b.left, b.top, b.width])(document.querySelector('#p-lag svg').getBoundingClientRect())")
        y = box[1] + 60
        assert box[0] < 60
        touches(page, "touchStart", (240, y))
        touches(page, "touchStart", (240, y), (290, y))
        for step in range(1, 11):
            touches(page, "touchMove", (240 - 6 * step, y), (290 + 6 * step, y))
        touches(page, "touchEnd")
        page.browser.execute_async_script(FRAME)
        views = page.asks(VIEWS)
        assert len(set(views)) == 1
        begin, end = map(int, views[0].split(","))
        whole = (18 * 60 + 30) * 1_000
        assert end - begin == pytest.approx(whole * 50 / 170, rel=0.05)
        assert page.asks("visualViewport.scale") == 1
        touches(page, "touchStart", (180, y), (300, y))
        for step in range(1, 11):
            touches(page, "touchMove", (180 + 5 * step, y), (300 + 5 * step, y))
        touches(page, "touchEnd")
        page.browser.execute_async_script(FRAME)
        earlier, until = map(int, page.asks(VIEWS)[0].split(","))
        assert until - earlier == pytest.approx(end - begin, rel=0.02)
        assert earlier < begin
        touches(page, "touchStart", (200, y))
        for step in range(1, 6):
            touches(page, "touchMove", (200, y - 20 * step))
        touches(page, "touchEnd")
        page.browser.execute_async_script("setTimeout(arguments[0], 300)")
        assert page.asks(VIEWS)[0] == f"{earlier},{until}"
    finally:
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_the_panel_shows_the_state_that_at_shows(wide: Page, sample: Recorded) -> None:
    chosen = random.Random(37)
    seconds = int((sample.last - sample.first).total_seconds())
    for _ in range(12):
        at = (sample.first + dt.timedelta(seconds=chosen.randrange(1, seconds))).replace(microsecond=0)
        goes_to(wide, f"{at:%H:%M:%S}")
        state = state_at(sample, at)
        up = state.brokers.filter("up").height
        short = wide.all(".moment .short")[0].text
        assert short.startswith(f"{up} of {state.brokers.height} brokers up"), at
        assert re.search(rf"\b{state.findings.height} findings? open", short), at
        # Lag is known at the instant that the panel names.
        of_lag = wide.asks("document.querySelector('.moment .state').textContent")
        known = re.search(r"lag as of (\d\d:\d\d:\d\d)", of_lag)
        assert known
        groups = {row["consumer_group"]: row for row in state.groups.iter_rows(named=True)}
        shown = wide.asks(GROUPS)
        assert len(shown) == min(len(groups), 8), at
        for name, (members, without, _) in shown.items():
            assert number(members) == groups[name]["members"], (at, name)
            if groups[name]["without_owner"] is not None:
                assert number(without) == groups[name]["without_owner"], (at, name)


@pytest.mark.parametrize("part_ms", [0, 499, 500, 999])
def test_the_instant_is_the_asked_one_wherever_in_a_second_the_recording_begins(
    browser: webdriver.Chrome, html: str, tmp_path: Any, part_ms: int
) -> None:
    first = re.search(r'{"f":(\d+)', html)
    assert first
    shifted = html.replace(first[0], f'{{"f":{int(first[1]) // 1000 * 1000 + part_ms}')
    moved = Page(browser, shifted, tmp_path / "report.html", SIZES[0])
    shown = "document.querySelector('[name=moment]').value"
    # It opens at the first whole second of the most severe finding, which begins 11:38.571 after the recording.
    assert moved.asks(shown) == ("02:51:31" if part_ms == 0 else "02:51:32")
    goes_to(moved, "02:53:07")
    assert moved.asks(shown) == "02:53:07"


def test_play_moves_the_cursor_and_stops(wide: Page) -> None:
    goes_to(wide, "02:45:00")
    presses(wide, "play")
    wide.browser.execute_async_script("setTimeout(arguments[0], 700)")
    assert wide.all("[data-do=play]")[0].get_attribute("aria-pressed") == "true"
    presses(wide, "play")
    stopped = wide.all("[name=moment]")[0].get_attribute("value")
    assert stopped > "02:45:00"
    assert wide.asks("location.hash") == f"#t={stopped}"
    wide.browser.execute_async_script("setTimeout(arguments[0], 300)")
    assert wide.all("[name=moment]")[0].get_attribute("value") == stopped


def test_an_instant_can_be_written_and_a_wrong_one_is_marked(wide: Page) -> None:
    for words, moment in (("2:50:10", "#t=02:50:10"), ("02:49", "#t=02:49:00")):
        wide.browser.execute_script(
            "const e = document.querySelector('[name=moment]'); e.value = arguments[0];"
            "e.dispatchEvent(new Event('change'))",
            words,
        )
        assert wide.asks("location.hash") == moment
    wide.browser.execute_script(
        "const e = document.querySelector('[name=moment]'); e.value = 'noon'; e.dispatchEvent(new Event('change'))"
    )
    assert wide.all("[name=moment][aria-invalid=true]")


def test_findings_and_pictures_lead_to_parts_that_are_there(page: Page) -> None:
    missing = page.asks(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(e => e.getAttribute('href').slice(1))"
        ".filter(id => !id.includes('=') && !document.getElementById(id))"
    )
    assert missing == []
    page.browser.execute_script("document.querySelector('#p-lag .p-place').dispatchEvent("
        "new MouseEvent('click', {bubbles: true, cancelable: true}))")  # fmt: skip
    target = page.all(".part.target")[0]
    assert target.get_attribute("open")
    assert target.get_attribute("id").startswith("group-")
    assert page.asks("document.querySelector('#broker-broker-a').textContent.includes('mqreplay ready broker-a')")
    assert page.asks("document.querySelector('#group-order-group').textContent.includes('--group order-group')")
    page.browser.execute_script("document.querySelector('.then').click()")
    assert page.asks("location.hash").startswith("#")
    assert_quiet_and_alone(page)


def test_the_page_is_whole_without_scripts(browser: webdriver.Chrome, html: str, tmp_path: Any) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page = Page(browser, html, tmp_path / "report.html", SIZES[0])
        assert not page.all("#moment")[0].is_displayed()
        assert not page.all(".then")[0].is_displayed()
        assert page.all("#p-brokers .p-tick")[0].is_displayed()
        assert page.all("#group-order-group > summary")[0].is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_panel_can_be_read_in_both_schemes(wide: Page, scheme: str) -> None:
    from report.test_browser import contrast

    features = [{"name": "prefers-color-scheme", "value": scheme}]
    wide.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        goes_to(wide, "02:50:40")
        for css in (".moment .short", ".moment h3", ".moment a", ".moment .odd td", ".moment .dim", ".moment button"):
            assert contrast(wide, css) >= 4.5, css
    finally:
        wide.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
