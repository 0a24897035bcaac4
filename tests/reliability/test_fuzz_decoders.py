"""Every decoder, given lines and files that are damaged: a row that fits its table, or an error of ours."""

from __future__ import annotations

import os

import pytest

from reliability import fuzz_targets
from reliability.fuzz_session import INPUTS, fuzzed

SHORT = 25  # inputs to each target


def test_some_inputs() -> None:
    assert fuzzed("decoders", SHORT) == {target.name: SHORT for target in fuzz_targets.decoders()}


@pytest.mark.long
def test_very_many_inputs() -> None:
    assert set(fuzzed("decoders", INPUTS, os.cpu_count() or 1).values()) == {INPUTS}
