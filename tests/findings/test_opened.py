"""Findings open, change and close by rules that need no Spark and no files."""

from __future__ import annotations

import datetime as dt

from mqreplay.findings.opened import CHANGED_EVENT, CLOSED_EVENT, ENDED_EVENT, OPENED_EVENT, Round, follow
from mqreplay.findings.shape import PLACE

START = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
LIMITS = {"stuck_queue": 120, "offset_rewind": 120}


def at(second: float) -> dt.datetime:
    return START + dt.timedelta(seconds=second)


def row(begin: float, end: float | None, kind: str = "stuck_queue", severity: str = "warning", **place):
    known = {name: place.get(name) for name in PLACE}
    named = f"{kind} {sorted(place.items())} {begin}"
    return {
        "finding_id": named,
        "kind": kind,
        "severity": severity,
        **known,
        "from_ts": at(begin),
        "to_ts": None if end is None else at(end),
        "confidence": 1.0,
        "summary": f"{kind} until {end}",
        "advice": "",
        "values": "{}",
        "evidence": [],
        "evidence_count": 0,
    }


def now(second: float, complete_since: float = -3600, is_silent: bool = False) -> Round:
    return Round(at(second), at(complete_since), at(second - 600), is_silent)


def seen(changes):
    return [(change.what, change.finding.kind, change.finding.queue_id) for change in changes]


def test_a_finding_stays_open_while_its_evidence_goes_on_and_closes_after_its_limit():
    state, changes = follow([], [row(0, 60, queue_id=1)], now(60), LIMITS)
    assert seen(changes) == [(OPENED_EVENT, "stuck_queue", 1)]
    state, changes = follow(state, [row(0, 120, queue_id=1)], now(120), LIMITS)
    assert changes == []
    assert state[0].last_seen_ts == at(120)
    state, changes = follow(state, [row(0, 120, queue_id=1)], now(240), LIMITS)
    assert changes == [], "the evidence has ended for the limit, and not for longer"
    state, changes = follow(state, [row(0, 120, queue_id=1)], now(241), LIMITS)
    assert seen(changes) == [(CLOSED_EVENT, "stuck_queue", 1)]
    assert (state[0].closed_ts, state[0].closed_reason) == (at(241), "no evidence of it for 120 s")
    again, changes = follow(state, [row(0, 120, queue_id=1)], now(300), LIMITS)
    assert (again, changes) == (state, []), "the window still has the evidence of a closed finding"


def test_what_is_found_late_does_not_close_soon_after():
    lost = [row(0, 1, queue_id=1)]
    state, changes = follow([], lost, now(100), LIMITS)
    assert seen(changes) == [(OPENED_EVENT, "stuck_queue", 1)]
    for second in (130, 220):
        state, changes = follow(state, lost, now(second), LIMITS)
        assert changes == [], second
    assert seen(follow(state, lost, now(221), LIMITS)[1]) == [(CLOSED_EVENT, "stuck_queue", 1)]


def test_what_was_over_before_it_was_found_is_one_change():
    lost = [row(0, 1, queue_id=1)]
    state, changes = follow([], lost, now(122), LIMITS)
    assert seen(changes) == [(ENDED_EVENT, "stuck_queue", 1)]
    assert [(one.closed_ts, one.closed_reason) for one in state] == [(at(122), "no evidence of it for 120 s")]
    assert follow(state, lost, now(182), LIMITS) == (state, []), "a later round finds it again"
    # Another start of watch knows it as open, so its end is told.
    known, _ = follow([], lost, now(60), LIMITS)
    assert seen(follow(known, lost, now(182), LIMITS)[1]) == [(CLOSED_EVENT, "stuck_queue", 1)]
    # It went on after it was closed, and is over again.
    state, changes = follow(state, [row(0, 130, queue_id=1)], now(260), LIMITS)
    assert seen(changes) == [(ENDED_EVENT, "stuck_queue", 1)]


def test_what_happens_again_later_is_another_finding():
    state, _ = follow([], [row(0, 10, queue_id=1)], now(10), LIMITS)
    state, _ = follow(state, [row(0, 10, queue_id=1)], now(200), LIMITS)
    state, changes = follow(state, [row(0, 10, queue_id=1), row(300, 310, queue_id=1)], now(310), LIMITS)
    assert seen(changes) == [(OPENED_EVENT, "stuck_queue", 1)]
    assert [one.is_open for one in state] == [False, True]


def test_a_change_of_severity_is_reported_once():
    state, _ = follow([], [row(0, 10, queue_id=1)], now(10), LIMITS)
    worse = row(0, 60, severity="critical", queue_id=1)
    state, changes = follow(state, [worse], now(60), LIMITS)
    assert seen(changes) == [(CHANGED_EVENT, "stuck_queue", 1)]
    assert follow(state, [worse], now(60), LIMITS)[1] == []


def test_a_silent_recording_closes_nothing():
    state, _ = follow([], [row(0, 10, queue_id=1)], now(10), LIMITS)
    state, changes = follow(state, [], now(700, is_silent=True), LIMITS)
    assert changes == []
    assert (state[0].is_open, state[0].undetermined_since) == (True, at(700))
    # The recording goes on after a gap: only recorded time counts.
    state, changes = follow(state, [], now(5000, complete_since=4900), LIMITS)
    assert changes == []
    assert state[0].undetermined_since == at(700)
    state, changes = follow(state, [], now(5021, complete_since=4900), LIMITS)
    assert seen(changes) == [(CLOSED_EVENT, "stuck_queue", 1)]
    assert state[0].closed_reason == "no evidence of it for 120 s after a gap in the recording"


