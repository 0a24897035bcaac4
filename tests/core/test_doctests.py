"""The examples in the docstrings of the pure wing are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import types

import mqreplay.core
import mqreplay.decode
from each_case import for_each


def modules() -> list[str]:
    packages: list[types.ModuleType] = [mqreplay.core, mqreplay.decode]
    return [
        found.name for package in packages for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]


@for_each(modules())
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), report=True)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples of {name} fail"
