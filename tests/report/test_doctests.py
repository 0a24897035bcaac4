"""The examples in the report's modules hold."""

from __future__ import annotations

import doctest

import pytest

from mqreplay.report import build, text, timeline


@pytest.mark.parametrize("module", [build, text, timeline], ids=lambda module: module.__name__)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
