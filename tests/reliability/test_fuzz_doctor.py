"""The doctor examines any file: it always has an answer."""

from __future__ import annotations

import os

import pytest

from reliability import fuzz_targets
from reliability.fuzz_session import INPUTS, fuzzed

SHORT = 120  # inputs to each target


@pytest.mark.long
def test_some_inputs() -> None:
    assert fuzzed("doctor", SHORT) == {target.name: SHORT for target in fuzz_targets.doctor()}


@pytest.mark.long
def test_very_many_inputs() -> None:
    assert set(fuzzed("doctor", INPUTS, os.cpu_count() or 1).values()) == {INPUTS}
