"""The catalog of a session: which it has, and the scheme by which it reads S3."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mqreplay.lake.catalog import missing_catalog, s3_scheme


def test_a_missing_catalog_is_named(spark) -> None:
    reason = missing_catalog(spark, "nosuch")
    assert reason is not None
    assert reason.startswith("the session has no catalog nosuch; set spark.sql.catalog.nosuch (")
    assert "\n" not in reason
    assert spark.catalog.currentCatalog() == "spark_catalog"


def test_a_catalog_in_memory_is_refused(spark) -> None:
    assert "has no metastore" in str(missing_catalog(spark, "spark_catalog"))


def test_stock_spark_knows_s3_as_s3a(spark) -> None:
    assert s3_scheme(spark, "s3://bucket/w") == "s3a"


def test_scheme_of_s3_is_one_by_which_the_session_reads_the_warehouse() -> None:
    asked: list[str] = []

    def text(path: str) -> Any:
        asked.append(path)
        return SimpleNamespace(schema=())

    session: Any = SimpleNamespace(read=SimpleNamespace(text=text))
    assert s3_scheme(session, "/data/w") == "s3a"
    assert asked == []
    assert s3_scheme(session, "s3://bucket/w") == "s3"
    assert asked == ["s3://bucket/w/.mqreplay.catalog"]
