"""The recorder's loop: sends due polls, writes answers, and continues when servers do not answer."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from mqreplay import __version__
from mqreplay.decode.fields import str_of
from mqreplay.recorder.network.brokers_json import BrokersJson
from mqreplay.recorder.network.clock import RecorderClock, steady_ms, wall_ms
from mqreplay.recorder.network.estate import Estate
from mqreplay.recorder.network.events import Events
from mqreplay.recorder.network.options import RecordOptions
from mqreplay.recorder.network.poll_writer import PollWriter
from mqreplay.recorder.network.polls import POLLS, Known, reading
from mqreplay.recorder.network.queue_polls import QueuePolls
from mqreplay.recorder.network.readings import Reading, silence, unasked
from mqreplay.recorder.network.schedule import Schedule, Target
from mqreplay.recorder.network.status import Status, found_line, minute_line
from mqreplay.recorder.network.targets import is_probe, plans
from mqreplay.recorder.network.topology import BrokerKey, Reach, Topology
from mqreplay.recorder.record_files import RecordFiles
from mqreplay.recorder.remoting.connection import CallFailed, Connections
from mqreplay.recorder.remoting.frames import SUCCESS, Answer
from mqreplay.recorder.remoting.requests import Request
from mqreplay.words.errors import DecodeError, OwnDiskError, RecordingFull
from mqreplay.words.time_span import MINUTE_MS

SECOND_MS: Final = 1000
TICK_MS: Final = 20
LONGEST_WAIT_MS: Final = 250
FIRST_ROUND_MS: Final = 60_000  # latest time of the line with groups and clients


class Recorder:
    """A recorder of one cluster. It runs until it is stopped."""

    def __init__(
        self,
        options: RecordOptions,
        files: RecordFiles,
        connections: Connections,
        topology: Topology,
        brokers: BrokersJson,
        reach: Reach,
        say: Callable[[str], None],
    ) -> None:
        self._options, self._files, self._connections, self._say = options, files, connections, say
        self._clock = RecorderClock(wall_ms(), steady_ms())
        self._topology, self._estate = topology, Estate(options.chosen)
        self._schedule = Schedule(options.requests_per_second)
        self._events = Events(self._append)
        known = Known(topology, self._estate, brokers, self._events)
        self._writer = PollWriter(files, self._append, known, int(options.every_s * 1000))
        self._reach = reach
        self._revision, self._planned, self._plan_cost, self._looked = -1, 0, 0, 0
        self._clients: dict[str, list[Target]] = {}  # by group
        self._running: set[asyncio.Task[None]] = set()
        self._full_since: int | None = None
        self._failure: BaseException | None = None
        self._queues = QueuePolls(self._estate)
        self._keys: set[BrokerKey] = set()  # of the polled brokers
        self._stats_asked: dict[Target, int] = {}
        self._reported: set[tuple[str, str]] = set()  # addresses and kinds of answers that could not be processed
        self._stop = asyncio.Event()
        self.status = Status()

    def stop(self) -> None:
        """End `run` normally."""
        self._stop.set()

    async def run(self) -> None:
        """Record until `stop`, or for the time of the options.

        Raises RecordingFull where the recording has reached its bound.
        """
        began = steady_ms()
        end = None if self._options.for_s is None else began + int(self._options.for_s * 1000)
        self._events.write("start", self._now(), f"mqreplay {__version__}: {self._options.described()}")
        keeper = asyncio.create_task(self._keep())
        reported = False
        try:
            while not self._stop.is_set() and self._failure is None and (end is None or steady_ms() < end):
                now = steady_ms()
                if self._full_since is None:
                    self._plan(now)
                    for target in self._schedule.take(now):
                        self._start(target)
                if not reported and (now - began > FIRST_ROUND_MS or self._is_first_round_over(now - began)):
                    reported = True
                    self._say(found_line(self._estate))
                wait = max(TICK_MS, self._schedule.next_due(steady_ms(), LONGEST_WAIT_MS))
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait / 1000):
                        await self._stop.wait()
        finally:
            await self._end(keeper)
        if self._failure is not None:
            raise self._failure

    def _append(self, stem: str, record: Mapping[str, Any]) -> None:
        self._files.append(stem, record)
        self.status.lines[stem] += 1

    def _now(self) -> int:
        return self._clock.now_ms(steady_ms())

    def _plan(self, now: int) -> None:
        """Plan again if anything changed, but not too often. Look each second whether a broker left the lists."""
        state = self._estate.revision + self._reach.revision
        if state == self._revision and now < self._looked + SECOND_MS:
            return
        self._looked = now
        brokers = self._topology.brokers(self._now())
        if (keys := {each.key for each in brokers}) != self._keys:
            self._estate.forget_brokers(keys)
            self._keys, self.status.brokers = keys, len(brokers)
            state = self._estate.revision + self._reach.revision
        if state == self._revision or (now < self._planned + 50 * self._plan_cost and self._revision != -1):
            return
        name_servers = self._options.name_servers
        planned = plans(self._options, name_servers, brokers, self._reach.silent, self._estate, self._reach.is_known)
        self._schedule.replace(planned, now)
        self._clients = defaultdict(list)
        for target in planned:
            if target.kind == "running_info":
                self._clients[target.subject].append(target)
        self._revision, self._planned, self._plan_cost = state, now, steady_ms() - now

    def _is_first_round_over(self, age: int) -> bool:
        """Return whether all known targets were polled once."""
        return age > 2000 and "members" in self.status.polled and not self._schedule.has_new

    def _start(self, target: Target) -> None:
        task = asyncio.create_task(self._poll(target))
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and self._failure is None:
            self._failure = error
            self._stop.set()

    async def _poll(self, target: Target) -> None:
        answered = True
        try:
            with self._full_disk():
                if target.kind != "consume_stats" or self._is_stats_due(target):
                    answered = await self._ask(target)
                else:
                    self._schedule.charge(target.addr, -1)
        except (RecordingFull, OwnDiskError, OSError):  # of this machine's disk: those of the network are CallFailed
            raise
        except Exception as error:
            answered = False
            self._unprocessed(target, error)
        finally:
            self._schedule.done(target, steady_ms(), answered)

    def _unprocessed(self, target: Target, error: Exception) -> None:
        """Count an answer that the recorder cannot process. One server does not end the recording of the others."""
        reason = f"the answer cannot be processed: {type(error).__name__}: {str_of(str(error))}"
        if (target.addr, target.kind) not in self._reported:
            self._reported.add((target.addr, target.kind))
            self._say(f"{target.addr}, {POLLS[target.kind].code.name}: {reason}; recorder_events counts such answers")
        self._events.missing(target, self._now(), reason)

    async def _ask(self, target: Target) -> bool:
        """Poll a target and process the answer. Return whether the answer was good."""
        ts, count, answer, poll = self._now(), 0, None, POLLS[target.kind]
        urgent = self._schedule.is_urgent(target)
        timeout = poll.timeout_s or self._options.timeout_s

        def on_send() -> None:
            nonlocal ts, count
            ts = ts if count else self._now()
            count += 1

        async def ask(request: Request) -> Answer:
            if count:  # the schedule has counted the first request
                self._schedule.charge(target.addr, 1)
            return await self._connections.call(target.addr, request, timeout, urgent, on_send)

        try:
            if target.kind == "topic_offsets" and (queues := self._queues.queues_of(target)):
                result = await self._queues.ask(target, queues, ask, ts)
            else:
                answer = await ask(poll.request(target))
                result = Reading({}) if target.kind == "offsets" else reading(target, answer)
        except CallFailed as failure:
            result = silence(failure)
            self._silent(target, ts, failure)
        except DecodeError as error:  # a name that is invalid in a request
            result = unasked(error)
        response_ts = self._now()
        if not result.is_silence:
            self._answered(target, ts)
        if target.kind == "offsets" and answer is not None:
            result = Reading({}, error=self._writer.take_offsets(target, ts, response_ts, answer))
        elif poll.snapshot and answer is not None and answer.code == SUCCESS and result.error is None:
            self._writer.take_snapshot(target, ts, poll.snapshot, answer)
        self.status.polled.add(target.kind)
        if self._writer.take(target, ts, response_ts, result, self._schedule.period_ms(target)):
            for each in (target._replace(kind="connections"), *self._clients.get(target.subject, ())):
                self._schedule.hasten(each, steady_ms())
        return result.error is None

    def _is_stats_due(self, target: Target) -> bool:
        """Return whether the group's offsets changed since its statistics were last polled."""
        if not self._estate.consumed_since(target.broker_key, target.subject, self._stats_asked.get(target, 0)):
            return False
        self._stats_asked[target] = self._now()
        return True

    def _silent(self, target: Target, ts: int, failure: CallFailed) -> None:
        probes = is_probe(target)
        if probes or failure.kind == "unreachable":
            self._schedule.block(target.addr, steady_ms()) if failure.kind == "unreachable" else None
            if self._reach.failed(target.addr, probes, failure.kind == "unreachable"):
                self._events.server("unreachable", ts, target, failure.detail)
                self._estate.forget_proxy(target.addr)
                if target.broker is not None:
                    self._estate.forget_members(target.broker)

    def _answered(self, target: Target, ts: int) -> None:
        self._schedule.unblock(target.addr, steady_ms())
        since = self._reach.answered(target.addr, ts)
        if since is not None:
            self._events.server("reachable", ts, target, "it answers again", from_ts=since or None, to_ts=ts)

    async def _keep(self) -> None:
        """Write records to disk each interval; write missing polls and a progress line each minute."""
        minute = steady_ms()
        try:
            while True:
                await asyncio.sleep(self._options.every_s)
                is_minute = steady_ms() - minute >= MINUTE_MS
                minute = steady_ms() if is_minute else minute
                with self._full_disk():
                    self._note(is_minute)
                    await asyncio.to_thread(self._files.flush)
                    self._go_on()
        except Exception as error:
            self._failure = self._failure or error
            self._stop.set()

    def _note(self, is_minute: bool) -> None:
        step = self._clock.observe(wall_ms(), steady_ms())
        now = self._now()
        if step:
            self._events.write("clock_step", now, "the machine's clock was set; ts follow the old clock", count=step)
        if is_minute:
            self._events.write("alive", now)
            self._write_skipped(now)
            self._writer.keep(self._schedule)
            silent = self._reach.silent & {each.addr for each in self._schedule}
            self._say(minute_line(self.status, self._estate, self._connections.counters, silent))
        self._writer.write_brokers()

    def _go_on(self) -> None:
        """Poll again after the disk was full."""
        if self._full_since is not None:
            now, detail = self._now(), "the disk was full: nothing was polled"
            self._events.write("skipped", now, detail, from_ts=self._full_since, to_ts=now)
            self._say("the disk has space again; recording continues")
            self._full_since = None

    @contextmanager
    def _full_disk(self) -> Iterator[None]:
        """Wait for space if that can help, else end."""
        try:
            yield
        except RecordingFull as error:
            if error.at_bound:
                self._failure = self._failure or error
                self._stop.set()
            elif self._full_since is None:
                self._full_since = self._now()
                self._say(f"{error}; polls wait until there is space")

    def _write_skipped(self, now: int) -> None:
        offset = now - steady_ms()
        self._events.write_skipped(now, self._schedule.skipped(), lambda ms: ms + offset)

    async def _end(self, keeper: asyncio.Task[None]) -> None:
        keeper.cancel()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(keeper, *self._running, return_exceptions=True)
        await self._connections.close()
        with suppress(RecordingFull):  # the reason why the run ends is more important
            now = self._now()
            self._write_skipped(now)
            self._writer.confirm()
            self._events.write("stop", now)
            self._writer.write_brokers()
