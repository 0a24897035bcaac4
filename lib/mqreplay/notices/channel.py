"""The channels that messages go to: the services of apprise, and Alertmanager's own interface."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from mqreplay.notices.due import CLOSED, WORSENED, Notice
from mqreplay.notices.message import Source, rest_text, rest_title, text, title
from mqreplay.words.errors import InputError
from mqreplay.words.printable import scheme_alone

TRIES = 3
WAIT_S = 1.0  # before the second try; twice as long before the third
TIMEOUT_S = 10
FIRING = dt.timedelta(hours=24)  # until Alertmanager closes an alert that no other run sends again
# For a finding that is over when it is sent: Alertmanager sends no message about an alert that comes too late.
FIRING_ONCE = dt.timedelta(minutes=15)  # longer than its group_interval, 5 minutes
ALERTMANAGER = {"alertmanager": "http", "alertmanagers": "https"}
EXAMPLE = "slack://..., mailto://..., json://host/path or alertmanager://host:9093"


class Channel(Protocol):
    """A place that gets messages. ``name`` is safe to show: it has no secret."""

    name: str

    def send(self, notice: Notice, source: Source) -> str | None:
        """Send a message; return why it was not taken, or None."""

    def send_rest(self, rest: Sequence[Notice], source: Source) -> str | None:
        """Send one message about all that are beyond the limit; return why it was not taken, or None."""


class AppriseChannel:
    """A service of apprise, such as Slack, PagerDuty, DingTalk, Feishu, WeCom, mail or a webhook."""

    def __init__(self, url: str) -> None:
        """Take an address of apprise. Raises InputError if apprise is missing or knows no such service."""
        try:
            import apprise
        except ImportError:
            raise InputError("messages need the package apprise: pip install 'mqreplay[notify]'") from None
        asset = apprise.AppriseAsset(app_id="mqreplay", app_desc="mqreplay", default_service_retry=TRIES - 1)
        self._apprise = apprise.Apprise(asset=asset)
        with _warnings():  # they show the address, which may be a secret
            is_known = self._apprise.add(url)
        if not is_known:
            raise InputError(f"no service takes the address {scheme_alone(url)}; write it as {EXAMPLE}")
        (service,) = self._apprise.services
        parts = urlsplit(service.url(privacy=True))
        self.name = f"{parts.scheme}://{parts.netloc} {_digest(url)}"

    def send(self, notice: Notice, source: Source) -> str | None:
        """Send a message; return why it was not taken, or None."""
        kinds = {"critical": "failure", "warning": "warning", "info": "info"}
        kind = "success" if notice.what == CLOSED else kinds[notice.alert.severity]
        return self._notify(title(notice, source), text(notice, source), kind)

    def send_rest(self, rest: Sequence[Notice], source: Source) -> str | None:
        """Send one message about all that are beyond the limit; return why it was not taken, or None."""
        return self._notify(rest_title(rest, source), rest_text(rest, source), "info")

    def _notify(self, head: str, body: str, kind: str) -> str | None:
        with _warnings() as log:
            done = self._apprise.notify(body=body, title=head, notify_type=kind, body_format="text", timeout=60)
        return None if done else f"the service did not take it{_last_line(log.getvalue())}"


class AlertmanagerChannel:
    """Prometheus' Alertmanager: alerts with labels; it groups, routes, and silences them."""

    def __init__(self, url: str) -> None:
        """Take alertmanager://host:port, or alertmanagers:// for TLS; a user and a password may stand before it."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        if not host or not _is_port(parts):
            raise InputError(f"the address {scheme_alone(url)} has no host; write it as alertmanager://host:9093")
        self._url = f"{ALERTMANAGER[parts.scheme]}://{host}{parts.path.rstrip('/')}/api/v2/alerts"
        self._user = (parts.username or "", parts.password or "") if parts.username else None
        path = parts.path.rstrip("/")  # a gateway's path may hold a token
        self.name = f"{parts.scheme}://{host}" + (f" {_digest(path)}" if path else "")

    def send(self, notice: Notice, source: Source) -> str | None:
        """Send an alert; return why it was not taken, or None."""
        return self._post([_alert(notice, source), *_before(notice, source)])

    def send_rest(self, rest: Sequence[Notice], source: Source) -> str | None:
        """Send the alerts beyond the limit in one request: Alertmanager groups them itself."""
        return self._post([alert for one in rest for alert in (_alert(one, source), *_before(one, source))])

    def _post(self, alerts: list[dict[str, Any]]) -> str | None:
        request = urllib.request.Request(self._url, json.dumps(alerts).encode(), method="POST")
        request.add_header("Content-Type", "application/json")
        if self._user is not None:
            import base64

            request.add_header("Authorization", f"Basic {base64.b64encode(':'.join(self._user).encode()).decode()}")
        why = None
        for attempt in range(TRIES):
            time.sleep(WAIT_S * attempt)
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_S):
                    return None
            except urllib.error.HTTPError as error:
                why = f"it answered {error.code} {error.reason}"
                if error.code < 500:
                    break
            except OSError as error:
                why = str(getattr(error, "reason", error))
        return why


def _alert(notice: Notice, source: Source, severity: str | None = None) -> dict[str, Any]:
    """Return an alert of Alertmanager's interface, version 2."""
    alert = notice.alert
    now = dt.datetime.now(dt.UTC)
    firing = FIRING if alert.is_open else FIRING_ONCE
    end = now if severity is not None else now + firing
    if notice.what == CLOSED:
        end = min(alert.to_ts or now, now)
    labels = {"alertname": alert.kind, "severity": severity or alert.severity, "cluster": source.cluster}
    names = {"summary": title(notice, source), "description": text(notice, source)}
    link = source.link(alert)
    return {
        "labels": {**labels, **{name: str(value) for name, value in alert.names.items()}},
        "annotations": {**names, "finding_id": alert.finding_id},
        "startsAt": alert.from_ts.isoformat(),
        "endsAt": end.isoformat(),
        **({} if link is None or "://" not in link else {"generatorURL": link}),
    }


def _before(notice: Notice, source: Source) -> list[dict[str, Any]]:
    """Return the end of the alert of the lower severity: its labels are another alert's."""
    return [_alert(notice, source, notice.was)] if notice.what == WORSENED else []


def channels_of(urls: Sequence[str], files: Sequence[str]) -> list[Channel]:
    """Return the channels of addresses, and of files with one address a line. Raises InputError."""
    found = list(urls)
    for path in files:
        try:
            lines = Path(path).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the file of addresses {path} cannot be read: {error}") from None
        found += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return [_channel(url) for url in dict.fromkeys(found)]


def _channel(url: str) -> Channel:
    return AlertmanagerChannel(url) if url.partition("://")[0] in ALERTMANAGER else AppriseChannel(url)


def _is_port(parts: SplitResult) -> bool:
    """Return whether the port is missing or a number. It is part of a password that has a slash."""
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def _digest(secret: str) -> str:
    """Return what tells channels of one host apart, and shows nothing of their secrets."""
    return hashlib.sha256(secret.encode()).hexdigest()[:8]


@contextmanager
def _warnings() -> Iterator[io.StringIO]:
    """Collect what apprise logs, which would go to the terminal."""
    log, logger = io.StringIO(), logging.getLogger("apprise")
    handler = logging.StreamHandler(log)
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    try:
        yield log
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def _last_line(log: str) -> str:
    """Return the last line of a log as the end of a sentence."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return f" ({lines[-1][-200:]})" if lines else ""
