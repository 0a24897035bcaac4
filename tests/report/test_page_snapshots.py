"""What a reader sees of the pages of the sample's night, in a real Chromium (tests/snapshots.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from browser_page import Page
from snapshots import assert_is_snapshot

SIZE = (1280, 900)
LAST_RUN = re.compile(r"(?!2026-11-21)\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?")  # the sample is of that day
OPEN = "document.querySelectorAll('details').forEach(each => each.open = true)"
TEXT = "document.body.innerText"


def lines_of(page: Page) -> str:
    """Return the text of the page with all parts unfolded, without empty lines."""
    page.browser.execute_script(OPEN)
    lines = (re.sub(r"\s+", " ", line).strip() for line in page.asks(TEXT).splitlines())
    return "\n".join(line for line in lines if line)


@pytest.mark.browser
def test_page_of_a_cluster(night: Any, browser: webdriver.Chrome, tmp_path: Path) -> None:
    html = Path(night.root, "report", "DefaultCluster.html").read_text(encoding="utf-8")
    assert_is_snapshot("page", lines_of(Page(browser, html, tmp_path / "page.html", SIZE)))


@pytest.mark.browser
def test_overview(night: Any, browser: webdriver.Chrome, tmp_path: Path) -> None:
    html = Path(night.root, "report", "index.html").read_text(encoding="utf-8")
    text = lines_of(Page(browser, html, tmp_path / "page.html", SIZE))
    assert_is_snapshot("overview", LAST_RUN.sub("MOMENT", text))
