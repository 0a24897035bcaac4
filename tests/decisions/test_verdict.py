"""Verdicts: the first case counts, and what is not known never differs."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.decisions.verdict import AGREE, DIFFER, NOT_KNOWN, UNDETERMINED, decided, doubted, judged

ANSWERS = st.sampled_from(["granted", "refused", None])


def one(verdict: dict[str, pl.Expr], **values: object) -> tuple[str, str]:
    rows = pl.DataFrame([values], {name: pl.Boolean if name != "words" else pl.String for name in values})
    return rows.with_columns(**verdict).select("judgement", "reason").row(0)


def test_the_first_case_whose_condition_is_true_counts() -> None:
    verdict = decided(("a", DIFFER, "first"), (pl.col("b"), AGREE, pl.col("words")), otherwise=(UNDETERMINED, "rest"))
    assert one(verdict, a=True, b=True, words="second") == (DIFFER, "first")
    assert one(verdict, a=False, b=True, words="second") == (AGREE, "second")
    assert one(verdict, a=None, b=True, words="second") == (AGREE, "second")
    assert one(verdict, a=None, b=None, words="second") == (UNDETERMINED, "rest")


def test_a_reason_is_no_column() -> None:
    verdict = decided(("a", AGREE, "a"), otherwise=(DIFFER, "b"))
    assert one(verdict, a=True, b=True) == (AGREE, "a")
    assert one(verdict, a=False, b=True) == (DIFFER, "b")


@given(ANSWERS, ANSWERS, st.sampled_from([True, False, None]))
def test_a_difference_needs_both_sides_and_no_open_condition(expected: str, actual: str, is_open: bool) -> None:
    rows = pl.DataFrame(
        {"due": [expected], "was": [actual], "open": [is_open]},
        {"due": pl.String, "was": pl.String, "open": pl.Boolean},
    )
    verdict = judged(pl.col("due"), pl.col("was"), open=[("open", "evidence lacks")], agree="as due", differ="not due")
    row = rows.with_columns(**verdict).row(0, named=True)
    assert (row["expected"], row["actual"]) == (expected, actual)
    if is_open:
        assert (row["judgement"], row["reason"]) == (UNDETERMINED, "evidence lacks")
    elif expected is None or actual is None:
        assert (row["judgement"], row["reason"]) == (UNDETERMINED, NOT_KNOWN)
    elif expected == actual:
        assert (row["judgement"], row["reason"]) == (AGREE, "as due")
    else:
        assert (row["judgement"], row["reason"]) == (DIFFER, "not due")


@pytest.mark.parametrize("is_wrong", [True, False, None])
def test_a_doubt_changes_only_the_rows_where_it_holds(is_wrong: bool | None) -> None:
    rows = pl.DataFrame(
        {"judgement": [DIFFER], "reason": ["other"], "clock": [is_wrong]},
        {"judgement": pl.String, "reason": pl.String, "clock": pl.Boolean},
    )
    row = rows.with_columns(**doubted("clock", "the clock is wrong")).row(0, named=True)
    assert (row["judgement"], row["reason"]) == (
        (UNDETERMINED, "the clock is wrong") if is_wrong else (DIFFER, "other")
    )
