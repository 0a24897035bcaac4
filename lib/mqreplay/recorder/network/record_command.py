"""`mqreplay record NAMESRV`: wait until the cluster is up, find its brokers, then record until stopped."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqreplay.machine.local_files import output_folder
from mqreplay.machine.stop_signals import stopped_by, stops_ask
from mqreplay.recorder.network.answers import Brokers, read_brokers
from mqreplay.recorder.network.brokers_json import BrokersJson, earlier_brokers
from mqreplay.recorder.network.clock import steady_ms, wall_ms
from mqreplay.recorder.network.events import Events
from mqreplay.recorder.network.options import RecordOptions
from mqreplay.recorder.network.recorder import Recorder
from mqreplay.recorder.network.status import cluster_lines, end_lines
from mqreplay.recorder.network.topology import Broker, Reach, Topology
from mqreplay.recorder.record_files import RecordFiles
from mqreplay.recorder.recording_folder import disk_bytes
from mqreplay.recorder.remoting.connection import CallFailed, Connections
from mqreplay.recorder.remoting.credentials import Credentials
from mqreplay.recorder.remoting.frames import SUCCESS, Answer
from mqreplay.recorder.remoting.requests import ReadCode, Request
from mqreplay.words.errors import DecodeError, InputError, InputErrors, MqreplayError
from mqreplay.words.time_span import MINUTE_MS

WITHOUT_KEYS: Final = (
    "give the keys of a user that may read with --acl-file, or in MQREPLAY_ACCESS_KEY and MQREPLAY_SECRET_KEY"
)
WITH_KEYS: Final = "check the keys, and that their user may read the cluster, its topics and its groups"
Say = Callable[[str], None]
FIRST_TIMEOUT_S: Final = 5.0
BROKER_TIMEOUT_S: Final = 3.0
FIRST_REQUESTS: Final = (ReadCode.GET_BROKER_RUNTIME_INFO, ReadCode.GET_ALL_CONSUMER_OFFSET)  # to each broker
RETRY_S: Final = 5.0
MOST_TRIED: Final = 200  # brokers that are tried at the same time: each takes a socket


def record(
    options: RecordOptions, out: str, credentials: Credentials | None, tls: ssl.SSLContext | None, say: Say
) -> None:
    """Record a running cluster into the folder ``out``.

    Raises:
        InputError: a server denies access, the folder is not usable, or the cluster was not up in time.
        RecordingFull: the recording has reached the bound of the options.
        KeyboardInterrupt: a signal stopped it; all data is written.
    """
    folder = output_folder(out)
    asyncio.run(_record(options, folder, credentials, tls, say))
    if stopped_by() is not None:
        raise KeyboardInterrupt


async def _record(
    options: RecordOptions, folder: Path, credentials: Credentials | None, tls: ssl.SSLContext | None, say: Say
) -> None:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    connections = Connections(credentials, tls, options.requests_per_second)
    advice = WITHOUT_KEYS if credentials is None else WITH_KEYS
    with stops_ask(_caller(loop, stopping)):
        work = asyncio.create_task(_record_cluster(options, folder, connections, advice, stopping, say))
        try:
            await work
        finally:
            await connections.close()


def _caller(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> Callable[[], None]:
    def stop() -> None:
        loop.call_soon_threadsafe(stopping.set)

    return stop


async def _record_cluster(
    options: RecordOptions, folder: Path, connections: Connections, advice: str, stopping: asyncio.Event, say: Say
) -> None:
    began = steady_ms()
    topology = await cluster_when_up(options, folder, connections, advice, stopping, say)
    if topology is None:
        return
    known = topology.brokers(wall_ms())
    tried = await try_brokers(known, connections, advice)
    reach = Reach()
    for addr, trouble in tried.items():
        if trouble is None:
            reach.answered(addr, wall_ms())
    if options.for_s is not None:
        options = replace(options, for_s=max(0.0, options.for_s - (steady_ms() - began) / 1000))
    earlier = earlier_brokers(folder, topology.cluster)
    brokers = BrokersJson(topology.cluster, options.name_servers, options.physical_memory_bytes, earlier)
    for line in cluster_lines(topology.cluster, known, tried, "physical_memory_bytes" in brokers.content()):
        say(line)
    with RecordFiles(folder, options.max_bytes) as files:
        recorder = Recorder(options, files, connections, topology, brokers, reach, say)
        watch = asyncio.create_task(_stop_when(stopping, recorder))
        try:
            await recorder.run()
        finally:
            watch.cancel()
    for line in end_lines(folder, recorder.status.lines, disk_bytes(folder)):
        say(line)


async def _stop_when(stopping: asyncio.Event, recorder: Recorder) -> None:
    await stopping.wait()
    recorder.stop()


class ClusterMissing(MqreplayError):
    """The cluster is not up, or its name is wrong. ``messages`` are one line each."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.messages,)


