"""A real Chromium for each file of tests, and the page of the sample night."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selenium import webdriver

from browser_page import chromium
from mqreplay.report.build import build_report


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A browser without a window."""
    yield from chromium(tmp_path_factory.mktemp("chromium"))


@pytest.fixture(scope="module")
def sample_html(night: Any) -> str:
    """The page of a cluster of the sample."""
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.night.page import page_data

    return build_report(page_data(Warehouse(night.root), "DefaultCluster"))
