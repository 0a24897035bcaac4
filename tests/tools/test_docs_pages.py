"""The generated pages are current."""

from __future__ import annotations

import pytest

from docs.pages import PAGES, ROOT, generated

# docs/decisions.md answers all vectors again, which takes a minute.
LONG = ("docs/decisions.md",)
# test_questions.py compares docs/questions.md: it needs the night of the sample.
CHECKED = [
    pytest.param(page, marks=pytest.mark.long if page in LONG else ()) for page in PAGES if "questions" not in page
]


@pytest.mark.parametrize("page", CHECKED)
def test_page_is_current(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == generated(page), f"run `make docs` ({page})"
