"""The examples in the modules that make text to print."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from mqreplay.answers import page_path
from mqreplay.language import language
from mqreplay.machine import crash
from mqreplay.terminal import console, suppositions
from mqreplay.words import printable, quantity

MODULES = [crash, console, language, page_path, printable, quantity, suppositions]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
