"""`mqreplay record --store DIR`: copy a broker's own files on its host when they change.

A copy is byte-exact and never torn, see `whole_copy`. If a file cannot be read completely, its .bak is copied instead.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mqreplay import __version__
from mqreplay.decode.consumer_offset import LMQ_FILE_NAME
from mqreplay.machine.local_files import output_folder
from mqreplay.machine.stop_signals import stopped_by, stops_ask
from mqreplay.recorder.network.clock import RecorderClock, steady_ms, wall_ms
from mqreplay.recorder.record_files import EVENTS, RecordFiles
from mqreplay.recorder.store_folder import (
    BAK,
    DECODERS,
    FILES,
    OFFSETS_FILE,
    BrokerStore,
    broker_store,
    unused_offsets_file,
)
from mqreplay.recorder.whole_copy import Signature, WholeCopy, read_whole, signature_of
from mqreplay.words.errors import InputError, RecordingFull
from mqreplay.words.time_span import MINUTE_MS

LONGEST_PATIENCE_S: Final = 1.0
LATE_MS: Final = 1000  # a poll that starts later than planned by more than this counts as missed
Say = Callable[[str], None]


@dataclass(slots=True)
class Watched:
    """A file of a broker, its state in the recording, and since when it is unreadable."""

    name: str
    signature: Signature | None = None  # of the copied content
    copied: dict[str, bytes] = field(default_factory=dict)  # digest by file name: of the file and its .bak
    reported: int | None = None  # ts up to which an event reports that it is unreadable
    failed: int = 0  # polls since then


class StoreRecorder:
    """A recorder of changed files in stores. Times are by the recorder's clock, in epoch ms."""

    def __init__(self, files: RecordFiles, stores: Sequence[BrokerStore], every_s: float, say: Say) -> None:
        self._files, self._stores, self._every, self._say = files, stores, every_s, say
        self._clock = RecorderClock(wall_ms(), steady_ms())
        self._watched = {store.name: [self._watch(store, name) for name in FILES] for store in stores}
        self._full_since: int | None = None
        self._copies = 0
        self._alive = self._due = self._now()

    def run(self, stop: threading.Event, for_s: float | None) -> int:
        """Record until ``stop`` is set or the time is over. Return the number of copies.

        Raises RecordingFull if the recording has reached its bound.
        """
        end = None if for_s is None else time.monotonic() + for_s
        stores = ", ".join(f"{store.name} in {store.config}" for store in self._stores)
        self._event("start", f"mqreplay {__version__}: stores {stores}; every {self._every:g} s")
        try:
            while not stop.is_set() and (end is None or time.monotonic() < end):
                self._round()
                self._due += int(self._every * 1000)
                stop.wait(max(0.0, min((self._due - self._now()) / 1000, self._every)))
        finally:
            self._event("stop")
        return self._copies

    def _round(self) -> None:
        """Poll once. A full disk does not stop the recorder: it makes the copies when there is space."""
        self._note()
        try:
            for store in self._stores:
                self._poll(store)
            self._files.flush()
        except RecordingFull as error:
            if error.at_bound:
                raise
            if self._full_since is None:
                self._full_since = self._now()
                self._say(f"{error}; copies wait until there is space")
            return
        if self._full_since is not None:
            detail = "the disk was full: nothing was copied"
            self._event("skipped", detail, from_ts=self._full_since, to_ts=self._now())
            self._say("the disk has space again; recording continues")
            self._full_since = None

    def _note(self) -> None:
        """Write events of the recorder: steps of the clock, missed polls, and that it runs."""
        step = self._clock.observe(wall_ms(), steady_ms())
        now = self._now()
        if step:
            self._event("clock_step", "the machine's clock was set; ts follow the old clock", count=step)
        if now - self._due > max(LATE_MS, int(self._every * 1000)):
            count = int((now - self._due) / 1000 / self._every)
            detail = "the recorder was suspended, or the machine was too slow"
            self._event("skipped", detail, from_ts=self._due, to_ts=now, count=count)
            self._due = now
        if now - self._alive >= MINUTE_MS:
            self._alive = now
            self._event("alive")

    def _poll(self, store: BrokerStore) -> None:
        found: list[tuple[Watched, str, WholeCopy]] = []
        unused = unused_offsets_file(store.config)
        for watched in self._watched[store.name]:
            if watched.name == unused:
                continue
            read = self._read(store, watched)
            if read is not None:
                found.append((watched, *read))
        ts = self._now()
        for watched, name, copy in found:
            digest = hashlib.sha256(copy.data).digest()
            if watched.copied.get(name) != digest:
                self._files.write_snapshot(store.broker_name, store.broker_id, ts, name, copy.data)
                watched.copied[name] = digest
                self._copies += 1
            if name == watched.name:
                watched.signature = copy.signature

    def _read(self, store: BrokerStore, watched: Watched) -> tuple[str, WholeCopy] | None:
        """Return name and content of the file or its .bak; None if it is unchanged or missing."""
        path = store.config / watched.name
        bak = path.with_name(path.name + BAK)
        signature = signature_of(path)
        if signature is not None and signature == watched.signature:
            return None
        if signature is None and not bak.exists() and watched.name not in watched.copied:
            return None  # a broker without delayed messages has no delayOffset.json
        patience = min(self._every / 2, LONGEST_PATIENCE_S)
        copy = read_whole(path, DECODERS[watched.name], patience)
        if isinstance(copy, WholeCopy):
            self._readable(store, watched)
            return watched.name, copy
        instead = read_whole(bak, DECODERS[watched.name], 0)
        is_there = isinstance(instead, WholeCopy)
        self._unreadable(store, watched, f"{copy}; " + (f"{bak.name} is copied instead" if is_there else "no .bak"))
        return (bak.name, instead) if isinstance(instead, WholeCopy) else None

    def _unreadable(self, store: BrokerStore, watched: Watched, why: str) -> None:
        watched.failed += 1
        now = self._now()
        if watched.reported is None:
            self._say(f"{store.config / watched.name}: {why}")
        if watched.reported is None or now - watched.reported >= MINUTE_MS:
            self._skipped(store, watched, now, why)

    def _readable(self, store: BrokerStore, watched: Watched) -> None:
        if watched.reported is not None:
            self._skipped(store, watched, self._now(), "it can be read again")
            self._say(f"{store.config / watched.name}: it can be read again")
            watched.reported = None

    def _skipped(self, store: BrokerStore, watched: Watched, now: int, why: str) -> None:
        since = now if watched.reported is None else watched.reported
        broker = {"broker_name": store.broker_name, "broker_id": store.broker_id, "request": watched.name}
        self._event("skipped", f"{watched.name}: {why}", **broker, from_ts=since, to_ts=now, count=watched.failed)
        watched.reported, watched.failed = now, 0

    def _watch(self, store: BrokerStore, name: str) -> Watched:
        """Return the state of a file after an earlier run."""
        watched = Watched(name)
        for each in (name, name + BAK):
            data = self._files.last_snapshot(store.broker_name, store.broker_id, each)
            if data is not None:
                watched.copied[each] = hashlib.sha256(data).digest()
        return watched

    def _event(self, kind: str, detail: str | None = None, **fields: Any) -> None:
        optional = {} if detail is None else {"detail": detail}
        self._files.append(EVENTS, {"ts": self._now(), "kind": kind, **optional, **fields})

    def _now(self) -> int:
        return self._clock.now_ms(steady_ms())


