"""Text that is part of a query."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from mqreplay.lake.sql import literal
from mqreplay.words.errors import InputError

HOSTILE = [
    "",
    "'",
    "''",
    "\\",
    "\\'",
    "\\\\'; DROP TABLE x; --",
    "' OR '1'='1",
    "\\u0041\\n\\0\\%\\_\\Z\\101",
    "%_",
    "a\nb\r\tc\x00d\x1a\x1b]52;c;x\x07\x85\u2028",
    '"`${env:HOME}${system:user.home}${spark:spark.app.name}${spark.app.name}{{x}}:name ?',
    "/* */ -- #",
    "\ufeff\ufffe\U0001f600\u202e",
    "x" * 100_000,
]
TEXTS = st.lists(st.text(max_size=30) | st.text("\\'\"%_$u0{}x\n", max_size=12), min_size=40, max_size=40)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(texts=TEXTS)
def test_every_text_is_itself_in_a_query(spark: SparkSession, texts: list[str]) -> None:
    texts = [*HOSTILE, *texts]
    (row,) = spark.sql(f"SELECT array({', '.join(map(literal, texts))}) AS texts").collect()
    assert list(row.texts) == texts


def test_predicate_of_hostile_names_replaces_their_rows_and_no_others(spark: SparkSession, tmp_path: Path) -> None:
    place, names = str(tmp_path / "t`a'b\\c ${env:HOME}"), HOSTILE[:-1]
    rows = spark.createDataFrame([(name, 1) for name in [*names, "other"]], "name STRING, n INT").coalesce(1)
    rows.write.format("delta").save(place)
    again = spark.createDataFrame([(name, 2) for name in names], "name STRING, n INT").coalesce(1)
    predicate = f"name IN ({', '.join(map(literal, names))})"
    again.write.format("delta").mode("overwrite").option("replaceWhere", predicate).save(place)
    found = {row.name: row.n for row in spark.read.format("delta").load(place).collect()}
    assert found == dict.fromkeys(names, 2) | {"other": 1}


def test_text_that_no_table_can_hold_is_refused() -> None:
    with pytest.raises(InputError, match=r"'a\\udce9' is not Unicode text") as error:
        literal("a\udce9")
    assert str(error.value).isascii()
