"""What the tests of interrupted runs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reliability.file_faults import compile_layer
from reliability.histories import Histories
from reliability.recordings import Recordings, make_recordings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """file_faults.c, compiled."""
    return compile_layer(tmp_path_factory.mktemp("layer"))


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """The small recording in all its states."""
    return make_recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(scope="session")
def histories(
    spark: SparkSession, recordings: Recordings, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Histories]:
    """Clean runs to compare with, for each step."""
    return {
        step: Histories(spark, recordings, tmp_path_factory.mktemp(f"clean-{step}"), step)
        for step in ("ingest", "nightly")
    }