def record_store(
    stores: Sequence[str],
    out: str,
    every_s: float,
    for_s: float | None,
    say: Say,
    brokers: Sequence[str] = (),
    max_bytes: int | None = None,
) -> None:
    """Copy the files of brokers' stores on this machine into the recording ``out``.

    ``brokers`` are NAME-ID or the path of a broker.conf, one for each store in the same order.

    Raises:
        InputError: a store or the folder is not usable, or a store's broker is unknown.
        RecordingFull: the recording has reached ``max_bytes``.
        KeyboardInterrupt: a signal stopped it; all data is written.
    """
    if brokers and len(brokers) != len(stores):
        raise InputError(f"{len(stores)} --store need as many --broker, in the same order; {len(brokers)} are given")
    folder = output_folder(out)
    found = [broker_store(store, brokers[n] if brokers else None) for n, store in enumerate(stores)]
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise InputError(f"two stores are of the same broker: {', '.join(sorted(names))}; see --broker")
    for each in found:
        if folder in (each.config, *each.config.parents) or each.config in folder.parents:
            raise InputError(f"--out {folder} and the store {each.config} overlap; give another folder")
        say(f"recording {each.name} from {each.config} every {every_s:g} s")
        if (unused := unused_offsets_file(each.config)) is not None:
            used = LMQ_FILE_NAME if unused == OFFSETS_FILE else OFFSETS_FILE
            say(f"{each.config / unused} is not copied: {used} is newer, and a broker writes one of them (enableLmq)")
    stop = threading.Event()
    with stops_ask(stop.set), RecordFiles(folder, max_bytes) as files:
        copies = StoreRecorder(files, found, every_s, say).run(stop, for_s)
    say(f"{copies} {'copy' if copies == 1 else 'copies'} written to {folder}")
    if stopped_by() is not None:
        raise KeyboardInterrupt
