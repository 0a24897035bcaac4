"""The examples in the modules that make text to print."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from mqreplay import crash, printable, quantity
from mqreplay.cli import prediction_text
from mqreplay.night import file_name


@pytest.mark.parametrize(
    "module", [crash, file_name, prediction_text, printable, quantity], ids=lambda module: module.__name__
)
def test_examples(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