def test_evidence_after_a_silence_shows_that_the_finding_goes_on():
    state, _ = follow([], [row(0, 10, queue_id=1)], now(10), LIMITS)
    state, _ = follow(state, [row(0, 10, queue_id=1)], now(10, is_silent=True), LIMITS)
    state, changes = follow(state, [row(0, 500, queue_id=1)], now(500, complete_since=400), LIMITS)
    assert changes == []
    assert state[0].undetermined_since is None


def test_a_finding_that_gets_wider_stays_the_same_one():
    one = {"consumer_group": "g", "topic": "t", "broker_name": "a"}
    state, _ = follow([], [row(0, 10, "offset_rewind", **one, queue_id=1)], now(10), LIMITS)
    state, changes = follow(state, [row(0, 30, "offset_rewind", **one)], now(30), LIMITS)
    assert changes == []
    assert [(f.broker_name, f.queue_id) for f in state] == [("a", None)]


def test_findings_of_one_kind_at_other_places_are_others():
    rows = [row(0, 10, "offset_rewind", consumer_group="g", queue_id=i) for i in range(2)]
    rows += [row(0, 10, consumer_group="g", queue_id=1), row(0, 10, consumer_group="h", queue_id=1)]
    assert len(follow([], rows, now(10), LIMITS)[1]) == len(rows)


def test_two_findings_that_become_one_are_joined():
    one = {"consumer_group": "g", "topic": "t"}
    rows = [row(0, 10, "offset_rewind", **one, queue_id=i) for i in range(2)]
    state, _ = follow([], rows, now(10), LIMITS)
    state, changes = follow(state, [row(0, 30, "offset_rewind", **one)], now(30), LIMITS)
    assert [change.what for change in changes] == [CLOSED_EVENT]
    assert "part of finding" in str(changes[0].finding.closed_reason)
    assert sum(f.is_open for f in state) == 1


def watched(*rounds, every_s=60, first_s=60):
    """Return what changed in each round: the rounds have these rows."""
    state, before, changed = [], [], []
    for number, rows in enumerate(rounds):
        end = first_s + number * every_s
        state, changes = follow(state, rows, now(end), LIMITS, before)
        before.append((at(end), rows))
        changed.append([change.what for change in changes])
    return changed


def test_a_finding_closes_when_a_second_round_does_not_find_it_either():
    stuck = row(0, 900, queue_id=1)
    assert watched([stuck], [], []) == [[OPENED_EVENT], [], [CLOSED_EVENT]]
    assert watched([stuck], [], [stuck], [], [stuck]) == [[OPENED_EVENT], [], [], [], []]
    state, _ = follow([], [stuck], now(60), LIMITS)
    _, (change,) = follow(state, [], now(180), LIMITS, [(at(120), [])])
    assert change.finding.closed_reason == "later evidence shows that there is no such finding"
    # A new start of watch knows no round before: the first one alone closes nothing.
    assert follow(state, [], now(70), LIMITS) == (state, [])


def test_an_uncertain_finding_opens_when_a_second_round_finds_it():
    likely = row(0, 900, queue_id=1) | {"confidence": 0.95}
    assert watched([likely], [likely]) == [[], [OPENED_EVENT]]
    assert watched([likely], [], [likely], [], [likely]) == [[]] * 5, "a storm of alerts"
    longer = row(0, 950, queue_id=1) | {"confidence": 0.95, "finding_id": "begins elsewhere"}
    assert watched([likely], [longer]) == [[], [OPENED_EVENT]], "of the same kind, place and time"
    assert watched([likely], [row(0, 950, queue_id=2) | {"confidence": 0.95}]) == [[], []], "at another place"
    closed = [[likely], [likely], [], [], [longer], [longer]]
    assert watched(*closed) == [[], [OPENED_EVENT], [], [CLOSED_EVENT], [], [OPENED_EVENT]], (
        "it opens again as it did at first"
    )


def test_rounds_that_agree_have_answers_of_their_own():
    likely = row(0, 900, queue_id=1) | {"confidence": 0.95}
    assert watched(*[[likely]] * 3, every_s=10) == [[], [], [OPENED_EVENT]]
    assert watched([likely], [], [likely], [likely], every_s=10) == [[]] * 4
    sure = row(0, 900, queue_id=1)
    assert watched(*[[sure]] * 3, *[[]] * 4, every_s=10) == [[OPENED_EVENT], [], [], [], [], [CLOSED_EVENT], []]


def test_the_first_round_opens_what_no_later_answer_revises():
    likely = row(0, 250, queue_id=1) | {"confidence": 0.95}
    assert follow([], [likely], now(90), LIMITS)[1] == []
    assert seen(follow([], [likely], now(91), LIMITS)[1]) == [(OPENED_EVENT, "stuck_queue", 1)]


def test_kinds_that_need_the_complete_day_do_not_open():
    assert follow([], [row(0, 10, "orphan_offset_key")], now(10), LIMITS) == ([], [])


def test_a_finding_without_an_end_counts_from_its_begin():
    state, _ = follow([], [row(5, None, queue_id=1)], now(10), LIMITS)
    assert state[0].last_seen_ts == at(5)
