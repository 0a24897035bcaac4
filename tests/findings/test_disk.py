"""disk_full: from the poll above 0.90 to the one at 0.85 or less, as the broker marks its disk."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.brokers.full_disks import full_disks
from mqreplay.findings.disk import full_disk_findings
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
COMMIT, CONSUME = "commitLogDiskRatio", "consumeQueueDiskRatio"


def poll(seconds: float, runtime: dict[str, str] | None, **differs: Any) -> Row:
    row = {"ts": at(seconds), "broker_name": "pier-a", "broker_id": 0, "record_id": f"r{seconds}", "runtime": runtime}
    return row | differs


def found(*polls: Row, settings: dict[str, str] | None = None) -> pl.DataFrame:
    described = [{"broker_name": "pier-a", "broker_id": 0, "ts": at(0), "properties": settings}] if settings else []
    disks = full_disks(rows("silver.broker_runtime", {}, list(polls)), rows("silver.broker", {}, described))
    return full_disk_findings(disks, "harbour")


def ratios(*values: str, name: str = COMMIT) -> list[Row]:
    return [poll(5 * i, {name: text}) for i, text in enumerate(values)]


def test_a_full_disk_lasts_until_the_broker_removes_its_mark() -> None:
    (row,) = found(*ratios("0.66", "0.95", "0.88", "0.66", "0.66")).to_dicts()
    assert (row["from_ts"], row["to_ts"], row["severity"]) == (at(5), at(15), "critical")
    assert row["summary"] == (
        "A disk of the master of pier-a was full for 10 s, up to 95 % used: the broker takes no message above 90 %."
    )
    assert [item["record_id"] for item in row["evidence"]] == ["r5"]


def test_a_disk_that_is_full_at_the_last_poll_is_said_to_be() -> None:
    (row,) = found(*ratios("0.66", "0.92", "0.97", name=CONSUME)).to_dicts()
    assert row["summary"].endswith(
        "up to 97 % used: the broker takes no message above 90 %. The last poll found it full."
    )


@pytest.mark.parametrize("values", [("0.90", "0.90"), ("0.88",), ("-1.0",), ("n/a",), ()])
def test_a_disk_that_is_not_above_the_limit_or_not_read_is_no_finding(values: tuple[str, ...]) -> None:
    assert found(*ratios(*values)).is_empty()


@pytest.mark.parametrize(
    ("warning", "limit"), [("70", 70), ("10", 35), ("99", 90)], ids=["lower", "least", "never above 90"]
)
def test_a_broker_of_5_may_have_lower_limits(warning: str, limit: int) -> None:
    """CleanCommitLogService#getDiskSpaceWarningLevelRatio: a percentage of 35 to 90, and of 30 to 85."""
    settings = {"diskSpaceWarningLevelRatio": warning, "diskSpaceCleanForciblyRatio": "20"}
    polls = ratios("0.29", f"{limit / 100 + 0.01:.2f}", "0.31", "0.30")
    (row,) = found(*polls, settings=settings).to_dicts()
    assert (row["from_ts"], row["to_ts"]) == (at(5), at(15))
    assert f"takes no message above {limit} %." in row["summary"]
    assert found(*ratios(f"{limit / 100:.2f}"), settings=settings).is_empty()


def test_a_poll_without_the_figure_or_an_answer_says_nothing() -> None:
    silent = [poll(10, None, error="timeout"), poll(11, {"bootTimestamp": "1"})]
    (row,) = found(*ratios("0.66", "0.95"), *silent, poll(30, {COMMIT: "0.5"})).to_dicts()
    assert (row["from_ts"], row["to_ts"]) == (at(5), at(30))


def test_a_slave_takes_no_sends_so_its_disk_is_a_warning() -> None:
    slave = [row | {"broker_id": 1} for row in ratios("0.95", "0.6")]
    (row,) = found(*slave, *ratios("0.66", "0.66")).to_dicts()
    assert (row["severity"], row["broker_id"]) == ("warning", 1)


def test_a_broker_that_starts_below_the_limit_has_no_mark() -> None:
    before, after = ({"boot_ts": at(seconds)} for seconds in (-100, 8))
    polls = [ratios("0.95")[0] | before, poll(10, {COMMIT: "0.88"}) | after, poll(15, {COMMIT: "0.88"}) | after]
    (row,) = found(*polls).to_dicts()
    assert (row["from_ts"], row["to_ts"]) == (at(0), at(10))
