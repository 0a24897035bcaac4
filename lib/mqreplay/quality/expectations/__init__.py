"""Expectations that Great Expectations does not ship, or not for DuckDB, under the names the contracts use.

Importing this package registers them; each file is one expectation with its metric in SQL. What an expectation must
know of other tables comes to it as a suite parameter (``{"$PARAMETER": name}``), filled in from quality/evidence.py
when the suite runs.
"""

from __future__ import annotations

from mqreplay.quality.expectations.freshness import ExpectTableToBeFresh
from mqreplay.quality.expectations.offset_continuity import ExpectOffsetContinuity
from mqreplay.quality.expectations.row_conditions import (
    ExpectCheckConstraintToHold,
    ExpectCompoundColumnsToBeUnique,
    ExpectKnownBrokers,
)
from mqreplay.quality.expectations.rows_conserved import ExpectRowsConserved

__all__ = [
    "ExpectCheckConstraintToHold",
    "ExpectCompoundColumnsToBeUnique",
    "ExpectKnownBrokers",
    "ExpectOffsetContinuity",
    "ExpectRowsConserved",
    "ExpectTableToBeFresh",
]
