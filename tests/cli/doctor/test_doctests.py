"""The examples in the doctor's modules hold."""

from __future__ import annotations

import doctest

import pytest

from mqreplay.cli.doctor import kind, on_load, verdict


@pytest.mark.parametrize("module", [kind, on_load, verdict], ids=lambda module: module.__name__)
def test_examples(module) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
