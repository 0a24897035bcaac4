"""Folders of the data files of mqreplay: in the package in a wheel, at the root in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def _shipped(name: str) -> Path:
    in_wheel = _PACKAGE / "shipped" / name
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parents[1] / name


def schemas_dir() -> Path:
    """Return the folder of the table contracts."""
    return _shipped("schemas")


def sample_dir() -> Path:
    """Return the folder of the sample recordings."""
    return _shipped("data/sample")


def conf_dir() -> Path:
    """Return the folder of the shipped settings."""
    return _shipped("conf")
