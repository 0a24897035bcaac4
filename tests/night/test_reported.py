"""The night of a run: what its recordings have recorded since it was reported last."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.answers.outcome import outcome_of
from mqreplay.cli.command_line import main
from mqreplay.night.reported import Night, Reported
from mqreplay.night.steps import Span
from mqreplay.settings import load_settings
from night.cut import cut, first_instant
from night.later import DAY_MS, moved
from tests_shared import SAMPLE, run

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def span(recording: str, first: float, last: float, kind: str = "broker_runtime") -> Span:
    """A span of a recording, in hours from NOON."""
    return Span(recording, kind, "d", NOON + first * HOUR, NOON + last * HOUR)


def hours(night: Night | None) -> tuple[float, float]:
    assert night is not None
    return (night.first - NOON) / HOUR, (night.last - NOON) / HOUR


def reported(runs: list[list[Span]], given: list[list[str]] | None = None, findings: str = "") -> Reported:
    """What is noted after these runs; run n had the findings up to the n-th character."""
    noted = Reported()
    for number, found in enumerate(runs):
        night = noted.night(found, None if given is None else given[number])
        assert night is not None
        noted.add(night, found, findings[: number + 1], NOON + number * HOUR)
        noted = Reported.of(json.loads(json.dumps(noted.as_dict())))
    return noted


def test_a_recording_that_grew_has_a_night_from_where_it_was_reported() -> None:
    first, later = [span("live", 0, 12)], [span("live", 0, 36)]
    assert hours(Reported().night(first, None)) == (0, 12)
    assert hours(reported([first]).night(later, ["live"])) == (12, 36)


def test_a_run_that_is_repeated_is_about_the_same_night() -> None:
    runs = [[span("live", 0, 12)], [span("live", 0, 36)]]
    before, again = (
        reported(runs[:1], findings="ab").night(runs[1], None),
        reported(runs, findings="ab").night(runs[1], None),
    )
    assert before is not None
    assert again is not None
    assert (before.first, before.last, before.known, before.state) == (
        again.first,
        again.last,
        again.known,
        again.state,
    )
    assert (before.is_new, again.is_new) == (True, False)


def test_an_earlier_night_is_judged_again_as_it_was() -> None:
    """Also if its recording comes after that of a later one."""
    bad, quiet = span("bad", 0, 8), span("quiet", 24, 32)
    noted = reported([[bad], [bad, quiet]], [["bad"], ["quiet"]], "b")
    assert hours(noted.night([bad, quiet], ["bad"])) == (0, 8)
    assert hours(noted.night([bad, quiet], ["bad", "quiet"])) == hours(noted.night([bad, quiet], None)) == (24, 32)
    other_way = reported([[quiet], [bad, quiet]], [["quiet"], ["bad"]], "b")
    assert hours(other_way.night([bad, quiet], None)) == (0, 8)


def test_steps_of_a_night_are_about_what_no_report_had() -> None:
    bad, quiet = span("bad", 0, 8), span("quiet", 24, 32)
    assert hours(reported([[bad]]).night([bad, quiet], None)) == (24, 32)
    assert hours(Reported().night([bad, quiet], None)) == (0, 32)


def test_a_recording_with_another_name_is_the_same_and_one_of_the_same_name_may_be_another() -> None:
    noted = reported([[span("today", 0, 8)]])
    renamed = [span("2026-11-21", 0, 8), span("today", 24, 32)]
    assert hours(noted.night(renamed, None)) == (24, 32)
    assert hours(noted.night([span("today", -24, -16)], None)) == (-24, -16)


def test_the_recorder_tells_when_a_recording_was_and_no_clock_of_a_client() -> None:
    found = [span("r", 0, 8), span("r", -9000, 9000, "rebalance_log"), Span("r", "brokers", "d", None, None)]
    assert hours(Reported().night(found, None)) == (0, 8)
    assert hours(Reported().night(found[1:2], None)) == (-9000, 9000)
    assert Reported().night(found[2:], None) is None


def at(hour: float) -> dt.datetime:
    return NOON + hour * HOUR


@pytest.mark.parametrize(
    ("finding", "first", "last", "is_here"),
    [
        ("new", 25, 26, True),
        ("old", 1, 2, False),
        ("old", 1, 24, True),  # it went on
        ("late", 1, 2, True),  # only evidence of this night shows it
        ("ahead", 33, 33, True),  # by the clock of a client
        ("old", 30, None, True),
        ("old", 1, None, False),
    ],
)
def test_a_finding_is_of_the_night_in_which_it_went_on_or_was_first_seen(
    finding: str, first: float, last: float | None, is_here: bool
) -> None:
    night = Night(at(24), at(32), frozenset({"r"}), frozenset({"old"}), True)
    assert night.has(finding, at(first), None if last is None else at(last)) == is_here
    earlier = Night(at(24), at(32), frozenset({"r"}), None, False)
    assert not earlier.has("of a later night", at(48), at(49))
    assert earlier.has("its own", at(25), at(26))


def test_verdict_and_expectations_are_those_of_the_night_and_older_findings_stay_apart(tmp_path: Path) -> None:
    days = [dt.date(2026, 11, 21), dt.date(2026, 11, 22)]
    bad = {"finding_id": "old", "severity": "critical", "from_ts": at(1), "to_ts": at(2), "day": days[0]}
    tables = {
        "gold.finding": [{"summary": "It failed", "follows_from": None, **bad}],
        "gold.judgement": [
            {"decision": "gold.allocation", "judgement": "agree", "decisions": 2 + n, "day": day, "reason": ""}
            for n, day in enumerate(days)
        ],
        "gold.validation_result": [{"expectation": "a", "passed": False, "day": days[0]}],
    }
    warehouse = made_warehouse(tmp_path, tables)
    quiet = Night(at(24), at(32), frozenset({"r"}), frozenset({"old"}), True)
    found = outcome_of(warehouse, CLUSTER, None, quiet)
    assert (found.findings, found.failed_expectations, found.dates) == ([], [], "2026-11-22")
    assert [row["finding_id"] for row in found.older] == ["old"]
    assert "critical" not in found.verdict
    assert not found.reaches("info")
    assert found.judgements == {"gold.allocation": {"agree": 3}}
    again = outcome_of(warehouse, CLUSTER, None, Night(at(0), at(8), frozenset({"r"}), None, False))
    assert [row["finding_id"] for row in again.findings] == ["old"]
    assert again.reaches("critical")
    assert len(again.failed_expectations) == 1
    assert again.judgements == {"gold.allocation": {"agree": 2}}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two minutes with a warning, and a minute of the next day without."""
    folder, source = tmp_path_factory.mktemp("nights"), SAMPLE / "orders-4.9.7"
    began = first_instant(source)
    bad = cut(source, folder / "bad", {"mixsub-group"}, began + 500_000, began + 620_000)
    plain = cut(source, folder / "plain", {"order-group"}, began + 100_000, began + 160_000)
    return bad, moved(plain, folder / "quiet", DAY_MS)


@pytest.mark.long
def test_a_quiet_night_does_not_fail_for_a_warning_of_the_night_before(
    nights: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "w")

    def status(*recordings: Path) -> int:
        for step in ("ingest", "replay") if recordings else ():
            run(step, root, load_settings(), lambda text: None, recordings=[str(each) for each in recordings])
        capsys.readouterr()
        return main(["report", "--warehouse", root, "--fail-on", "warning"])

    bad, quiet = nights
    assert [status(bad), status(), status(bad)] == [1, 1, 1]
    assert "2026-11-21: 1 warning" in capsys.readouterr().out
    assert [status(quiet), status()] == [0, 0]
    out = capsys.readouterr().out
    assert "2026-11-22: " in out
    assert "older findings since 2026-11-21: mqreplay findings" in out
    page = Path(root, "report", "DefaultCluster.html").read_text(encoding="utf-8")
    assert ">2026-11-21 – 2026-11-22</time><h1><bdi>1 warning" in page
