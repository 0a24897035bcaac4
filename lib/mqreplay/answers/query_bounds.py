"""The bounds of a query. Loaded before anything heavy."""

from __future__ import annotations

from typing import Final

MOST_MEMORY: Final = 2 << 30  # bytes that a query and its rows take: twice what DuckDB counts for itself
TOO_LARGE: Final = "query: it needs more memory than it may use; add conditions or a LIMIT"
