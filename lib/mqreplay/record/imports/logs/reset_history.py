"""Records of resets of consumer offsets, from the broker.log of one broker."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from mqreplay.decode.logs import broker_facts as log
from mqreplay.decode.server_requests import INVOKE_BROKER_TO_RESET_OFFSET, RESET_CONSUMER_CLIENT_OFFSET

_SAME_MS: Final = 20_000  # between the same reset in a client's and a broker's log
_ANSWER_MS: Final = 10_000  # a broker carries a reset out, or refuses it, before it answers; mqadmin waits 5 s for that
Record = tuple[str, dict[str, object]]
Reset = log.ResetStarted | log.ResetSent | log.ResetDone | log.ResetRefused


class _Asked(NamedTuple):
    ts: int
    fact: log.ResetStarted


class ResetHistory:
    """The resets of one broker, from its facts in order. Calls yield the records that are complete.

    A request is complete with the line that says what became of it, or when the log goes on without one.
    """

    def __init__(
        self, broker_fields: Mapping[str, object], source: str, resets: Collection[tuple[str, str, str, int]]
    ) -> None:
        """Take ``resets``: client id, group, topic and ts of the resets in clients' logs, with their offsets."""
        self._fields = {**broker_fields, "source": source}
        self._resets = resets
        self._open: dict[tuple[str, str], _Asked] = {}  # requests without a result, the oldest first
        self._last: dict[tuple[str, str], log.ResetStarted] = {}

    def tick(self, ts: int | None) -> Iterator[Record]:
        """Yield the requests that nothing has answered by ``ts``; None: the log ends."""
        for key, asked in list(self._open.items()):
            if ts is None or ts - asked.ts > _ANSWER_MS:
                yield self._asked(self._open.pop(key))

    def take(self, ts: int, fact: Reset) -> Iterator[Record]:
        """Yield the records that a fact completes."""
        match fact:
            case log.ResetStarted():
                key = (fact.topic, fact.group)
                if key in self._open:
                    yield self._asked(self._open.pop(key))
                self._open[key] = _Asked(ts, fact)
                self._last[key] = fact
            case log.ResetSent():
                yield from self._sent(ts, fact)
            case log.ResetDone():
                asked = self._open.pop((fact.topic, fact.group), None)
                yield self._asked(asked, body=fact.body) if asked else self._unasked(ts, fact, body=fact.body)
            case log.ResetRefused():
                yield from self._refused(ts, fact)

    def _sent(self, ts: int, fact: log.ResetSent) -> Iterator[Record]:
        key = (fact.topic, fact.group)
        if key in self._open:
            yield self._asked(self._open.pop(key))
        for client_id, group, topic, at in self._resets:
            same = (client_id, group, topic) == (fact.client_id, fact.group, fact.topic)
            if same and abs(at - ts) <= _SAME_MS:
                return
        ext = {"topic": fact.topic, "group": fact.group}
        if key in self._last:
            ext |= {"timestamp": str(self._last[key].timestamp), "isForce": self._last[key].is_force}
        yield (
            "server_requests",
            {
                "ts": ts,
                "client_id": fact.client_id,
                **self._fields,
                "request_code": RESET_CONSUMER_CLIENT_OFFSET,
                "name": "RESET_CONSUMER_CLIENT_OFFSET",
                "ext": ext,
            },
        )

    def _refused(self, ts: int, fact: log.ResetRefused) -> Iterator[Record]:
        # Lines that do not name the topic or the group are of the last request: the same thread writes both.
        keys = [
            (topic, group) for topic, group in self._open if fact.topic in (None, topic) and fact.group in (None, group)
        ]
        if keys:
            yield self._asked(self._open.pop(keys[-1]), error=fact.reason)
        elif fact.topic is not None and fact.group is not None and (fact.topic, fact.group) not in self._last:
            yield self._unasked(ts, fact, error=fact.reason)

    def _asked(self, asked: _Asked, **result: str) -> Record:
        fact = asked.fact
        ext = {"topic": fact.topic, "group": fact.group, "timestamp": str(fact.timestamp), "isForce": fact.is_force}
        return self._request(asked.ts, ext, client_addr=fact.client_addr, **result)

    def _unasked(self, ts: int, fact: log.ResetDone | log.ResetRefused, **result: str) -> Record:
        """Return the record of a request whose first line is missing: the log begins after it."""
        return self._request(ts, {"topic": str(fact.topic), "group": str(fact.group)}, **result)

    def _request(self, ts: int, ext: dict[str, str], **fields: str) -> Record:
        named = {"request_code": INVOKE_BROKER_TO_RESET_OFFSET, "name": "INVOKE_BROKER_TO_RESET_OFFSET", "ext": ext}
        return "server_requests", {"ts": ts, **self._fields, **named, **fields}
