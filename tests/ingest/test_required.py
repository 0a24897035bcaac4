"""The decoder of a kind requires all required columns of its silver table, so no line can end a run."""

from __future__ import annotations

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.decode.recording.files import RECORD_TABLES
from mqreplay.lake.contract import load_contracts

OURS = {"cluster", "day", "record_id", "source_digest"}  # made by ingest, and never lacking


@pytest.mark.parametrize("stem", RECORD_TABLES)
def test_a_line_that_is_taken_has_what_its_table_needs(stem: str) -> None:
    columns = load_contracts()[RECORD_TABLES[stem]].columns
    assert {c.name for c in columns if not c.nullable} - OURS <= set(KINDS[stem].required)
