"""Where what travels with mqreplay lies: contracts, the sample, settings."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def schemas_dir() -> Path:
    """The folder of the table contracts."""
    return _ROOT / "schemas"


def sample_dir() -> Path:
    """The folder of the sample recordings."""
    return _ROOT / "data" / "sample"


def conf_dir() -> Path:
    """The folder of the shipped settings."""
    return _ROOT / "conf"
