"""A recorder beside a simulated cluster, and the lines that it wrote."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.simulated_cluster import SimulatedCluster
from mqreplay.decode.kinds import KINDS
from mqreplay.recorder.network.options import RecordOptions
from mqreplay.recorder.network.record_command import _record

Script = Callable[[SimulatedCluster], Awaitable[None]]


def record(folder: Path, cluster: SimulatedCluster, script: Script | None = None, **changed: Any) -> list[str]:
    """What a recorder says of a cluster that does what ``script`` says."""
    messages: list[str] = []

    async def run() -> None:
        await cluster.start()
        options = RecordOptions(
            tuple(cluster.addrs.split(";")), **{"every_s": 0.2, "for_s": 3.0, "requests_per_second": 500} | changed
        )
        acting = asyncio.create_task(script(cluster)) if script else None
        try:
            await _record(options, folder, None, None, messages.append)
        finally:
            if acting is not None:
                acting.cancel()
            await cluster.stop()

    asyncio.run(run())
    return messages


def lines(folder: Path, stem: str) -> list[dict[str, Any]]:
    """The records of a kind; each is one that its decoder takes."""
    found = []
    for path in sorted(folder.glob(f"{stem}.*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            KINDS[stem].decode(line)
            found.append(json.loads(line))
    return found


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [each for each in lines(folder, "recorder_events") if each["kind"] == kind]


def begun_and_ended(folder: Path) -> list[str]:
    """The kinds of the events, without settings, and without polls that a busy machine made too late."""
    others = ("skipped", "name_server_settings")
    return [each["kind"] for each in lines(folder, "recorder_events") if each["kind"] not in others]


def offset_lines(folder: Path, broker: str) -> list[dict[str, Any]]:
    paths = sorted(folder.glob(f"snapshots/{broker}/*/consumerOffset.jsonl.gz"))
    return [json.loads(line) for path in paths for line in gzip.decompress(path.read_bytes()).splitlines()]
