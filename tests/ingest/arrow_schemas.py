"""The Arrow schema that a silver table's rows are given in."""

from __future__ import annotations

import pyarrow as pa

from mqreplay.lake.contract import load_contracts
from mqreplay.recording_files import RECORD_TABLES


def schema_of(kind: str) -> pa.Schema:
    """The columns of a kind's silver table."""
    return load_contracts()[RECORD_TABLES[kind]].arrow_schema
