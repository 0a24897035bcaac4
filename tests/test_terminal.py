"""What a run says on stdout of expectations that do not hold."""

from __future__ import annotations

from mqreplay.outcome import Outcome
from mqreplay.terminal import print_outcome

FAILED = {"table_name": "silver.route", "day": "2026-11-02", "expectation": "expect_it", "arguments": "{}"}


def test_rows_that_break_an_expectation_are_counted_and_of_tables_it_is_told_what_was_seen(capsys):
    of_rows = FAILED | {"unexpected_count": 3, "unexpected_sample": '[{"id": 1}]'}
    of_table = FAILED | {"unexpected_count": None, "unexpected_sample": '[{"age_minutes": 12}]'}
    unknown = FAILED | {"unexpected_count": None, "unexpected_sample": None}
    outcome = Outcome("c", expectations=5, failed_expectations=[of_rows, of_table, unknown])
    print_outcome([outcome], "validate", "W")
    said = [line.partition("expect_it {}: ")[2] for line in capsys.readouterr().out.splitlines() if "expect_it" in line]
    assert said == ["3 rows break it", '[{"age_minutes": 12}]', "not told why"]
