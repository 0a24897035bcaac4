"""The page and the overview in Chinese: all of their own texts, the same links, and names as they were recorded."""

from __future__ import annotations

import ast
import dataclasses
import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

import mqreplay.report as report_package
from browser_page import Page
from made_warehouse import CLUSTER, made_warehouse
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import ENGLISH, fields, language, templates
from mqreplay.moment.instant import Recorded
from mqreplay.moment.night_states import night_states
from mqreplay.night.page import page_data
from mqreplay.report.build import build_report
from mqreplay.report.cursor_states import HOW, TITLES, Part, PartTable
from mqreplay.report.data import Listing, Place
from mqreplay.report.evidence_rows import EvidenceRow, EvidenceRows
from mqreplay.report.evidence_words import who
from mqreplay.report.failover_words import NOT_SEEN, STEP_TEXTS
from mqreplay.report.overview import build_overview
from mqreplay.report.pictures import pictures
from mqreplay.report.pictures.drawing import TEXTS
from mqreplay.words.severity import WORST_FIRST
from overview_data import estate
from page_texts import english, texts_of
from report_data import BEGAN, HOSTILE, data, finding, gap, judged, offset_break, unjudged

CLUSTERS = ("DefaultCluster", "grid-cluster")  # of the sample
WORDS = ("none", "queue", "warning", "all")  # of the catalogue: they may be names, too
FOLDER = Path(report_package.__file__).parent
CALLS = ("filled", "counted", "cut")


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def pages(night: Any, cluster: str) -> dict[str, str]:
    """Return the page of a sample's night by language."""
    warehouse = Warehouse(night.root)
    return {lang: build_report(page_data(warehouse, cluster, lang=lang)) for lang in (ENGLISH, "zh")}


def test_no_english_sentence_is_left(pages: dict[str, str]) -> None:
    left = english(pages["zh"])
    shown = "\n".join(f"{part}: {text}" for part in sorted(left) for text in sorted(left[part])[:20])
    assert not left, shown
    assert '<html lang="zh-Hans">' in pages["zh"]


def test_links_ids_and_elements_are_the_same(pages: dict[str, str]) -> None:
    en, zh = texts_of(pages[ENGLISH]), texts_of(pages["zh"])
    assert [each for each in zh.ids if each != "words"] == en.ids
    assert zh.links == en.links
    assert {**zh.elements, "template": zh.elements["template"] - 1} == en.elements


