"""What the tests of interrupted runs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from reliability.file_faults import compile_layer
from reliability.histories import Histories
from reliability.recordings import Recordings, make_recordings


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """file_faults.c, compiled."""
    return compile_layer(tmp_path_factory.mktemp("layer"))


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """The small recording in all its states."""
    return make_recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(scope="session")
def histories(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Histories]:
    """Clean runs to compare with, for each step."""
    return {
        step: Histories(recordings, tmp_path_factory.mktemp(f"clean-{step}"), step) for step in ("ingest", "nightly")
    }
