"""Progress lines of a long step."""

from __future__ import annotations

import threading
import time

from mqreplay.lake.ticker import Ticker


def test_it_speaks_while_it_is_open_and_not_after():
    said, spoken = [], threading.Event()

    def line(seconds):
        spoken.set()
        return f"{seconds:.0f}"

    with Ticker(said.append, line, every_s=0.01):
        assert spoken.wait(10)
    whole = list(said)
    time.sleep(0.05)
    assert said == whole
    assert whole[0] == "0"


def test_nothing_new_is_not_said():
    said, asked = [], threading.Event()
    with Ticker(said.append, lambda _: asked.set(), every_s=0.01):
        assert asked.wait(10)
    assert said == []


def test_something_short_says_nothing():
    said = []
    with Ticker(said.append, str, every_s=60):
        pass
    assert said == []