async def cluster_when_up(
    options: RecordOptions, folder: Path, connections: Connections, advice: str, stopping: asyncio.Event, say: Say
) -> Topology | None:
    """Return the brokers of the cluster as soon as a name server lists them; None if it was stopped before.

    While it waits, the reason goes to ``say`` at once and when it changes, and to recorder_events each minute.

    Raises:
        InputError: a name server denies access, there are several clusters, or the time of the options is over.
    """
    end = None if options.for_s is None else steady_ms() + int(options.for_s * 1000)
    try:
        return await _cluster(options, connections, advice)
    except ClusterMissing as error:
        missing = error
    with RecordFiles(folder, options.max_bytes) as files:
        events = Events(files.append)
        reported, written = "", 0
        while True:
            if str(missing) != reported:
                for line in missing.messages:
                    say(line)
                say(f"waiting for the cluster; the name servers are asked every {RETRY_S:g} s")
            if str(missing) != reported or steady_ms() >= written + MINUTE_MS:
                events.write("waiting", wall_ms(), str(missing))
                files.flush()
                reported, written = str(missing), steady_ms()
            left_s = RETRY_S if end is None else min(RETRY_S, (end - steady_ms()) / 1000)
            if left_s <= 0:
                raise InputErrors(["the cluster was not up in time", *missing.messages])
            if await _is_set(stopping, left_s):
                return None
            try:
                return await _cluster(options, connections, advice)
            except ClusterMissing as error:
                missing = error


async def try_brokers(brokers: Sequence[Broker], connections: Connections, advice: str) -> dict[str, str | None]:
    """Send each broker two requests. Return the error by address, None for an answer; no entry: not tried in time.

    Raises InputError if one denies access: the recording would have unexpected gaps.
    """
    tried: dict[str, str | None] = {}
    left = iter({broker.addr: broker for broker in brokers}.values())

    async def ask_next() -> None:
        for broker in left:
            for request in map(Request, FIRST_REQUESTS):
                try:
                    answer = await connections.call(broker.addr, request, BROKER_TIMEOUT_S)
                except CallFailed as failure:
                    tried[broker.addr] = failure.detail
                    break
                tried[broker.addr] = None
                if answer.denied is not None:
                    name = f"{broker.key[0]}-{broker.key[1]} ({broker.addr})"
                    raise InputError(f"broker {name} denies {request.code.name}: {answer.denied}; {advice}")

    asking = [asyncio.create_task(ask_next()) for _ in range(MOST_TRIED)]
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S + 1):
            await asyncio.gather(*asking)
    except TimeoutError:
        pass
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return tried


async def _cluster(options: RecordOptions, connections: Connections, advice: str) -> Topology:
    """Ask all name servers for the brokers of the cluster. Raises ClusterMissing if none of them knows any."""
    found: dict[str, Brokers] = {}
    troubles = []
    request = Request(ReadCode.GET_BROKER_CLUSTER_INFO)
    answers = await _ask_all([(addr, request) for addr in options.name_servers], connections)
    for addr, answer in zip(options.name_servers, answers, strict=True):
        if isinstance(answer, Answer):
            if answer.denied is not None:
                raise InputError(f"name server {addr} denies access: {answer.denied}; {advice}")
            try:
                if answer.code == SUCCESS:
                    found[addr] = read_brokers(answer.body)
                else:
                    troubles.append(f"{addr}: response code {answer.code}: {answer.remark}; is it a name server?")
            except DecodeError as error:
                troubles.append(f"{addr}: its answer cannot be read: {error}")
        else:
            troubles.append(answer.detail)
    if not found:
        if len(troubles) == 1:
            raise ClusterMissing([f"no name server answers: {troubles[0]}"])
        raise ClusterMissing(["no name server answers; give HOST:PORT of a running one", *troubles])
    clusters = sorted({cluster for brokers in found.values() for cluster in brokers.clusters})
    if not clusters:
        raise ClusterMissing([f"name server {next(iter(found))} knows no broker; check that it belongs to the cluster"])
    cluster = clusters[0] if options.cluster is None else options.cluster
    if cluster not in clusters:
        raise ClusterMissing([f"the name servers know no cluster {cluster!r}, but {', '.join(clusters)}"])
    if options.cluster is None and len(clusters) > 1:
        raise InputError(f"the name servers know several clusters; give --cluster with one of {', '.join(clusters)}")
    topology = Topology(cluster)
    for addr, brokers in found.items():
        topology.update(addr, brokers, wall_ms())
    return topology


async def _ask_all(asked: Sequence[tuple[str, Request]], connections: Connections) -> list[Answer | CallFailed]:
    async def ask(addr: str, request: Request) -> Answer | CallFailed:
        try:
            return await connections.call(addr, request, FIRST_TIMEOUT_S)
        except CallFailed as failure:
            return failure

    return await asyncio.gather(*(ask(addr, request) for addr, request in asked))


async def _is_set(event: asyncio.Event, timeout_s: float) -> bool:
    """Return whether an event is set within a time."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
