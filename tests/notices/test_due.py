"""Which messages are due: each finding once when it opens, gets worse, or closes."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from mqreplay.answers.alert import Alert
from mqreplay.notices.due import CLOSED, OPENED, WORSENED, Notice, Sent, due

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
PLACE = ("g", "t", None, None, None, None)
OPEN = Alert("a1", "stuck_queue", "warning", PLACE, NOON, NOON + dt.timedelta(minutes=2), True, "It stood still.", "")
ENDED = replace(OPEN, is_open=False)


def sent(notice: Notice, minutes: int = 0) -> list[Sent]:
    """What a channel has taken of a notice."""
    return [
        Sent(
            alert.finding_id,
            alert.kind,
            alert.severity,
            alert.place,
            alert.from_ts,
            alert.to_ts,
            alert.is_open,
            notice.what,
            NOON + dt.timedelta(minutes=minutes),
        )
        for alert in notice.alerts
    ]


def asked(*alerts: Alert, before: list[Sent] | None = None, muted: str = "", since: dt.datetime | None = None):
    return due(alerts, before or [], lambda alert: alert.finding_id == muted, since)


def test_a_finding_is_sent_once_when_it_opens():
    (opened,) = asked(OPEN)
    assert (opened.what, opened.alert) == (OPENED, OPEN)
    assert asked(OPEN, before=sent(opened)) == []


def test_a_finding_of_the_past_has_one_message():
    (opened,) = asked(ENDED)
    assert opened.what == OPENED
    assert asked(ENDED, before=sent(opened)) == []


def test_a_finding_that_gets_worse_is_sent_again_and_one_that_gets_better_is_not():
    worse, better = replace(OPEN, severity="critical"), replace(OPEN, severity="info")
    (notice,) = asked(worse, before=sent(Notice(OPENED, OPEN)))
    assert (notice.what, notice.was) == (WORSENED, "warning")
    assert asked(worse, before=sent(Notice(OPENED, OPEN)) + sent(notice, 1)) == []
    assert asked(better, before=sent(Notice(OPENED, OPEN))) == []


def test_a_finding_closes_once_and_may_open_again():
    before = sent(Notice(OPENED, OPEN))
    (closed,) = asked(ENDED, before=before)
    assert closed.what == CLOSED
    before += sent(closed, 1)
    assert asked(ENDED, before=before) == []
    (again,) = asked(OPEN, before=before)
    assert again.what == OPENED


def test_the_nightly_run_knows_what_watch_has_sent_by_kind_place_and_time():
    of_watch = sent(Notice(OPENED, OPEN))
    of_night = replace(ENDED, finding_id="b2", from_ts=NOON - dt.timedelta(seconds=20))
    (closed,) = asked(of_night, before=of_watch)
    assert (closed.what, closed.alert.finding_id) == (CLOSED, "b2")
    earlier = replace(ENDED, finding_id="c3", from_ts=NOON - dt.timedelta(hours=2), to_ts=NOON - dt.timedelta(hours=1))
    elsewhere = replace(ENDED, finding_id="d4", place=("h", *PLACE[1:]))
    assert [one.what for one in asked(OPEN, earlier, elsewhere, before=of_watch)] == [OPENED, OPENED]


def test_an_open_finding_that_is_no_longer_found_is_closed():
    (gone,) = asked(before=sent(Notice(OPENED, OPEN)))
    assert (gone.what, gone.alert.is_open) == (CLOSED, False)
    assert "no longer found" in gone.alert.summary
    # The report shows the last days alone: what began before is not known to be gone.
    assert asked(before=sent(Notice(OPENED, OPEN)), since=NOON + dt.timedelta(days=1)) == []


def test_an_older_finding_has_no_first_message():
    assert due([OPEN, ENDED], [], lambda alert: False, None, {"b2"}) == []
    assert [one.alert for one in due([OPEN], [], lambda alert: False, None, {"a1"})] == [OPEN]
    before = sent(Notice(OPENED, OPEN))
    assert [one.what for one in due([ENDED], before, lambda alert: False, None, set())] == [CLOSED]


def test_what_is_muted_is_sent_when_the_mute_is_over():
    assert asked(OPEN, muted="a1") == []
    assert [one.what for one in asked(OPEN)] == [OPENED]


def test_what_follows_from_a_finding_is_in_its_message():
    cause = replace(OPEN, finding_id="cause", kind="broker_down", severity="critical")
    effect = replace(OPEN, cause="cause")
    next_effect = replace(OPEN, finding_id="a2", cause="a1", place=("i", *PLACE[1:]))
    (notice,) = asked(effect, next_effect, cause)
    assert (notice.alert, set(notice.effects)) == (cause, {effect, next_effect})
    assert asked(effect, next_effect, cause, before=sent(notice)) == []


def test_what_is_more_severe_than_its_cause_has_a_message_of_its_own():
    cause = replace(OPEN, finding_id="cause", kind="broker_down", severity="info")
    assert [one.alert.finding_id for one in asked(replace(OPEN, cause="cause"), cause)] == ["a1", "cause"]


def test_an_effect_of_a_cause_that_was_sent_before_has_a_message_of_its_own():
    cause = replace(OPEN, finding_id="cause", kind="broker_down", severity="critical")
    (notice,) = asked(cause)
    (later,) = asked(cause, replace(OPEN, cause="cause"), before=sent(notice))
    assert later.alert.finding_id == "a1"


def test_the_most_severe_come_first():
    late = replace(OPEN, finding_id="z", severity="critical", from_ts=NOON + dt.timedelta(hours=1))
    assert [one.alert.finding_id for one in asked(OPEN, late)] == ["z", "a1"]
