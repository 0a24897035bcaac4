"""Recordings of several clusters."""

from __future__ import annotations

from pathlib import Path

import pytest

from estate_recordings import CLUSTERS, KINDS, copied, small_recording


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of one recording a cluster, and of two that are none."""
    folder = tmp_path_factory.mktemp("recordings")
    small_recording(folder / "a", "a", KINDS[:2])
    for cluster in CLUSTERS[1:]:
        copied(folder / "a", folder / cluster, cluster)
    (folder / "empty").mkdir()
    return folder


@pytest.fixture(scope="module")
def four(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the recordings of so many clusters that tasks do them."""
    folder = tmp_path_factory.mktemp("four")
    copied(recordings / "a", folder / "d", "d")
    return [*(str(recordings / name) for name in CLUSTERS), str(folder / "d")]
