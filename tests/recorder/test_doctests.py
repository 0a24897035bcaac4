"""The examples in the modules that write a recording hold."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "bundle.fields",
        "bundle.replacements",
        "recorder.record_files",
        "recorder.recording_folder",
        "recorder.store_folder",
    ],
)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"mqreplay.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
