"""The examples in the report's modules hold."""

from __future__ import annotations

import doctest

import pytest

from mqreplay import evidence_advice
from mqreplay.report import (
    build,
    evidence_groups,
    evidence_values,
    evidence_words,
    known_issue,
    next_step,
    text,
    undetermined,
)
from mqreplay.report.cursor import json_text
from mqreplay.report.pictures import night, owners, scales, spans

MODULES = [
    build,
    evidence_advice,
    evidence_groups,
    evidence_values,
    evidence_words,
    json_text,
    known_issue,
    next_step,
    text,
    undetermined,
    owners,
    night,
    scales,
    spans,
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
