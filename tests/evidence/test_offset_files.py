"""Which copies hold the offsets of a broker: each form that a recording has."""

from __future__ import annotations

import polars as pl
import pytest

from mqreplay.evidence.offsets.queue_events import is_offset_file


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("consumerOffset.json", True),
        ("consumerOffset.json.bak", True),
        ("consumerOffset.jsonl.gz", True),
        ("lmqConsumerOffset.json", True),
        ("lmqConsumerOffset.json.bak", True),
        ("topics.json", False),
        ("delayOffset.json", False),
    ],
)
def test_each_form_of_a_brokers_offsets(name: str, expected: bool) -> None:
    of_broker = pl.DataFrame({"file_name": [name], "broker_id": [0]})
    of_client = pl.DataFrame(
        {"file_name": [name], "broker_id": [None]}, {"file_name": pl.String, "broker_id": pl.Int64}
    )
    assert of_broker.select(is_offset_file()).item() is expected
    assert not of_client.select(is_offset_file()).item()
