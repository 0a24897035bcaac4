"""The overview of all clusters: read from tables, and as a page in a real Chromium."""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path

import pytest

from browser_page import Page
from made_warehouse import made_warehouse
from mqreplay.answers.findings import judged_days
from mqreplay.report.overview import ClusterRow, Overview, build_overview, headline, overview
from overview_data import DAYS, LAST, cell, cluster, estate
from report_data import HOSTILE

SIZES = [(1280, 900), (400, 800)]
AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)


@pytest.fixture(params=SIZES, ids=str)
def opened(request, browser, tmp_path):
    return lambda data: Page(browser, build_overview(data), tmp_path / "index.html", request.param)


def row(number: str, day: dt.date, severity: str, **differs: object) -> dict[str, object]:
    return {"finding_id": number, "day": day, "severity": severity, "from_ts": AT, "follows_from": None} | differs


def test_each_night_has_its_worst_finding(tmp_path: Path) -> None:
    first, second, third = DAYS[-3:]
    found = [
        row("1", first, "warning"),
        row("2", second, "warning"),
        row("3", second, "critical"),
        row("4", second, "critical", follows_from="3"),
        row("5", second, "info"),
        row("6", third, "critical", cluster="d"),
        row("7", DAYS[0], "critical"),
    ]
    warehouse = made_warehouse(tmp_path, {"gold.finding": found})
    rows = [
        cluster("c", days=frozenset({DAYS[0], first, second}), since=second),
        cluster("d", days=frozenset({third}), failure="it failed"),
    ]
    made = overview(warehouse, rows, nights=3)
    assert [each.cluster for each in made.clusters] == ["d", "c"]
    assert made.days == [first, second, third]
    assert [(each.level, dict(each.counts), each.href) for each in made.cells["c"]] == [
        ("warning", {"warning": 1}, "#f-1"),
        ("critical", {"critical": 2, "warning": 1, "info": 1}, "c.html#f-3"),
        ("none", {}, None),
    ]
    assert [each.level for each in made.cells["d"]] == ["none", "none", "critical"]
    assert [(each.cluster, each.row["finding_id"], each.href) for each in made.findings] == [
        ("d", "6", "d.html#f-6"),
        ("c", "3", "c.html#f-3"),
        ("c", "2", "c.html#f-2"),
        ("c", "1", None),
    ]


def test_what_the_list_leaves_out_is_counted_with_a_link(tmp_path: Path) -> None:
    first, second = DAYS[-2:]
    found = [row(f"{day.day}{n}", day, "critical" if n < 2 else "warning") for day in (first, second) for n in range(8)]
    found += [row("x", second, "info"), row("y", second, "warning", follows_from="210")]
    warehouse = made_warehouse(tmp_path, {"gold.finding": found})
    made = overview(warehouse, [cluster("c", days=frozenset({first, second}), since=second)], nights=3)
    assert [(each.row["day"], each.more, each.href) for each in made.findings if each.more] == [
        (second, 5, f"c.html#severity=critical,warning&from={second}T00:00:00&to={second}T23:59:59"),
        (first, 5, None),
    ]
    assert [each.more for each in made.findings] == [0, 0, 0, 5] * 2  # last of its night
    page = build_overview(made)
    assert page.count("5 more findings of this night") == 2
    assert f"mqreplay findings --cluster c --severity warning --since {first} --until {second} --warehouse" in page
    assert "of earlier nights" not in page
    assert "7 more findings of earlier nights" in build_overview(dataclasses.replace(made, cut=7))


def test_a_night_leads_only_to_findings_that_the_list_has(tmp_path: Path) -> None:
    day = DAYS[-1]
    warehouse = made_warehouse(tmp_path, {"gold.finding": [row("1", day, "info")]})
    (cells,) = overview(warehouse, [cluster("c", page=None, days=frozenset({day}))], nights=1).cells.values()
    assert [(each.level, each.href) for each in cells] == [("info", None)]


def test_days_that_were_replayed_are_judged(tmp_path: Path) -> None:
    rows = [
        {"step": "replay", "scope": "2026-11-21"},
        {"step": "validate", "scope": "undated"},
        {"step": "replay", "scope": "2026-11-20", "cluster": "d"},
    ]
    found = judged_days(made_warehouse(tmp_path, {"bronze.step": rows}))
    assert found == {"c": {LAST}, "d": {LAST - dt.timedelta(days=1)}}


