"""Packet captures that are damaged, cut, shuffled: records or an error of ours, in bounded time and memory."""

from __future__ import annotations

import os

import pytest

from reliability import fuzz_targets
from reliability.fuzz_session import INPUTS, fuzzed

SHORT = 500  # inputs to each target


@pytest.mark.long
def test_some_inputs() -> None:
    assert fuzzed("captures", SHORT) == {target.name: SHORT for target in fuzz_targets.captures()}


@pytest.mark.long
def test_very_many_inputs() -> None:
    assert set(fuzzed("captures", INPUTS, os.cpu_count() or 1).values()) == {INPUTS}
