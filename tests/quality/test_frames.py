"""How a table's rows are fetched: few as pandas, many left to Spark, whichever is found out first."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.session import LARGE_NIGHT, RECORDED
from mqreplay.quality.frames import fetch, to_pandas
from quality_rows import filled

STEPS = [{"cluster": "c", "step": "replay", "scope": str(day)} for day in range(3)]


@pytest.fixture
def large(spark):
    """A session fitted to a large night."""
    before = spark.conf.get(RECORDED, None)
    spark.conf.set(RECORDED, str(LARGE_NIGHT))
    yield spark
    spark.conf.unset(RECORDED) if before is None else spark.conf.set(RECORDED, before)


@pytest.mark.parametrize("looks_few", [True, False], ids=["read at once", "counted first"])
@pytest.mark.parametrize(("limit", "on_spark"), [(2, True), (3, False)])
def test_the_limit_alone_decides(large, looks_few, limit, on_spark) -> None:
    contract = load_contracts()["bronze.step"]
    frame = large.createDataFrame([filled(contract, row) for row in STEPS], contract.struct_type())
    rows = fetch(frame, contract, limit, looks_few=looks_few)
    assert (rows.on_spark, rows.count) == (on_spark, 3)
    assert rows.distinct("scope") == 3


def test_texts_that_differ_behind_a_nul_are_not_equal_in_pandas() -> None:
    rows = pa.table({"group": ["", "\0x", "\0y", None, "a\0b"], "queue_id": pa.array([0] * 5, pa.int32())})
    assert not to_pandas(rows).duplicated().any()
    assert to_pandas(rows)["group"].tolist() == ["", "\u2400x", "\u2400y", None, "a\u2400b"]
