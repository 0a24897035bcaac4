"""The import of a folder of shapes, for tests that @shape names."""

from __future__ import annotations

from pathlib import Path

import pytest

from import_shapes import Imported, import_shape


@pytest.fixture
def imported(request: pytest.FixtureRequest, tmp_path: Path) -> Imported:
    """What came of the folder that @shape names."""
    name, options = request.param
    return import_shape(name, tmp_path, *options)
