"""The generated pages are current."""

from __future__ import annotations

import pytest

from docs.pages import PAGES, ROOT, generated


# test_questions.py compares docs/questions.md: it needs the night of the sample.
@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/questions.md"])
def test_page_is_current(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == generated(page), f"run `make docs` ({page})"
