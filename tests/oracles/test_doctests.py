"""The examples in the docstrings of the oracles are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import oracles
from each_case import for_each


@for_each([module.name for module in pkgutil.walk_packages(oracles.__path__, "oracles.") if "test_" not in module.name])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), report=True)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples of {name} fail"
