"""The Arrow schema that a silver table's rows are given in."""

from __future__ import annotations

import pyarrow as pa

from mqreplay.decode.recording.files import RECORD_TABLES
from mqreplay.lake.contract import load_contracts


def schema_of(kind: str) -> pa.Schema:
    """The columns of a kind's silver table."""
    return load_contracts()[RECORD_TABLES[kind]].arrow_schema
