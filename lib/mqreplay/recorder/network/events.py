"""recorder_events: start, stop and errors of the recorder, and missing polls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mqreplay.decode.recorder_events import NAME_SERVER_4, NAME_SERVER_SETTINGS, SCAN
from mqreplay.recorder.network.polls import POLLS, PROXY_MEMBERS
from mqreplay.recorder.network.schedule import Skipped, Target
from mqreplay.recorder.network.topology import BrokerKey

Append = Callable[[str, Mapping[str, Any]], None]  # takes the kind of record and the record
STEM: Final = "recorder_events"
MOST_TEXT: Final = 32  # characters of a setting
GAP_REASONS: Final = {
    "budget": "more polls were due than the request budget or the response times allowed",
    "unreachable": "the server could not be reached",
}


class Events:
    """A writer of events."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._missing: dict[tuple[str, BrokerKey | None, str, str], list[int]] = {}

    def write(self, kind: str, ts: int, detail: str | None = None, **fields: Any) -> None:
        """Write an event."""
        optional = {"detail": detail, **fields}
        self._append(STEM, {"ts": ts, "kind": kind, **{k: v for k, v in optional.items() if v is not None}})

    def server(self, kind: str, ts: int, target: Target, detail: str, **fields: Any) -> None:
        """Write an event of a name server, proxy or broker: unreachable or reachable."""
        broker, other = target.broker, "proxy" if target.kind == PROXY_MEMBERS else "name server"
        name = f"{other} {target.addr}" if broker is None else f"broker {broker[0]}-{broker[1]} ({target.addr})"
        self.write(kind, ts, f"{name}: {detail}", **_broker_fields(broker), **fields)

    def name_server(self, target: Target, ts: int, settings: Mapping[str, str]) -> None:
        """Write how often a name server looks for brokers that are gone: a setting of 5.x, which 4.x does not have."""
        scan = settings.get(SCAN)
        if scan is not None or "kvConfigPath" in settings:
            detail = NAME_SERVER_4 if scan is None else f"{SCAN}={scan[:MOST_TEXT]}"
            self.server(NAME_SERVER_SETTINGS, ts, target, detail)

    def missing(self, target: Target, ts: int, reason: str) -> None:
        """Count a poll without a result and without its own line."""
        total = self._missing.setdefault((target.addr, target.broker, target.kind, reason), [ts, ts, 0])
        total[1:] = ts, total[2] + 1

    def write_skipped(self, ts: int, skipped: list[Skipped], age_of: Callable[[int], int]) -> None:
        """Write the polls missing since the last call. ``age_of`` turns a time of the schedule into epoch ms."""
        rows = [
            (
                each.addr,
                each.broker,
                each.kind,
                GAP_REASONS[each.reason],
                age_of(each.from_ms),
                age_of(each.to_ms),
                each.polls,
            )
            for each in skipped
        ]
        rows += [(*key, *total) for key, total in self._missing.items()]  # type: ignore[misc]
        self._missing.clear()
        for addr, broker, kind, reason, from_ts, to_ts, count in rows:
            self.write(
                "skipped",
                ts,
                f"{addr}: {reason}",
                **_broker_fields(broker),
                request=POLLS[kind].code.name,
                from_ts=from_ts,
                to_ts=to_ts,
                count=count,
            )


def _broker_fields(broker: BrokerKey | None) -> dict[str, Any]:
    return {} if broker is None else {"broker_name": broker[0], "broker_id": broker[1]}
