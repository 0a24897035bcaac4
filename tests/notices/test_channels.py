"""What a channel sends: to each service that the documents name, and to Alertmanager; and the text of a message."""

from __future__ import annotations

import base64
import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqreplay.answers.alert import Alert, of_night
from mqreplay.answers.mutes import Mute, muting
from mqreplay.answers.open_findings import seconds_until_closed
from mqreplay.language.language import language
from mqreplay.notices import channel
from mqreplay.notices.channel import AlertmanagerChannel, AppriseChannel, channels_of
from mqreplay.notices.due import CLOSED, OPENED, WORSENED, Notice
from mqreplay.notices.message import Source, text, title
from mqreplay.notices.notify import opened_channels
from mqreplay.settings import Settings, load_settings
from notices.hook import hook

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
PLACE = ("billing", "orders", "broker-a", None, 0, None)
STUCK = Alert("a1b2c3d4e5", "stuck_queue", "critical", PLACE, NOON, None, True, "Group billing stands still.", "Look.")
DOWN = replace(STUCK, finding_id="f00d", kind="broker_down", summary="broker-a is down.")
SOURCE = Source("prod", "/data/w", "https://r/prod.html", {DOWN.finding_id: DOWN})


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "WAIT_S", 0.0)


@pytest.mark.parametrize(
    "url",
    [
        "slack://TokenA123/TokenB123/TokenC12345678901234567890/#ops",
        "pagerduty://IntegrationKey0123456789@ApiKey0123456789",
        "dingtalk://0123456789abcdefghij",
        "feishu://0123456789abcdefghij",
        "wecombot://0123456789abcdefghij",
        "mailtos://ops:word@example.org",
        "json://hook.example.org/path",
    ],
)
def test_each_service_of_the_documents_takes_its_address(url: str) -> None:
    (found,) = channels_of([url], [])
    assert isinstance(found, AppriseChannel)
    assert found.name.startswith(url.partition("://")[0][:4])
    assert not any(secret in found.name for secret in ("Token", "Key", "0123456789", "word"))


def test_a_message_says_what_where_why_and_what_to_do() -> None:
    notice = Notice(WORSENED, replace(STUCK, cause=DOWN.finding_id), "warning", (replace(STUCK, kind="lag_grows"),))
    assert title(notice, SOURCE) == (
        "critical, worsened from warning: group billing stands still from 2026-11-21 12:00:00 (prod)"
    )
    assert title(Notice(OPENED, STUCK), replace(SOURCE, until=NOON)) == (
        "critical: group billing stands still from 12:00:00 (prod)"
    )
    gone = replace(STUCK, is_withdrawn=True, is_open=False)
    assert title(Notice(CLOSED, gone), SOURCE) == "critical, closed: stuck_queue of billing/orders/broker-a/0 (prod)"
    assert text(notice, SOURCE).splitlines() == [
        "Group billing stands still.",
        "When: since 2026-11-21 12:00:00 UTC",
        "Follows from: broker_down (f00d): broker-a is down.",
        "Followed by: 1 lag_grows",
        "Next: Look.",
        "Page: https://r/prod.html#f-a1b2c3d4e5",
        "Evidence: mqreplay explain a1b2c3d4 --warehouse /data/w",
    ]


@pytest.mark.parametrize(
    ("is_open", "to_ts", "words"),
    [
        (True, None, "since 2026-11-21 12:00:00 UTC"),
        (True, NOON, "since 2026-11-21 12:00:00 UTC"),
        (True, NOON + dt.timedelta(seconds=40), "since 2026-11-21 12:00:00 UTC, last evidence 2026-11-21 12:00:40 UTC"),
        (False, NOON + dt.timedelta(seconds=40), "2026-11-21 12:00:00 to 2026-11-21 12:00:40 UTC"),
    ],
)
def test_a_message_says_until_when_there_is_evidence(is_open: bool, to_ts: dt.datetime | None, words: str) -> None:
    notice = Notice(OPENED, replace(DOWN, is_open=is_open, to_ts=to_ts))
    assert text(notice, SOURCE).splitlines()[1] == f"When: {words}"


@pytest.mark.parametrize(
    ("kind", "is_open", "lang", "words"),
    [
        ("broker_down", True, "en", "; still down at 12:02:09 UTC"),
        ("broker_down", False, "en", "; answered again 1 min 29 s ago"),
        ("stuck_queue", True, "en", "; still going on at 12:02:09 UTC"),
        ("stuck_queue", False, "zh", "；结束于 1 分钟 29 秒前"),
    ],
)
def test_a_message_says_how_the_finding_is_at_the_end_of_the_recording(
    kind: str, is_open: bool, lang: str, words: str
) -> None:
    end = NOON + dt.timedelta(seconds=40)
    alert = replace(STUCK, kind=kind, is_open=is_open, to_ts=end)
    source = replace(SOURCE, until=end + dt.timedelta(seconds=89), words=language(lang))
    assert text(Notice(OPENED, alert), source).splitlines()[1].endswith(words)
    assert not text(Notice(OPENED, alert), SOURCE).splitlines()[1].endswith(words)


