"""Two nights of which both are kept: the packets, and each pull as a hook in its client logged it."""

from __future__ import annotations

import json
import struct
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mqreplay.decode.capture.calls import Calls
from mqreplay.decode.capture.codes import PULL_MESSAGE
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.packets import segments
from tests_shared import ROOT
from tests_shared import unpack as unpack_archive

DATA = ROOT / "tests" / "data"
NIGHTS = ("hooked-4.9.7", "hooked-5.3.3")
Pull = dict[str, Any]
Packet = tuple[int, bytes]  # epoch microseconds, Ethernet frame

# Facts of the clients and of the hooks (tests/data/README.md).
# consumerTimeoutMillisWhenSuspend, 30 s; NettyRemotingAbstract#scanResponseTable waits 1 s more, and runs each second.
PULL_TIMEOUT_MS = 32_000
FLUSH_MS = 250  # a hook's lines are written so often

IN_FLIGHT = "the client was killed before the answer"
UNWRITTEN = "the client was killed before its hook had written the line"
FORGOTTEN = "the broker was killed, and the client stopped before the pull timed out"
UNSENT = "the client had no connection to send it"
UNNAMED = "the capture has no heartbeat on the connection"
UNEXPLAINED = "unexplained"


def key_of(pull: Pull) -> tuple[Any, ...]:
    """Return what only one pull has: a process numbers its requests."""
    names = ("client_id", "consumer_group", "topic", "broker_name", "broker_id", "queue_id", "queue_offset", "opaque")
    return tuple(pull.get(name) for name in names)


@dataclass(frozen=True)
class HookedNight:
    """A night in a folder: ``night.pcap``, ``logs``, ``hooks``, and ``events`` with what was done."""

    folder: Path
    events: list[dict[str, Any]]

    @property
    def capture(self) -> Path:
        """Return the file of the packets."""
        return self.folder / "night.pcap"

    def hooked(self) -> list[Pull]:
        """Return the pulls that hooks logged. The last line of a killed client may be torn."""
        lines = [line for file in (self.folder / "hooks").iterdir() for line in file.read_text().splitlines(True)]
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def killed_ms(self, name: str) -> int | None:
        """Return when a process was killed: a broker, or a JVM with clients."""
        return next((e["ts"] for e in self.events if e["action"] == "kill_9" and e["detail"]["process"] == name), None)

    def client_killed_ms(self, client_id: str) -> int | None:
        """Return when the JVM of a client was killed."""
        started = [event["detail"] for event in self.events if event["action"] == "consumer_start"]
        return self.killed_ms(next(one["host"] for one in started if one["client_id"] == client_id))

    def stopped_ms(self, client_id: str) -> int | None:
        """Return when a client was stopped in order."""
        stops = [event["detail"] for event in self.events if event["action"] == "consumer_stop"]
        return next((one["stop_called"] for one in stops if one["result"].startswith(f"stopped {client_id} ")), None)

    def why_not_hooked(self, pull: Pull) -> str:
        """Return why no hook logged a captured pull: a hook logs it when the call ends."""
        asked, answered = pull["request_ts"], pull.get("response_ts")
        killed = self.client_killed_ms(pull["client_id"])
        if killed is not None and asked <= killed < asked + PULL_TIMEOUT_MS:
            if answered is None:
                return IN_FLIGHT
            return UNWRITTEN if killed - FLUSH_MS <= answered <= killed else UNEXPLAINED
        broker_killed = self.killed_ms(f"{pull['broker_name']}-{pull['broker_id']}")
        stopped = self.stopped_ms(pull["client_id"])
        if answered is None and broker_killed is not None and stopped is not None:
            return FORGOTTEN if asked <= broker_killed < stopped < asked + PULL_TIMEOUT_MS else UNEXPLAINED
        return UNEXPLAINED

    def packet_pulls(self) -> dict[tuple[int, str, str, str], set[str | None]]:
        """Return the clients of each pull among the packets, by opaque, group, queue and offset; None: no heartbeat."""
        found: dict[tuple[int, str, str, str], set[str | None]] = {}
        with self.capture.open("rb") as stream:
            calls = list(Calls(segments(stream)))
        names = Names(calls)
        for call in calls:
            if call.request.code == PULL_MESSAGE:
                ext = call.request.ext
                key = call.request.opaque, ext["consumerGroup"], ext["queueId"], ext["queueOffset"]
                found.setdefault(key, set()).add(names.client(call.connection))
        return found


def unpacked(name: str, folder: Path) -> HookedNight:
    """Unpack a night into a folder."""
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        unpack_archive(archive, folder)
    return HookedNight(folder, [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()])


_HEAD: Final = struct.Struct("<IIII")


def packets(capture: Path) -> Iterator[Packet]:
    """Yield the packets of a capture by tcpdump on an Ethernet."""
    data, place = capture.read_bytes(), 24
    while place < len(data):
        seconds, micros, size, _ = _HEAD.unpack_from(data, place)
        place += _HEAD.size + size
        yield seconds * 10**6 + micros, data[place - size : place]


def written(capture: Path, like: Path, changed: Callable[[Packet], list[Packet]]) -> Path:
    """Write the packets of the capture ``like``, each changed."""
    parts = [like.read_bytes()[:24]]
    for packet in packets(like):
        for ts_us, frame in changed(packet):
            parts.append(_HEAD.pack(ts_us // 10**6, ts_us % 10**6, len(frame), len(frame)) + frame)
    capture.write_bytes(b"".join(parts))
    return capture
