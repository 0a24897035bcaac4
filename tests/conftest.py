"""Options of the whole test suite: pytest reads options only from a conftest above all tests."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --vectors."""
    parser.addoption(
        "--vectors",
        metavar="DIR",
        default=None,
        help="folder of *.jsonl and *.jsonl.gz vector files to check (default: tests/vectors/data)",
    )