def test_the_worst_state_leads() -> None:
    assert headline([]) == "no clusters"
    rows = [cluster("a", level="warning"), cluster("b", level="quiet", failure="x"), cluster("c", level="warning")]
    assert headline(rows) == "3 clusters: 1 failed, 2 with warnings"


def test_the_same_data_give_the_same_page() -> None:
    assert build_overview(estate()) == build_overview(estate())
    assert "No night was judged" in build_overview(Overview([ClusterRow("a")]))
    assert "+00:00" not in build_overview(estate())


def assert_quiet_and_alone(page: Page) -> None:
    assert page.browser.get_log("browser") == []
    assert len(page.fetched()) == 1
    assert page.asks("document.scripts.length") == 1
    assert page.asks("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def shown(page: Page, css: str) -> list[str]:
    return page.asks(f"[...document.querySelectorAll('{css}')].filter(e => e.offsetParent).map(e => e.dataset.cluster)")


def test_everything_has_a_name_and_fits(opened) -> None:
    page = opened(estate(clusters=20))
    assert [e.tag_name for e in page.all("h1, h2")] == ["h1", "h2", "h2", "h2"]
    assert len(page.all("table")) == len(page.all("table > caption")) == 3
    ids = page.asks("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    targets = page.asks("[...document.querySelectorAll('a[href^=\"#\"]')].map(e => e.getAttribute('href').slice(1))")
    assert set(targets) <= set(ids)
    assert page.asks("[...document.querySelectorAll('.heat .cell')].every(e => e.getAttribute('aria-label'))")
    assert len(page.all(".heat .cell")) == 20 * len(DAYS)
    assert_quiet_and_alone(page)


def test_hostile_names_do_nothing(opened) -> None:
    page = opened(estate(HOSTILE))
    assert page.browser.title != "owned"
    assert page.all("img") == []
    assert_quiet_and_alone(page)


def test_names_of_any_length_fit(opened) -> None:
    long = "x" * 255
    assert_quiet_and_alone(opened(Overview([cluster(long, failure=long)], DAYS, {long: [cell(day) for day in DAYS]})))


def test_search_keeps_the_clusters_of_what_matches(browser, tmp_path) -> None:
    page = Page(browser, build_overview(estate(clusters=6)), tmp_path / "index.html", SIZES[0])
    assert len(shown(page, ".found")) == 6
    page.all("[name=q]")[0].send_keys("Cluster-3")
    assert shown(page, ".found") == shown(page, ".night") == ["cluster-3"]
    assert set(shown(page, ".listed")) == {"cluster-3"}
    assert page.asks("document.querySelector('#matches').textContent") == "1 of 6 clusters match"
    assert page.asks("location.hash") == "#q=Cluster-3"
    page.all("[name=q]")[0].send_keys(" nothing")
    assert shown(page, ".found") == []
    assert page.all("#nothing")[0].is_displayed()
    page.all("[type=reset]")[0].click()
    page.browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert len(shown(page, ".found")) == 6
    assert_quiet_and_alone(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(browser, tmp_path, scheme) -> None:
    from report.test_browser import contrast

    cells = [
        cell(day, level, 1) for day, level in zip(DAYS, ("critical", "warning", "info", "quiet", "none"), strict=False)
    ]
    data = Overview([cluster("a", failure="x"), cluster("b", level="unknown")], DAYS[:5], {"a": cells, "b": cells})
    page = Page(browser, build_overview(data), tmp_path / "index.html", SIZES[0])
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for level in ("critical", "warning", "info", "quiet", "none"):
        assert contrast(page, f".heat .cell.{level}") >= 4.5, level
    for css in (".estate .bad", ".tag.failed", ".tag.unknown", "caption", "h1"):
        assert contrast(page, css) >= 4.5, css
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_it_is_printed_whole(browser, tmp_path) -> None:
    page = Page(browser, build_overview(estate(clusters=20)), tmp_path / "index.html", SIZES[0])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not page.all("#filters")[0].is_displayed()
        assert page.asks("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert len(printed) > 20_000
