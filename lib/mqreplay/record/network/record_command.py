"""`mqreplay record NAMESRV`: connect to a cluster, then record until stopped."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from mqreplay.errors import DecodeError, InputError, InputErrors
from mqreplay.lake.local_folder import output_folder
from mqreplay.record.network.answers import Brokers, read_brokers
from mqreplay.record.network.brokers_json import BrokersJson, earlier_brokers
from mqreplay.record.network.clock import wall_ms
from mqreplay.record.network.options import RecordOptions
from mqreplay.record.network.recorder import Recorder
from mqreplay.record.network.status import cluster_lines, end_lines
from mqreplay.record.network.topology import Broker, Topology
from mqreplay.record.record_files import RecordFiles
from mqreplay.record.recording_folder import disk_bytes
from mqreplay.record.remoting import requests
from mqreplay.record.remoting.connection import CallFailed, Connections
from mqreplay.record.remoting.credentials import Credentials
from mqreplay.record.remoting.frames import SUCCESS, Answer
from mqreplay.record.remoting.requests import Request
from mqreplay.stop_signals import stopped_by, stops_ask

FIRST_TIMEOUT_S: Final = 5.0
WITHOUT_KEYS: Final = (
    "give the keys of a user that may read with --acl-file, or in MQREPLAY_ACCESS_KEY and MQREPLAY_SECRET_KEY"
)
WITH_KEYS: Final = "check the keys, and that their user may read the cluster, its topics and its groups"
Say = Callable[[str], None]


def record(
    options: RecordOptions, out: str, credentials: Credentials | None, tls: ssl.SSLContext | None, say: Say
) -> None:
    """Record a running cluster into the folder ``out``.

    Raises:
        InputError: no name server answers, a broker denies access, or the folder is not usable.
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
    loop, connections, stopping = asyncio.get_running_loop(), Connections(credentials, tls), asyncio.Event()
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
    topology = await _cluster(options, connections, advice)
    known = topology.brokers(wall_ms())
    silent = await _try_brokers(known, connections, advice)
    earlier = earlier_brokers(folder, topology.cluster)
    brokers = BrokersJson(topology.cluster, options.name_servers, options.physical_memory_bytes, earlier)
    for line in cluster_lines(topology.cluster, known, silent, "physical_memory_bytes" in brokers.content()):
        say(line)
    with RecordFiles(folder, options.max_bytes) as files:
        recorder = Recorder(options, files, connections, topology, brokers, say)
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


async def _cluster(options: RecordOptions, connections: Connections, advice: str) -> Topology:
    """Ask all name servers for the brokers of the cluster. Raises InputError if none of them knows any."""
    found: dict[str, Brokers] = {}
    troubles = []
    answers = await _ask_all([(addr, requests.get_broker_cluster_info()) for addr in options.name_servers], connections)
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
            raise InputError(f"no name server answers: {troubles[0]}")
        raise InputErrors(["no name server answers; give HOST:PORT of a running one", *troubles])
    clusters = sorted({cluster for brokers in found.values() for cluster in brokers.clusters})
    if not clusters:
        raise InputError(f"name server {next(iter(found))} knows no broker; check that it belongs to the cluster")
    cluster = clusters[0] if options.cluster is None else options.cluster
    if cluster not in clusters:
        raise InputError(f"the name servers know no cluster {cluster!r}, but {', '.join(clusters)}")
    if options.cluster is None and len(clusters) > 1:
        raise InputError(f"the name servers know several clusters; give --cluster with one of {', '.join(clusters)}")
    topology = Topology(cluster)
    for addr, brokers in found.items():
        topology.update(addr, brokers, wall_ms())
    return topology


async def _try_brokers(brokers: Sequence[Broker], connections: Connections, advice: str) -> dict[str, str]:
    """Send each broker two requests. Return the errors by address.

    Raises InputError if one denies access: the recording would have unexpected gaps.
    """
    tried = [requests.get_broker_runtime_info(), requests.get_all_consumer_offset()]
    asked = [(each, request) for each in brokers for request in tried]
    answers = await _ask_all([(each.addr, request) for each, request in asked], connections)
    silent: dict[str, str] = {}
    for (broker, request), answer in zip(asked, answers, strict=True):
        if isinstance(answer, CallFailed):
            silent[broker.addr] = answer.detail
        elif answer.denied is not None:
            name = f"{broker.key[0]}-{broker.key[1]} ({broker.addr})"
            raise InputError(f"broker {name} denies {request.code.name}: {answer.denied}; {advice}")
    return silent


async def _ask_all(asked: Sequence[tuple[str, Request]], connections: Connections) -> list[Answer | CallFailed]:
    async def ask(addr: str, request: Request) -> Answer | CallFailed:
        try:
            return await connections.call(addr, request, FIRST_TIMEOUT_S)
        except CallFailed as failure:
            return failure

    return await asyncio.gather(*(ask(addr, request) for addr, request in asked))
