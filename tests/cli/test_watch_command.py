"""`mqreplay nightly --watch` as a process: it prints rounds and changes until it is stopped."""

from __future__ import annotations

import datetime as dt
import io
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mqreplay.cli.command_line import main
from mqreplay.cli.watch_command import Printer, print_json
from mqreplay.findings.opened import CLOSED_EVENT, ENDED_EVENT, OPENED_EVENT, Change, OpenFinding
from mqreplay.language.language import ENGLISH, language
from mqreplay.notices.watch import ClusterRound, RoundDone
from night.feed import Feed
from night.later import moved
from tests_shared import SAMPLE

NOW = dt.datetime(2026, 11, 21, 2, 42, 37, tzinfo=dt.UTC)
STUCK = OpenFinding(
    *("0123456789abcdef", "stuck_queue", "warning", "billing", "orders", "broker-a", None, 0, None),
    *(NOW, NOW, NOW, None, None, None, 1.0, "Group billing stands still.", "Look.", None, [], 3),
)
DONE = ClusterRound("prod", [Change(OPENED_EVENT, STUCK)], 1, NOW, 3.2, is_silent=False)


def test_a_running_watch_prints_json_and_ends_by_sigterm(tmp_path: Path) -> None:
    source = SAMPLE / "bulk-5.3.3"
    _, end = Feed(source, tmp_path / "unused").reach
    live = moved(source, tmp_path / "live", int(time.time() * 1000) - end)
    words = [*("nightly", str(live), "--warehouse", str(tmp_path / "w")), "--cluster", "c", "--watch", "--json"]
    command = [sys.executable, "-m", "mqreplay.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "round":
                break
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 143
    assert error == "mqreplay: terminated; the next run continues where this one ended\n"
    *changes, done = events
    assert {change["event"] for change in changes} >= {"opened"}
    assert {change["kind"] for change in changes} == {"slave_pull", "stuck_queue"}
    (cluster,) = done["clusters"]
    assert (cluster["cluster"], cluster["is_silent"]) == ("c", False)
    assert done["lines"] > 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--watch", "--engine", "spark"], "--watch keeps processes of this machine ready"),
        (["--watch", "--fail-on", "info"], "--fail-on needs a run that ends"),
        (["--watch", "--catalog", "spark_catalog"], "--catalog needs Spark"),
        (["--watch", "--every", "1s"], "--every 1s is not 10s to 10m"),
        (["--watch", "--every", "soon"], "--every 'soon' is not a duration"),
        (["--every", "60s"], "--every belongs to --watch"),
        (["--watch"], "does not exist; start mqreplay record first"),
    ],
)
def test_options_that_do_not_fit_are_one_clear_line(tmp_path, capsys, words, message) -> None:
    assert main(["nightly", str(tmp_path / "none"), "--warehouse", str(tmp_path / "w"), *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def text_of(done: RoundDone, monkeypatch: pytest.MonkeyPatch, lang: str = ENGLISH) -> list[str]:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    Printer(language(lang)).print(done)
    return stream.getvalue().splitlines()


def test_each_change_and_each_round_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = text_of(RoundDone(3, NOW, 9411, 1_000_000, 1.42, [DONE]), monkeypatch)
    assert lines == [
        "2026-11-21 02:42:37  opened           warning  01234567  stuck_queue  billing/orders/broker-a/0  "
        "Group billing stands still.",
        "2026-11-21 02:42:37  round 3: 9,411 lines read in 1.4 s; prod: 1 finding open, recording 3 s behind",
    ]


def test_what_was_over_before_watch_found_it_is_one_line_with_its_time(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    over = replace(STUCK, last_seen_ts=NOW + dt.timedelta(seconds=88), closed_ts=NOW, closed_reason="no evidence")
    one = replace(DONE, changes=[Change(ENDED_EVENT, over)], open_findings=0)
    first, _ = text_of(RoundDone(1, NOW, 1, 1, 0.1, [one]), monkeypatch)
    assert "  already ended    warning  01234567  " in first
    assert first.endswith("Group billing stands still. (2026-11-21 02:42:37 to 02:44:05 UTC)")
    chinese, _ = text_of(RoundDone(1, NOW, 1, 1, 0.1, [one]), monkeypatch, "zh")
    assert "发现时已结束" in chinese
    monkeypatch.undo()
    print_json(RoundDone(1, NOW, 1, 1, 0.1, [one]))
    printed = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (printed["event"], printed["closed_reason"], printed["known_issues"]) == ("already ended", "no evidence", [])


def test_rounds_are_in_the_language_of_the_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, last = text_of(RoundDone(3, NOW, 9411, 1_000_000, 1.42, [DONE]), monkeypatch, "zh")
    assert last.endswith("第 3 轮：读取 9,411 行，用时 1.4 秒; prod: 1 个未结束的问题, 录制数据落后 3 秒")


def test_a_finding_that_opens_names_known_issues(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    names = {"url": "u", "title": "a fault", "component": "broker", "versions": ["4.9.3"], "advice": "Upgrade."}
    issue = {"finding_id": STUCK.finding_id, "issue": 4215, "mended_in": "4.9.4", **names}
    one = replace(DONE, known_issues={STUCK.finding_id: [issue]})
    opened, _ = text_of(RoundDone(1, NOW, 1, 1, 0.1, [one]), monkeypatch)
    assert opened.endswith("Group billing stands still. Known issue: apache/rocketmq#4215, mended in 4.9.4.")
    closed = replace(one, changes=[Change(CLOSED_EVENT, replace(STUCK, closed_ts=NOW, closed_reason="it is over"))])
    assert text_of(RoundDone(2, NOW, 1, 1, 0.1, [closed]), monkeypatch)[0].endswith("  it is over")
    monkeypatch.undo()
    print_json(RoundDone(1, NOW, 1, 1, 0.1, [one]))
    opened = json.loads(capsys.readouterr().out.splitlines()[0])
    assert opened["known_issues"] == [{"issue": 4215, "mended_in": "4.9.4", **names}]


def test_a_closed_finding_says_why_and_a_silent_recording_says_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = replace(STUCK, closed_ts=NOW, closed_reason="no evidence of it for 120 s")
    one = replace(DONE, changes=[Change(CLOSED_EVENT, closed)], open_findings=0, is_silent=True)
    first, last = text_of(RoundDone(4, NOW, 1, 10, 0.2, [one]), monkeypatch)
    assert first.endswith("no evidence of it for 120 s")
    assert last.endswith(
        "round 4: 1 line read in 0.2 s; prod: 0 findings open, recording silent since 2026-11-21 02:42:37"
    )


def test_names_from_a_recording_reach_the_terminal_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(DONE, changes=[Change(OPENED_EVENT, replace(STUCK, topic="a\x1b[31mb"))])
    assert "\x1b" not in "".join(text_of(RoundDone(1, NOW, 1, 1, 0.1, [one]), monkeypatch))
