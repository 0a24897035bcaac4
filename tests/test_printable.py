"""The examples in the modules that make text to print."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from mqreplay import crash, printable, quantity
from mqreplay.cli import estate_lines, prediction_text
from mqreplay.language import language
from mqreplay.night import file_name
from mqreplay.night.anonymise import columns

MODULES = [columns, crash, estate_lines, file_name, language, prediction_text, printable, quantity]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