def test_a_broker_that_answers_again_is_no_longer_down() -> None:
    limits = seconds_until_closed(Settings())
    place = {"consumer_group": None, "topic": None, "broker_name": "a", "broker_id": 0, "queue_id": None}
    row = {"finding_id": "f00d", "kind": "broker_down", "severity": "critical", **place, "client_id": None}
    row |= {"from_ts": NOON, "to_ts": NOON + dt.timedelta(seconds=40), "summary": "", "advice": ""}
    states = {s: of_night([row], NOON + dt.timedelta(seconds=s), limits)[0].is_open for s in (48, 71)}
    assert states == {48: True, 71: False}, "a poll that fails takes 8 s"


def sent(notice: Notice, status: int = 200) -> tuple[str | None, int, list[Any]]:
    """Return why Alertmanager did not take it, the requests, and the alerts that it got."""
    with hook() as server:
        server.status = status
        why = AlertmanagerChannel(f"alertmanager://ops:word@{server.address}").send(notice, SOURCE)
        credentials = base64.b64encode(b"ops:word").decode()
        assert server.authorizations == [f"Basic {credentials}"] * server.tries
        return why, server.tries, [alert for _, alerts in server.got for alert in alerts]


def test_alertmanager_is_asked_again_if_it_fails_and_not_if_it_refuses() -> None:
    assert sent(Notice(OPENED, STUCK), 503)[:2] == ("it answered 503 Service Unavailable", channel.TRIES)
    assert sent(Notice(OPENED, STUCK), 400)[:2] == ("it answered 400 Bad Request", 1)


def test_alertmanager_ends_what_closed_and_the_alert_of_the_lower_severity() -> None:
    now = dt.datetime.now(dt.UTC)

    def is_firing(alert: dict[str, Any]) -> bool:
        return dt.datetime.fromisoformat(alert["endsAt"]) > now + dt.timedelta(hours=1)

    why, _, (opened,) = sent(Notice(OPENED, STUCK))
    assert (why, is_firing(opened)) == (None, True)
    assert opened["generatorURL"] == "https://r/prod.html#f-a1b2c3d4e5"
    assert opened["labels"] == {
        "alertname": "stuck_queue",
        "severity": "critical",
        "cluster": "prod",
        "consumer_group": "billing",
        "topic": "orders",
        "broker_name": "broker-a",
        "queue_id": "0",
    }
    (closed,) = sent(Notice(CLOSED, STUCK))[2]
    assert (closed["labels"], is_firing(closed)) == (opened["labels"], False)
    over = replace(STUCK, is_open=False, to_ts=NOON + dt.timedelta(minutes=2))
    (ended,) = sent(Notice(CLOSED, over))[2]
    assert (ended["startsAt"], ended["endsAt"]) == (NOON.isoformat(), over.to_ts.isoformat()), "not when it was sent"
    # Alertmanager sends nothing about an alert that it learns of when it is over: it fires, but not for a day.
    (late,) = sent(Notice(OPENED, over))[2]
    assert dt.timedelta(minutes=5) < dt.datetime.fromisoformat(late["endsAt"]) - now < dt.timedelta(minutes=16)
    worse, before = sent(Notice(WORSENED, STUCK, "warning"))[2]
    assert (worse["labels"]["severity"], is_firing(worse)) == ("critical", True)
    assert (before["labels"], is_firing(before)) == ({**worse["labels"], "severity": "warning"}, False)


def test_addresses_of_the_settings_count_without_those_of_the_command(tmp_path: Path) -> None:
    secrets, conf = tmp_path / "urls", tmp_path / "conf.toml"
    secrets.write_text("json://from-file\n")
    conf.write_text(f'[notify]\nurls = ["alertmanager://am:9093"]\nfile = "{secrets}"\n')
    settings = load_settings(str(conf)).notify

    def names(*urls: str) -> list[str]:
        return [one.name.partition(" ")[0] for one in opened_channels(settings, urls)]

    assert names() == ["alertmanager://am:9093", "json://from-file"]
    assert names("json://of-command") == ["json://of-command"]
    assert names(f"@{secrets}") == ["json://from-file"]


def mute(**wanted: str) -> Mute:
    columns = ("finding_id", "kind", "consumer_group", "topic", "broker_name")
    values = {name: wanted.get(name) for name in columns}
    return Mute("m", **values, from_ts=NOON, until_ts=NOON + dt.timedelta(hours=8), reason="load", by_user="ops")


@pytest.mark.parametrize(
    ("wanted", "covers"),
    [
        ({"finding_id": "a1b2c3d4e5"}, True),
        ({"finding_id": "f00d"}, False),
        ({"kind": "stuck_*", "consumer_group": "bill*"}, True),
        ({"kind": "stuck_*", "consumer_group": "other"}, False),
        ({"topic": "orders", "broker_name": "broker-?"}, True),
    ],
)
def test_a_mute_covers_its_findings_until_it_expires(wanted: dict[str, str], covers: bool) -> None:
    hours = [muting([mute(**wanted)], STUCK, NOON + dt.timedelta(hours=hour)) is not None for hour in (-1, 0, 7.9, 8)]
    assert hours == [False, covers, covers, False]
    nameless = replace(STUCK, place=(None,) * 6)
    assert (muting([mute(consumer_group="*")], nameless, NOON)) is None
