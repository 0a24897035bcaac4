"""Tables registered in a catalog of the session: what is new, what is known, and what the catalog refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.lake.catalog import Registered, missing_catalog, plain_location, register_tables, s3_scheme
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.warehouse import Warehouse
from quality_rows import filled

OWN = CatalogNames("spark_catalog", "cat_")
DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
BOTH = ["spark_catalog.cat_silver.broker", "spark_catalog.cat_gold.judgement"]


def judged(decisions: int) -> dict[str, object]:
    return {"decision": "gold.pull_route", "judgement": "agree", "decisions": decisions}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return made_warehouse(tmp_path / "it's a w", {"gold.judgement": [judged(5)], "silver.broker": [{}]})


@pytest.fixture
def session(spark) -> Iterator[object]:
    yield spark
    for layer in ("silver", "gold"):
        spark.sql(f"DROP DATABASE IF EXISTS cat_{layer} CASCADE")


def test_a_second_registration_finds_the_tables_and_names_show_new_commits(session, warehouse: Warehouse) -> None:
    assert register_tables(session, warehouse, OWN) == Registered(BOTH)
    contract = warehouse.contracts["gold.judgement"]
    warehouse.replace_rows("gold.judgement", [filled(contract, {"cluster": "other", **judged(7)})], None)
    assert register_tables(session, warehouse, OWN) == Registered(known=2)
    assert session.sql("SELECT sum(decisions) FROM spark_catalog.cat_gold.judgement").first()[0] == 12
    comments = {row.col_name: row.comment for row in session.sql("DESCRIBE TABLE cat_gold.judgement").collect()}
    assert comments["decisions"].startswith(next(c.description for c in contract.columns if c.name == "decisions"))


def test_a_name_in_use_is_left_as_it_is(session, warehouse: Warehouse, tmp_path: Path) -> None:
    other = made_warehouse(tmp_path / "other", {"gold.judgement": [judged(1)]})
    register_tables(session, other, OWN)
    session.sql("CREATE DATABASE cat_silver")
    session.sql("CREATE VIEW cat_silver.broker AS SELECT 1 AS one")
    done = register_tables(session, warehouse, OWN)
    assert (done.new, done.known) == ([], 0)
    assert done.problems == [
        "spark_catalog.cat_silver.broker is not registered: the name is in use for a view; drop it, or use another "
        "--prefix",
        "spark_catalog.cat_gold.judgement is not registered: the name belongs to a table of "
        f"file:{tmp_path}/other; drop it, or use another --prefix",
    ]
    assert session.table("cat_gold.judgement").first().decisions == 1


def test_a_catalog_that_fails_gives_one_line_for_all_tables(session, warehouse: Warehouse) -> None:
    # Delta's catalog works only as the session's own.
    session.conf.set("spark.sql.catalog.lake", DELTA)
    done = register_tables(session, warehouse, CatalogNames("lake"))
    (problem,) = done.problems
    assert problem.startswith("lake.silver.broker, lake.gold.judgement are not registered: ")
    assert "NullPointerException" in problem
    assert "\n" not in problem


def test_a_missing_catalog_is_named(session) -> None:
    reason = missing_catalog(session, "nosuch")
    assert reason is not None
    assert reason.startswith("the session has no catalog nosuch; set spark.sql.catalog.nosuch (")
    assert "\n" not in reason
    assert session.catalog.currentCatalog() == "spark_catalog"


def test_a_catalog_in_memory_is_refused(session) -> None:
    assert "has no metastore" in str(missing_catalog(session, "spark_catalog"))


def test_names_of_three_parts(session, warehouse: Warehouse) -> None:
    """A second catalog, which is no session catalog for Spark; Delta's needs one that keeps the names for it."""
    session.conf.set("spark.sql.catalog.unity", DELTA)
    catalogs = session._jsparkSession.sessionState().catalogManager()
    catalogs.catalog("unity").setDelegateCatalog(catalogs.v2SessionCatalog())
    assert missing_catalog(session, "unity") is None
    names = CatalogNames("unity", "cat_")
    assert register_tables(session, warehouse, names) == Registered(
        ["unity.cat_silver.broker", "unity.cat_gold.judgement"]
    )
    assert register_tables(session, warehouse, names) == Registered(known=2)
    assert session.sql("SELECT decisions FROM unity.cat_gold.judgement").first()[0] == 5


def test_scheme_of_s3_is_one_that_the_session_has(spark) -> None:
    hadoop = spark.sparkContext._jsc.sc().hadoopConfiguration()
    assert s3_scheme(spark) == "s3a"
    hadoop.set("fs.s3.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    try:
        assert s3_scheme(spark) == "s3"
    finally:
        hadoop.unset("fs.s3.impl")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/w/gold/finding", "/w/gold/finding"),
        ("file:///w/gold/finding", "/w/gold/finding/"),
        ("s3a://bucket/w", "s3://bucket/w"),
        ("file:/w/it's%20a", "/w/it's a"),
    ],
)
def test_spellings_of_one_location(one: str, other: str) -> None:
    assert plain_location(one) == plain_location(other)


def test_other_locations_differ() -> None:
    assert len({plain_location(each) for each in ("/w", "s3://w", "s3://w/w", "hdfs://w/w", "/W")}) == 5
