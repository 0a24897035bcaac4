"""No kind of finding states more confidence than the recorded nights give, and the published counts are today's."""

from __future__ import annotations

import pytest

from mqreplay.findings.registry import SHIPPED
from night.accuracy import PAGE, counted, page


@pytest.mark.long
def test_stated_confidence_is_at_most_what_the_nights_give() -> None:
    counts = counted()
    assert {kind: record.confidence for kind, record in SHIPPED.items() if record.confidence > counts[kind].most} == {}


@pytest.mark.long
def test_the_page_has_the_counts_of_today() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run `make accuracy`"
