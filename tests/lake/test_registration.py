"""`mqreplay tables --sql`: each table under its name, for folders of any name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.cli.command_line import main
from mqreplay.lake.registration import CatalogNames, identifier, literal, registration
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError
from tests_shared import tables

HOSTILE = "it's a `night`; ${env:HOME} --x 日本 \U0001f600"
ROWS = {"gold.judgement": [{"decision": "gold.pull_route", "judgement": "agree", "decisions": 5}]}


def statements(root: str, catalog: str | None = None, prefix: str = "") -> list[str]:
    return list(registration(Warehouse(root), CatalogNames(catalog, prefix)))


@pytest.mark.long
def test_every_table_of_the_sample_is_registered(night, spark) -> None:
    before = {row.namespace for row in spark.sql("SHOW DATABASES").collect()}
    for statement in statements(night.root, prefix="registered_"):
        spark.sql(statement.removesuffix(";"))
    after = {row.namespace for row in spark.sql("SHOW DATABASES").collect()}
    assert after - before == {"registered_bronze", "registered_silver", "registered_gold"}
    for name in tables(night.root):
        layer, table = name.split(".")
        assert spark.table(f"registered_{layer}.{table}").limit(1).columns, name
    found = spark.table("registered_gold.finding").count()
    assert found == sum(len(night.table("gold.finding", cluster)) for cluster in night.outcomes)


def test_a_folder_of_any_name_is_registered(spark, tmp_path: Path) -> None:
    root = tmp_path / HOSTILE
    made_warehouse(root, ROWS)
    for statement in statements(str(root), prefix="odd_name_"):
        spark.sql(statement.removesuffix(";"))
    assert [row.decisions for row in spark.table("odd_name_gold.judgement").collect()] == [5]


def test_statements_name_only_tables_that_exist(tmp_path: Path) -> None:
    root = tmp_path / "w"
    made_warehouse(root, ROWS)
    assert statements(str(root), "lake", "orders_") == [
        "CREATE DATABASE IF NOT EXISTS lake.orders_gold;",
        "CREATE TABLE IF NOT EXISTS lake.orders_gold.judgement USING delta "
        f"LOCATION {literal(str(root / 'gold' / 'judgement'))};",
    ]


def test_a_statement_is_one_line_of_plain_characters(tmp_path: Path) -> None:
    root = tmp_path / HOSTILE
    made_warehouse(root, ROWS)
    for statement in statements(str(root)):
        assert re.fullmatch(r"[ -~]+;", statement)
        assert statement.count("'") in (0, 2)
        assert statement.count(";") == 1
        assert "$" not in statement


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "a;b", "${x}", "a/b", "a\nb", "\u202e", "a\udce9"])
def test_names_that_a_metastore_refuses_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        identifier(name)


def test_a_folder_that_is_no_warehouse_is_refused(tmp_path: Path, capsys) -> None:
    assert main(["tables", "--sql", "--warehouse", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_options_that_do_not_fit_are_refused(tmp_path: Path, capsys) -> None:
    made_warehouse(tmp_path, ROWS)
    for options in (["--prefix", "orders_"], ["--s3-scheme", "s3"], ["--sql", "gold.judgement"]):
        assert main(["tables", *options, "--warehouse", str(tmp_path)]) == 2
        assert "--sql" in capsys.readouterr().err
    assert main(["tables", "--sql", "--prefix", "orders_", "--warehouse", str(tmp_path)]) == 0
    assert "orders_gold" in capsys.readouterr().out


def test_a_literal_has_no_control_character() -> None:
    assert literal("a\n\x1b[31m") == "'a\\u000A\\u001B\\u005B31m'"


class InStore(Warehouse):
    """A warehouse whose folder stands for one in S3."""

    def location(self, name: str) -> str:
        return super().location(name).replace(self.root, "s3://bucket/night")

    def exists(self, name: str) -> bool:
        return name == "gold.finding"


@pytest.mark.parametrize("scheme", ["s3a", "s3"])
def test_locations_in_s3_have_the_scheme_that_spark_knows(scheme: str, tmp_path: Path) -> None:
    _, table = registration(InStore(str(tmp_path)), CatalogNames("lake"), scheme)
    assert table.endswith(f"lake.gold.finding USING delta LOCATION '{scheme}://bucket/night/gold/finding';")
