"""The examples in the report's modules hold."""

from __future__ import annotations

import doctest

import pytest

from mqreplay import evidence_advice
from mqreplay.report import build, coverage, evidence_words, text, timeline, undetermined


@pytest.mark.parametrize(
    "module",
    [build, coverage, evidence_advice, evidence_words, text, timeline, undetermined],
    ids=lambda module: module.__name__,
)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
