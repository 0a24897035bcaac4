"""`mqreplay record NAMESRV`: connect to a cluster, then record until stopped."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqreplay.local_files import output_folder
from mqreplay.record.network.brokers_json import BrokersJson, earlier_brokers
from mqreplay.record.network.clock import steady_ms, wall_ms
from mqreplay.record.network.first_contact import cluster_when_up, try_brokers
from mqreplay.record.network.options import RecordOptions
from mqreplay.record.network.reach import Reach
from mqreplay.record.network.recorder import Recorder
from mqreplay.record.network.status import cluster_lines, end_lines
from mqreplay.record.record_files import RecordFiles
from mqreplay.record.recording_folder import disk_bytes
from mqreplay.record.remoting.connection import Connections
from mqreplay.record.remoting.credentials import Credentials
from mqreplay.stop_signals import stopped_by, stops_ask

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
