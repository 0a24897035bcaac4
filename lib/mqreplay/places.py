"""Where what travels with mqreplay lies: in the wheel beside this file, in a checkout at the root."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    in_wheel = _HERE / "shipped" / name
    return in_wheel if in_wheel.is_dir() else _HERE.parents[1] / name


def schemas_dir() -> Path:
    """The folder of the table contracts."""
    return _shipped("schemas")


def sample_dir() -> Path:
    """The folder of the sample recordings."""
    return _shipped("data/sample")


def conf_dir() -> Path:
    """The folder of the shipped settings."""
    return _shipped("conf")
