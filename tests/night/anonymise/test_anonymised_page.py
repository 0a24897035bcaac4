"""A page without names: no name of the recording is on it, and it says the same as the page with names."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browser_page import Page, chromium
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.anonymise.warehouse import AnonymisedWarehouse
from mqreplay.night.page import anonymised_data, page_data
from mqreplay.report.build import build_report
from mqreplay.report.data import ReportData
from tests_shared import SAMPLE

RECORDINGS = {"DefaultCluster": "orders-4.9.7", "grid-cluster": "bulk-5.3.3"}
# Fields of the sample's files with a name, and those with the keys of a message.
NAMED = re.compile(
    r'"(?:topic|consumer_?[gG]roup|group(?:_?[nN]ame)?|broker_?[nN]ame|cluster|client_?[iI]d|keys?|tags)"\s*:\s*"([^"]+)"'
)
LISTED = re.compile(r'"(?:cid_all|consumerIdList|groups|producer_groups)"\s*:\s*\[([^\]]*)\]')
OFFSET_KEY = re.compile(r'"([^"@]+)@([^"@{}]+)"\s*:\s*\{')
ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
MESSAGE_ID = re.compile(r'"(?:offset_)?msg_id"\s*:\s*"([0-9A-F]{8})[0-9A-F]{24}"')
OF_ROCKETMQ = re.compile(
    r"TBW102|SCHEDULE_TOPIC_XXXX|(?i:RMQ_SYS_).*|BenchmarkTest|SELF_TEST_TOPIC|OFFSET_MOVED_EVENT|CID_.*|TOOLS_CONSUMER"
    r"|TRANS_CHECK_MAX_TIME_TOPIC|.*_REPLY_TOPIC|FILTERSRV_CONSUMER|__MONITOR_CONSUMER|SELF_TEST_C_GROUP"
    r"|DEFAULT_(?:CONSUMER|PRODUCER)|CLIENT_INNER_PRODUCER"
)
PREFIX = re.compile(r"%(?:RETRY|DLQ)%")
CODE = re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL)
CLIENT_OR_ADDRESS = re.compile(r"\S+@\S+|(?:\d+\.){3}\d+(?::\d+)?")
FIGURE = re.compile(r"(?<![\w.-])\d[\d:.,]*(?![\w-])")


def names_of(recording: str) -> set[str]:
    """Return the names in a sample recording, read from the text of its files."""
    found: set[str] = set()
    for path in sorted((SAMPLE / recording).rglob("*.json*")):
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace").replace('\\"', '"')
        found.update(NAMED.findall(text), ADDRESS.findall(text), MESSAGE_ID.findall(text))
        found.update(name for listed in LISTED.findall(text) for name in re.findall(r'"([^"]+)"', listed))
        if "ffset" in path.name:
            found.update(name for pair in OFFSET_KEY.findall(text) for name in pair)
    bare = {PREFIX.sub("", name) for name in found}
    hosts = {name.partition("@")[0] for name in bare if "@" in name}
    return {name for name in bare | hosts if len(name) > 1 and not OF_ROCKETMQ.fullmatch(name)}


def on_page(name: str, page: str) -> bool:
    """Return whether a name is on a page, not as a part of a longer word."""
    return name in page and re.search(rf"(?<![0-9A-Za-z]){re.escape(name)}(?![0-9A-Za-z])", page) is not None


def as_read(page: str) -> str:
    """Return a page without its style and script, with characters in place of references to them."""
    return html.unescape(CODE.sub("", page))


@pytest.fixture(scope="module")
def tables(night: Any) -> AnonymisedWarehouse:
    return AnonymisedWarehouse(Warehouse(night.root))


@pytest.fixture(scope="module", params=RECORDINGS, ids=str)
def both(request: pytest.FixtureRequest, night: Any, tables: AnonymisedWarehouse) -> tuple[str, ReportData, ReportData]:
    """The cluster, and the data of its page with and without names."""
    cluster = str(request.param)
    return cluster, page_data(Warehouse(night.root), cluster), anonymised_data(tables, cluster)


def test_no_name_of_the_recordings_is_on_the_page(both: tuple[str, ReportData, ReportData]) -> None:
    cluster, real, anonymised = both
    names = set().union(*map(names_of, RECORDINGS.values()))
    assert len(names) > 10_000  # keys of messages are most of them
    before, after = as_read(build_report(real)), as_read(build_report(anonymised))
    seen = {name for name in names if on_page(name, before)}
    assert {cluster, *(f["consumer_group"] for f in real.findings if f["consumer_group"])} <= seen
    assert len(seen) > 10
    assert {name for name in names if on_page(name, after)} == set()


def test_the_page_says_the_same_about_other_names(both: tuple[str, ReportData, ReportData]) -> None:
    _, real, anonymised = both
    same = ("finding_id", "kind", "severity", "from_ts", "to_ts", "broker_id", "queue_id", "confidence", "follows_from")
    assert [[f[name] for name in same] for f in real.findings] == [[f[n] for n in same] for f in anonymised.findings]
    for before, after in zip(real.findings, anonymised.findings, strict=True):
        assert figures(before["summary"]) == figures(after["summary"])
        assert before["advice"] == after["advice"]
    # A capture beside the recording has a path, which is a name.
    assert [replace(each, helps=()) for each in real.coverage] == [replace(e, helps=()) for e in anonymised.coverage]
    assert "data/sample" not in str(anonymised.coverage)
    assert (real.judgements, real.files, real.expectations) == (
        anonymised.judgements,
        anonymised.files,
        anonymised.expectations,
    )
    pages = build_report(real), build_report(anonymised)
    for mark in ('class="finding', "<svg", "<rect", "<path", "<tr", "<a ", 'class="part"', 'class="command"'):
        assert pages[0].count(mark) == pages[1].count(mark), mark
    states = [json.loads(data.states) for data in (real, anonymised)]
    assert [[f[0], *f[4:]] for f in states[0]["o"]] == [[f[0], *f[4:]] for f in states[1]["o"]]
    assert sorted(json.dumps(g[2:]) for g in states[0]["g"]) == sorted(json.dumps(g[2:]) for g in states[1]["g"])


def figures(summary: str) -> list[str]:
    return FIGURE.findall(CLIENT_OR_ADDRESS.sub("", summary))


def test_the_page_says_so_at_its_top(both: tuple[str, ReportData, ReportData]) -> None:
    _, real, anonymised = both
    assert "Names are replaced." not in build_report(real)
    page = build_report(anonymised)
    assert page.index("Names are replaced.") < page.index("<h1>")


@pytest.mark.long
def test_names_have_the_same_replacement_on_all_pages_and_in_all_runs(night: Any, tables: AnonymisedWarehouse) -> None:
    again = AnonymisedWarehouse(Warehouse(night.root))
    for cluster in RECORDINGS:
        pages = [build_report(anonymised_data(each, cluster)) for each in (tables, again)]
        assert pages[0] == pages[1]
    assert tables.anonymised("DefaultCluster") != tables.anonymised("grid-cluster")
    for column in ("consumer_group", "topic", "broker_name", "client_id"):
        names = Warehouse(night.root).read("silver.pull").select(column).collect()[column]
        new = tables.read("silver.pull").select(column).collect()[column]
        pairs = set(zip(names, new, strict=True))
        assert len(pairs) == names.n_unique() == new.n_unique()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from chromium(tmp_path_factory.mktemp("chromium"))


@pytest.mark.browser
def test_the_page_opens_and_its_links_lead_somewhere(
    both: tuple[str, ReportData, ReportData], browser: Any, tmp_path: Path
) -> None:
    _, _, anonymised = both
    page = Page(browser, build_report(anonymised), tmp_path / "page.html", (1280, 900))
    links = page.asks("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    ids = set(page.asks("[...document.querySelectorAll('[id]')].map(e => e.id)"))
    assert len(links) > 100
    inside = [link[1:] for link in links if link.startswith("#") and "=" not in link]
    assert set(inside) <= ids
    assert [link for link in links if not link.startswith("#")] == []
    page.asks("void (location.hash = document.querySelector('details.part').id)")
    page.browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert page.all("details.part[open]")
    assert page.all("#anonymised")[0].is_displayed()
    assert browser.get_log("browser") == []
    assert len(page.fetched()) == 1
