"""Rounds of watch: what they open and close, their evidence, the night after midnight, and the loop."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import replace
from pathlib import Path

import pytest

import mqreplay
from mcp_client import asked
from mqreplay.answers.explanation import explain
from mqreplay.answers.open_findings import read_findings
from mqreplay.answers.page_path import page_link
from mqreplay.answers.state import state_at
from mqreplay.cli.command_line import main
from mqreplay.engines.local import LocalEngine
from mqreplay.findings.every import KINDS
from mqreplay.findings.opened import CLOSED_EVENT, OPENED_EVENT
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import plain_rows
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded_around
from mqreplay.notices import watch as watch_module
from mqreplay.notices.watch import Watch, watch
from mqreplay.settings import LocalSettings, load_settings
from mqreplay.words.errors import InputError, WarehouseLocked
from night.feed import MINUTE_MS, Feed, at
from night.later import midnight_after, moved
from tests_shared import SAMPLE, rows_at


def made(folder: Path, live: Path, window: str = "watch", notes=None) -> Watch:
    engine = LocalEngine(folder, processes=1)
    say = (lambda text: None) if notes is None else notes.append
    root, here = str(folder / "warehouse"), replace(load_settings(), local=LocalSettings(processes=1))
    return Watch(root, here, [str(live)], "c", engine, folder / window, 60, say)


@pytest.mark.long
def test_a_recording_that_stops_closes_nothing_and_another_watch_goes_on(tmp_path):
    feed = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live")
    now = feed.reach[0] + 150_000
    feed.until(now)
    watching = made(tmp_path, tmp_path / "live")
    watching.round(at(now))
    before = {one.finding_id for one in read_findings(Warehouse(str(tmp_path / "warehouse")), "c") if one.is_open}
    assert before
    (silent,) = watching.round(at(now + 60 * MINUTE_MS)).clusters
    assert (silent.is_silent, list(silent.changes)) == (True, [])
    kept = read_findings(Warehouse(str(tmp_path / "warehouse")), "c")
    assert {one.finding_id for one in kept if one.is_open} == before
    assert {one.undetermined_since for one in kept if one.is_open} == {silent.recorded_until}


@pytest.mark.long
def test_another_start_continues_with_the_open_findings(tmp_path):
    feed = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live")
    now = feed.reach[0] + 150_000
    feed.until(now)
    (first,) = made(tmp_path, tmp_path / "live").round(at(now)).clusters
    assert first.open_findings > 0
    (again,) = made(tmp_path, tmp_path / "live", window="other").round(at(now)).clusters
    assert (list(again.changes), again.open_findings) == ([], first.open_findings)


@pytest.mark.long
def test_rounds_do_not_wait_for_another_run(tmp_path):
    feed = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live")
    now = feed.reach[0] + 120_000
    feed.until(now)
    notes: list[str] = []
    watching, root = made(tmp_path, tmp_path / "live", notes=notes), str(tmp_path / "warehouse")
    with warehouse_lock(root):
        (one,) = watching.round(at(now)).clusters
    assert one.open_findings > 0
    assert notes == ["c: the warehouse is in use by another run; gold.open_finding is written later"]
    watching.round(at(now))
    assert len(read_findings(Warehouse(root), "c")) == one.open_findings


def over_midnight(tmp_path):
    """Return a watch of a recording over midnight, and what makes a round so many seconds after midnight."""
    by_ms, midnight = midnight_after(SAMPLE / "bulk-5.3.3", 60)
    feed = Feed(moved(SAMPLE / "bulk-5.3.3", tmp_path / "moved", by_ms), tmp_path / "live")
    watching = made(tmp_path, tmp_path / "live")

    def after(seconds: int):
        feed.until(midnight + seconds * 1000)
        return watching.round(at(midnight + seconds * 1000))

    return after


@pytest.mark.long
def test_after_midnight_the_night_runs_once(tmp_path, monkeypatch):
    nights: list[tuple] = []
    outcomes = [WarehouseLocked("in use"), []]

    def run_night(step, root, *_, recordings, cluster, engine, failed, measured):
        nights.append((step, root, recordings, cluster, engine))
        if isinstance(outcome := outcomes.pop(0), Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(watch_module, "run", run_night)
    after = over_midnight(tmp_path)
    counts = []
    for seconds in (-20, 60, 125, 130, 150):
        after(seconds)
        counts.append(len(nights))
    assert counts == [0, 0, 1, 2, 2], "a locked warehouse is tried again, a finished night is not"
    assert set(map(str, nights)) == {
        str(("nightly", str(tmp_path / "warehouse"), [str(tmp_path / "live")], "c", "local"))
    }


@pytest.mark.long
def test_the_night_after_midnight_finds_what_watch_found(tmp_path):
    after = over_midnight(tmp_path)
    for seconds in (-20, 60):
        assert not after(seconds).nights
    (outcome,) = after(125).nights
    assert outcome.report is not None
    opened = read_findings(Warehouse(str(tmp_path / "warehouse")), "c")
    of_night = {one["kind"] for one in rows_at(tmp_path / "warehouse", "gold.finding")}
    # Kinds that need the complete day are left to the nightly run.
    assert {one.kind for one in opened} == {kind for kind in of_night if KINDS[kind].ends_after is not None}


def assert_begins(out: str, answer: object) -> None:
    """The words of the output begin with those of the answer."""
    words = str(answer).split()
    assert out.split()[: len(words)] == words


@pytest.mark.long
def test_open_findings_have_their_evidence_and_a_page_of_the_last_minutes(tmp_path, capsys):
    feed, root = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live"), str(tmp_path / "warehouse")
    now = feed.reach[0] + 100_000
    feed.until(now)
    given = root, load_settings(), [str(tmp_path / "live")], "c"
    with LocalEngine(tmp_path, processes=1) as engine:
        watching = Watch(*given, engine, tmp_path / "watch", 60, pytest.fail)
        watching.publish(watching.round(at(now)))
    warehouse = Warehouse(root)
    opened = read_findings(warehouse, "c")
    assert opened
    for one in opened:
        explanation = explain(warehouse, one.finding_id, "c")
        assert explanation.evidence.rows
        assert explanation.evidence.unnamed == 0
        assert f"--warehouse {root}" in explanation.next_command
        link = page_link(root, "c", finding_id=one.finding_id)
        assert link is not None
        assert link.startswith(f"{root}/report/watch/c.html#")
    recorded, instant = recorded_around(warehouse, "c", f"{at(now - 5_000):%H:%M:%S}", "TIME")
    assert state_at(recorded, instant).groups["members"].max() > 0
    with pytest.raises(InputError, match=f"recording of c, which goes from .* to {at(now):%Y-%m-%d %H:%M:%S}"):
        recorded_around(warehouse, "c", "03:59", "TIME")

    # A terminal, a notebook and an agent say the same.
    broker = next(one.broker_name for one in opened if one.severity == "critical")
    time, replay = f"{at(now - 5_000):%H:%M:%S}", mqreplay.open(root, "c")
    _, state, ready = asked(root, ("at", {"time": time}), ("ready", {"broker": broker}))
    assert main(["at", time, "--warehouse", root]) == 0
    assert_begins(capsys.readouterr().out, replay.at(time))
    assert state["groups"] == plain_rows(replay.at(time).value.groups)
    assert main(["ready", broker, "--warehouse", root]) == 1, "a finding about it is open"
    assert_begins(capsys.readouterr().out, replay.ready(broker))
    (findings,) = [check for check in ready["checks"] if check["check"] == "findings"]
    assert (findings["answer"], "slave_pull" in findings["text"]) == ("no", True)


def test_a_fault_is_told_within_two_polls_and_one_round_and_once(tmp_path):
    """The master of broker-a did not answer from 02:51:31 to 02:52:58. Polls and rounds are as by default."""
    feed, poll_s, round_s = Feed(SAMPLE / "orders-4.9.7", tmp_path / "live"), 5, 60
    polls = feed.lines["broker_runtime.jsonl.gz"]
    feed.lines = {"broker_runtime.jsonl.gz": [line for line in polls if line[0] // 1000 % poll_s == 0]}
    feed.files.clear()
    began = dt.datetime(2026, 11, 21, 2, 51, 31, tzinfo=dt.UTC)
    watching, changes = made(tmp_path, tmp_path / "live"), []
    for minute in range(4):  # the second round is too early to know
        now = began.replace(second=40) + dt.timedelta(minutes=minute - 1)
        feed.until(int(now.timestamp() * 1000))
        changes += [(change.what, now) for one in watching.round(now).clusters for change in one.changes]
    assert [what for what, _ in changes] == [OPENED_EVENT, CLOSED_EVENT], changes
    assert changes[0][1] - began <= dt.timedelta(seconds=2 * poll_s + round_s)


def test_a_recording_names_its_cluster_once(tmp_path):
    feed = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live")
    begin = feed.reach[0]
    engine = LocalEngine(tmp_path, processes=1)
    watching = Watch(
        *(str(tmp_path / "warehouse"), load_settings(), [str(tmp_path / "live")], None, engine, tmp_path / "watch", 60),
        lambda text: None,
    )
    for seconds in (30, 32):
        now = begin + seconds * 1000
        feed.until(now)
        assert [one.cluster for one in watching.round(at(now)).clusters] == ["grid-cluster"]


@pytest.mark.long
def test_a_guessed_name_ends_with_the_first_answer_that_names_the_cluster(tmp_path):
    feed, live = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live"), tmp_path / "live"
    (live / "brokers.json").unlink()
    answers = feed.lines.pop("cluster_info.jsonl.gz")
    now, notes = feed.reach[0] + 150_000, list[str]()
    engine, root = LocalEngine(tmp_path, processes=1), str(tmp_path / "warehouse")
    watching = Watch(root, load_settings(), [str(live)], None, engine, tmp_path / "watch", 60, notes.append)
    feed.until(now)
    (guessed,) = watching.round(at(now)).clusters
    assert guessed.cluster == "DefaultCluster"
    opened = [change.finding.finding_id for change in guessed.changes]
    assert opened
    feed.lines["cluster_info.jsonl.gz"] = answers
    feed.until(now)
    left, real = watching.round(at(now + 1_000)).clusters
    assert (left.cluster, real.cluster) == ("DefaultCluster", "grid-cluster")
    assert [(change.what, change.finding.finding_id) for change in left.changes] == [
        (CLOSED_EVENT, one) for one in opened
    ]
    assert [change.what for change in real.changes] == [OPENED_EVENT] * len(opened), "with the rows of the first round"
    assert [one.closed_reason for one in read_findings(Warehouse(root), "DefaultCluster")] == [
        "its recording names another cluster now"
    ] * len(opened)
    assert [one.cluster for one in watching.round(at(now + 2_000)).clusters] == ["grid-cluster"]
    assert len([note for note in notes if "does not name its cluster" in note]) == 1


def test_a_round_has_the_instant_at_which_its_findings_were_known(tmp_path):
    feed = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live")
    now = feed.reach[0] + 30_000
    feed.until(now)
    done = made(tmp_path, tmp_path / "live").round(at(now))
    took = (done.ts - at(now)).total_seconds()
    assert 0.9 * done.seconds < took <= done.seconds


def test_the_loop_keeps_its_interval_until_it_is_interrupted(tmp_path):
    feed = Feed(SAMPLE / "bulk-5.3.3", tmp_path / "live")
    now = feed.reach[0] + 30_000
    feed.until(now)
    rounds: list[int] = []
    began: list[float] = []
    ends: list[float] = []

    def clock() -> dt.datetime:
        began.append(time.monotonic())
        return at(now)

    def wait(seconds: float) -> None:
        ends.append(max(0.0, time.monotonic() - began[-1]) + seconds)
        if len(ends) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(
            str(tmp_path / "w"),
            replace(load_settings(), local=LocalSettings(processes=1)),
            lambda done: rounds.append(done.number),
            lambda text: None,
            recordings=[str(tmp_path / "li*"), str(tmp_path / "live")],
            cluster="c",
            clock=clock,
            wait=wait,
        )
    assert rounds == [1, 2]
    # From the start of a round, however long it takes.
    assert ends == [pytest.approx(60, abs=2)] * 2
