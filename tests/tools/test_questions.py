"""docs/questions.md is what its queries answer on the sample, in both engines."""

from __future__ import annotations

import pytest

from docs.pages import ROOT
from docs.questions import EVIDENCE, QUESTIONS, Question, Rows, ask_duckdb, page, table
from mqreplay.lake.registration import CatalogNames, registration
from mqreplay.lake.warehouse import Warehouse

PAGE = ROOT / "docs" / "questions.md"


def test_page_is_current(night) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(ask_duckdb(night.root)), "run `make docs`"


def test_there_are_twenty_questions() -> None:
    assert len(QUESTIONS) == 20
    assert len({each.title for each in QUESTIONS}) == 20


@pytest.fixture(scope="module")
def session(night, spark):
    """A session of stock Spark SQL in which `mqreplay tables --sql` made the tables known."""
    own = spark.newSession()
    for statement in registration(Warehouse(night.root), CatalogNames(None, "questions_")):
        own.sql(statement.removesuffix(";"))
    yield own
    for layer in ("bronze", "silver", "gold"):
        own.sql(f"DROP DATABASE questions_{layer} CASCADE")


@pytest.mark.long
@pytest.mark.first_case
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.title)
def test_spark_gives_the_rows_of_the_page(question: Question, session) -> None:
    assert_on_page(question.query, session)


def test_spark_joins_evidence_with_its_table(session) -> None:
    assert_on_page(EVIDENCE, session)


def assert_on_page(text: str, session) -> None:
    query = text.replace("unnest(", "explode(")
    for layer in ("bronze", "silver", "gold"):
        query = query.replace(f" {layer}.", f" questions_{layer}.")
    rows = session.sql(query)
    answer: Rows = rows.columns, [tuple(row) for row in rows.collect()]
    assert f"{text.strip()}\n```\n\n{table(answer)}\n" in PAGE.read_text(encoding="utf-8")
