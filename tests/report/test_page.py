"""The report: a pure page of escaped values, and that page in a real Chromium."""

from __future__ import annotations

import dataclasses
import datetime as dt
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from mqreplay.report.build import build_report
from mqreplay.report.collect import Listing, ReportData, collect

HOSTILE = "<script>document.title='owned'</script>\u202eevil&\"'"
BEGAN = dt.datetime(2026, 11, 21, 2, 0)


def finding(**differs: object) -> dict[str, object]:
    base: dict[str, object] = {
        "finding_id": "0123456789abcdef",
        "kind": "offset_rewind",
        "severity": "warning",
        "consumer_group": "pay-group",
        "topic": "pay-topic",
        "broker_name": None,
        "broker_id": None,
        "queue_id": None,
        "client_id": None,
        "from_ts": BEGAN,
        "to_ts": BEGAN + dt.timedelta(minutes=5),
        "confidence": 0.9,
        "summary": "Offsets went back.",
        "advice": "See who reset them.",
        "evidence": [{"table_name": "gold.offset_continuity", "key": "queue_id=0"}],
    }
    return base | differs


def data(**differs: object) -> ReportData:
    base = ReportData("orders", BEGAN, BEGAN + dt.timedelta(hours=1), [finding()])
    return dataclasses.replace(base, **differs)


def test_same_data_same_bytes():
    assert build_report(data()) == build_report(data())


def test_a_quiet_night_says_so():
    assert "A quiet night" in build_report(data(findings=[]))


def test_every_value_is_escaped():
    place = dict.fromkeys(("consumer_group", "topic", "broker_name", "client_id", "summary", "advice"), HOSTILE)
    page = build_report(data(cluster=HOSTILE, findings=[finding(**place)]))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_long_list_says_how_to_see_the_rest():
    row = dict.fromkeys(("path", "detail_key", "code", "reason", "advice"), "x") | {"line_number": 7}
    page = build_report(data(quarantine=Listing([row], 1201)))
    assert "1,200 more" in page
    assert "SELECT * FROM bronze.quarantine" in page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium, "install chromium and chromium-driver (make test does)"
    assert driver, "install chromium and chromium-driver (make test does)"
    options = Options()
    options.binary_location = chromium
    for flag in (
        "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        f"--disable-component-update --disable-sync --user-data-dir={tmp_path_factory.mktemp('chromium')}"
    ).split():
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


def opened(browser, page: str, tmp_path, width: int = 1280):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    browser.set_window_size(width, 900)
    browser.get(path.as_uri())
    return browser


def test_hostile_names_do_nothing_in_a_browser(browser, tmp_path):
    place = dict.fromkeys(("consumer_group", "topic", "summary"), HOSTILE)
    page = opened(browser, build_report(data(cluster=HOSTILE, findings=[finding(**place)])), tmp_path)
    assert "owned" not in page.title.replace(HOSTILE, "")
    assert page.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 500])
def test_the_sample_night_in_a_browser(night, browser, tmp_path, width):
    from mqreplay.lake.warehouse import Warehouse

    shown = build_report(collect(Warehouse(night.spark, night.root), "DefaultCluster"))
    page = opened(browser, shown, tmp_path, width)
    assert page.find_element(By.TAG_NAME, "h1").text == "DefaultCluster: 2 critical findings, 5 warnings"
    assert len(page.find_elements(By.CSS_SELECTOR, "article.finding")) == 11
    assert page.get_log("browser") == []
    wide = page.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
    asked = page.execute_script("return performance.getEntriesByType('resource').map(r => r.name)")
    assert [name for name in asked if not name.startswith("data:")] == []
    page.find_element(By.CSS_SELECTOR, "article.finding details summary").click()
    assert page.find_element(By.CSS_SELECTOR, "article.finding details li").is_displayed()
