"""A server of the tests that speaks the remoting protocol as its script says. It is no RocketMQ."""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


def answer(opaque: int, code: int = 0, body: bytes = b"", flag: int = 1, remark: str | None = None) -> bytes:
    """A command of the server; flag 1: it is an answer."""
    fields = {"code": code, "flag": flag, "language": "JAVA", "opaque": opaque, "version": 407, "remark": remark}
    header = json.dumps(fields).encode()
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


@dataclass
class Peer:
    """One connection of the server."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> dict:
        """The header of the next request."""
        (length,) = struct.unpack(">I", await self.reader.readexactly(4))
        return json.loads((await self.reader.readexactly(length))[4:])

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)


Behaviour = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serving(behave: Behaviour, tls: ssl.SSLContext | None = None):
    """The address of a server that treats each connection as ``behave`` says, and closes it after that."""
    peers: list[Peer] = []
    tasks: list[asyncio.Task] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(Peer(len(peers), reader, writer))
        tasks.append(asyncio.current_task())
        try:
            await behave(peers[-1])
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)


async def echo(peer: Peer) -> None:
    """Answer each request with its own header."""
    while True:
        request = await peer.request()
        peer.send(answer(request["opaque"], body=json.dumps(request).encode()))


async def silent(peer: Peer) -> None:
    """Answer nothing."""
    while True:
        await peer.request()