def test_the_page_works_in_chinese(pages: dict[str, str], browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = Page(browser, pages["zh"], tmp_path / "report.html", (1280, 900))
    assert page.browser.get_log("browser") == []
    assert len(page.fetched()) == 1
    total = len(page.all(".finding"))
    assert page.asks("document.querySelector('#matches').textContent") == f"共 {total} 个问题"
    short = page.asks("document.querySelector('.moment .short').textContent")
    assert re.fullmatch(r"\d+ 个 Broker 中 \d+ 个正常 · \d+ 个未结束的问题( · \d+ 个队列无持有者)?", short)
    page.browser.execute_script("document.querySelector('[data-do=play]').click()")
    assert page.all("[data-do=play]")[0].get_attribute("aria-label") == "暂停"
    page.browser.execute_script("document.querySelector('[data-do=play]').click()")
    at = page.asks("document.querySelector('[name=cursor]').value")
    page.browser.execute_script("location.hash = 't=02:50:00'")
    page.browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert page.asks("document.querySelector('[name=cursor]').value") != at
    page.all("[value=info] + span")[0].click()
    info = len(page.all(".finding.info"))
    assert page.asks("document.querySelector('#matches').textContent") == f"共 {total} 个问题，{info} 个符合筛选条件"
    page.browser.execute_script("document.querySelector('.copy').click()")
    assert page.asks("getComputedStyle(document.querySelector('.copy'), '::before').content") != '"copy"'
    assert english(page.asks("document.body.outerHTML")) == {}
    assert page.asks("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.browser.get_log("browser") == []


def test_names_of_a_picture_do_not_overlap_in_chinese(
    pages: dict[str, str], browser: webdriver.Chrome, tmp_path: Path
) -> None:
    page = Page(browser, pages["zh"], tmp_path / "report.html", (1280, 900))
    overlaps = page.asks(
        """[...document.querySelectorAll('svg.picture')].flatMap(svg => {
            const boxes = [...svg.querySelectorAll('.p-legend text')]
                .map(e => [e.textContent, e.getBoundingClientRect()]);
            return boxes.flatMap(([text, a], i) => boxes.slice(i + 1)
                .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 4 < b.bottom && b.top + 4 < a.bottom)
                .map(([other]) => `${text} ${other}`));
        })"""
    )
    assert overlaps == []


def test_the_overview_works_in_chinese(browser: webdriver.Chrome, tmp_path: Path) -> None:
    html = build_overview(estate(clusters=6), "zh")
    # Failures and verdicts are those of the test's data.
    assert english(html).keys() <= {"finding", "reason"}
    en, zh = texts_of(build_overview(estate(clusters=6))), texts_of(html)
    assert ([each for each in zh.ids if each != "words"], zh.links) == (en.ids, en.links)
    page = Page(browser, html, tmp_path / "index.html", (1280, 900))
    page.all("[name=q]")[0].send_keys("cluster-3")
    assert page.asks("document.querySelector('#matches').textContent") == "共 6 个集群，1 个符合条件"
    assert page.browser.get_log("browser") == []


def counts_of_names(html: str) -> dict[str, int]:
    shown = [text for _, text in texts_of(html).found]
    return {name: shown.count(name) for name in WORDS}


def test_names_that_are_words_of_the_catalogue_stay() -> None:
    place = {"consumer_group": "none", "topic": "queue", "broker_name": "warning", "client_id": "all"}
    client = {"client_id": "all", "consumer_group": "none"}
    named = [who(row, language("zh")) for row in ({"client_id": "none"}, client)]
    rows = [EvidenceRow("silver.pull", BEGAN, name, "", {}) for name in named]
    part = Part(Place("group", "none"), tables=[PartTable.of("c", ["h"], [["all"], [Place("topic", "queue")]])])
    where = {name: place[name] for name in ("consumer_group", "topic", "broker_name")}
    many = data(
        cluster="none",
        findings=[finding(**place)],
        evidence={"0123456789abcdef": EvidenceRows(rows, 2)},
        parts=[part],
        breaks=Listing.of([offset_break(**where)]),
        gaps=Listing.of([gap(**where)]),
    )
    zh = build_report(dataclasses.replace(many, lang="zh"))
    assert zh.count("<bdi>none</bdi>") == build_report(many).count("<bdi>none</bdi>") >= 6
    for name in WORDS:
        assert f"<bdi>{name}</bdi>" in zh
    assert "<bdi>all（分组 none）</bdi>" in zh
    assert 'data-consumer_group="none"' in zh


def test_names_in_pictures_stay(tmp_path: Path) -> None:
    at = [BEGAN + dt.timedelta(minutes=minutes) for minutes in (0, 10, 20, 30)]
    owner = {"day": BEGAN.date(), "consumer_group": "none", "topic": "queue", "broker_name": "warning", "queue_id": 0}
    rows = [
        owner | {"client_id": "all", "from_ts": at[0], "to_ts": at[1]},
        owner | {"client_id": "none", "from_ts": at[2], "to_ts": at[3]},
        owner | {"client_id": "none", "queue_id": 1, "from_ts": at[0], "to_ts": at[3]},
    ]
    file = {"kind": "pull_log", "status": "read", "path": "a", "first_ts": at[0], "last_ts": at[3]}
    file |= {"rows_in": 1, "rows_out": 1, "rows_quarantined": 0, "rows_duplicate": 0}
    warehouse = made_warehouse(tmp_path, {"bronze.source_file": [file], "gold.queue_owner": rows})
    states = night_states(Recorded(warehouse, CLUSTER, at[0], at[3]))
    (svg,) = [p.svg for p in pictures(warehouse, CLUSTER, [], language("zh"), states) if p.name == "owners"]
    texts = re.findall(r"<text[^>]*>([^<]*)", svg)
    assert {"none", "queue", "warning / 0", "all", "无人持有"} <= set(texts)
    assert "warning / 0：无人持有，02:10:00 – 02:20:00，10 分钟" in svg
    assert "warning / 0: all, 02:00:00 – 02:10:00，10 分钟" in svg


def test_hostile_names_are_escaped_and_nothing_invisible_is_left() -> None:
    page = build_report(dataclasses.replace(data(hostile=HOSTILE), lang="zh"))
    assert page.count("<script") == 1
    assert "onerror=" not in re.sub(r"&lt;.*?&gt;", "", page)
    assert not set("\u202e\u2066\x00\x1b\u200b\ufeff") & set(page)


def test_a_page_without_anything_and_one_that_was_not_judged() -> None:
    for covered in ([judged(), unjudged()], data().coverage):
        page = build_report(dataclasses.replace(data(findings=[], coverage=covered), lang="zh"))
        assert "page" not in english(page)  # the data of the test are in English
    nothing = dataclasses.replace(data(findings=[], coverage=[unjudged()]), lang="zh")
    assert "<title>orders：部分内容未能判断" in build_report(nothing)


def texts_in_code() -> Iterator[str]:
    """Yield the texts that templates, scripts and modules of the report ask for."""
    for path in FOLDER.glob("templates/*.html"):
        source = path.read_text("utf-8")
        yield from re.findall(r'\b_\("([^"]+)"', source)
        yield from (f"{{n}} {noun}" for noun in re.findall(r'\|counted\("([^"]+)"', source))
    for path in FOLDER.glob("templates/*.js"):
        yield from re.findall(r'\bmqText\("([^"]+)"', path.read_text("utf-8"))
    for path in FOLDER.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(getattr(call, "func", None), "attr", getattr(getattr(call, "func", None), "id", ""))
            if not isinstance(call, ast.Call) or name not in CALLS:
                continue
            text = call.args[1 if name in ("counted", "cut") and len(call.args) > 1 else 0]
            if isinstance(text, ast.Constant) and not path.name.startswith(("verdict", "coverage", "evidence")):
                yield f"{{n}} {text.value}" if name == "counted" else str(text.value)
    for text in TEXTS.values():
        yield from filter(None, (text.title, text.caption, text.why_empty, text.left_out, *text.legend.values()))
        yield from (f"{{n}} {nouns[0]}" for nouns in (text.others, text.parts) if nouns)
    yield from (text for both in (*STEP_TEXTS.values(), *NOT_SEEN.values()) for text in both if text)
    yield from (step.replace("_", " ") for step in STEP_TEXTS)
    yield from (*HOW.values(), *TITLES.values(), *WORST_FIRST, *(f"{word} finding" for word in WORST_FIRST))


def test_each_text_of_the_report_has_a_translation() -> None:
    known = templates("zh")
    assert sorted(set(texts_in_code()) - known.keys()) == []


def test_translations_have_the_fields_of_their_texts() -> None:
    assert [text for text, made in templates("zh").items() if not fields(made).keys() <= fields(text).keys()] == []
