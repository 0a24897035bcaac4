"""A page in a real Chromium."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync""".split()  # noqa: SIM905


class Page:
    """A report opened from a file, as an operator would."""

    def __init__(self, browser: webdriver.Chrome, html: str, path: Path, size: tuple[int, int]) -> None:
        path.write_text(html, encoding="utf-8")
        self.browser = browser
        screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(path.as_uri())

    def all(self, css: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def asks(self, script: str) -> Any:
        return self.browser.execute_script(f"return {script}")

    def fetched(self) -> list[str]:
        """Return the requests of the browser since the page was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]


def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """Yield a browser with a new profile."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "install chromium and chromium-driver (make test does)"
    assert driver, "install chromium and chromium-driver (make test does)"
    options = Options()
    options.binary_location = binary
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()
