"""The severities of findings, the same for all kinds."""

from __future__ import annotations

from typing import Final

SEVERITIES: Final = ("info", "warning", "critical")  # the worst last
WORST: Final = SEVERITIES[-1]
WORST_FIRST: Final = SEVERITIES[::-1]
