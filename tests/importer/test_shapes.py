"""Each folder of shapes has a test, and each test a folder."""

from __future__ import annotations

import re

from import_shapes import SHAPES
from tests_shared import ROOT

NAMED = re.compile(r'shape\(\s*"([^"]+)"')


def test_every_folder_has_a_case_and_every_case_a_folder():
    of_imports = (ROOT / "tests/importer").rglob("test_shapes_*.py")
    modules = [*of_imports, ROOT / "tests/night/test_nights_of_shapes.py"]
    assert len(modules) > 3
    named = {name for module in modules for name in NAMED.findall(module.read_text(encoding="utf-8"))}
    folders = {folder.name for folder in SHAPES.iterdir() if folder.is_dir()}
    assert named == folders
    assert len(folders) >= 54
    assert all(any(file.is_file() for file in (SHAPES / name).rglob("*")) for name in folders)
