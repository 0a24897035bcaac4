"""Connections to name servers and brokers: one per address, shared by all requests to it.

The first request opens a connection, and so does the next request after it was lost. Answers are matched to requests by
their number (opaque). Requests from a server are counted and dropped. Source: NettyRemotingClient.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from mqreplay.core.java import INT_MAX
from mqreplay.recorder.remoting.credentials import Credentials
from mqreplay.recorder.remoting.frames import Answer, encode_request, read_frame, read_length
from mqreplay.recorder.remoting.pace import Pace
from mqreplay.recorder.remoting.requests import Request
from mqreplay.words.errors import DecodeError, MqreplayError

_BUFFER_BYTES: Final = 1024 * 1024
_ALERT: Final = re.compile(r"^(?:ssl|tls)v\d+ alert ")  # OpenSSL's prefix of an alert from the other side
FailureKind = Literal["unreachable", "timeout", "closed", "refused_frame"]


class CallFailed(MqreplayError):
    """A request without an answer.

    ``kind``: unreachable (no connection, or no TLS), timeout (no answer in time), closed (the connection ended before
    the answer), refused_frame (the data is not RocketMQ's protocol). ``detail`` is one line for the operator.
    """

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kind, self.detail)


@dataclass(slots=True)
class Traffic:
    """The traffic with an address. Bytes are those of RocketMQ's frames, without TLS."""

    connections: int = 0
    requests: int = 0
    answers: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class Connections:
    """The connections to any number of addresses. ``counters`` has the traffic of each address.

    No server gets more than ``requests_per_second``; None: no bound.
    """

    def __init__(
        self,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        requests_per_second: float | None = None,
    ) -> None:
        self.counters: dict[str, Traffic] = {}
        self._rate = requests_per_second
        self._paces: dict[str, Pace] = {}
        self._credentials = credentials
        self._tls = tls
        self._open: dict[str, _Connection] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._retired: set[_Connection] = set()
        self._is_closed = False

    async def call(
        self,
        addr: str,
        request: Request,
        timeout_s: float,
        urgent: bool = False,
        on_send: Callable[[], None] | None = None,
    ) -> Answer:
        """Send a request to ``host:port`` and return the answer, even one with an error code.

        The request waits for its token. ``urgent`` ones wait less. ``on_send`` is called after the wait. The timeout
        begins then.

        Raises:
            CallFailed: there is no answer.
        """
        traffic = self.counters.setdefault(addr, Traffic())
        if self._rate is not None:
            await self._paces.setdefault(addr, Pace(self._rate, time.monotonic)).take(urgent)
        if on_send is not None:
            on_send()
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connection(addr, traffic)
                answer = await connection.call(request, self._credentials)
        except TimeoutError:
            if connection is None:
                raise CallFailed("unreachable", f"no connection to {addr} in {timeout_s:g} s") from None
            raise CallFailed("timeout", f"{addr} did not answer {request.code.name} in {timeout_s:g} s") from None
        finally:
            if connection is not None and connection.is_silent:
                self._retire(addr, connection)
        return self._without_key(answer)

    async def close(self) -> None:
        """Close all connections. Open requests fail."""
        self._is_closed = True
        for connection in [*self._open.values(), *self._retired]:
            await connection.close("this client closed the connection")
        self._open.clear()
        self._retired.clear()

    async def _connection(self, addr: str, traffic: Traffic) -> _Connection:
        async with self._opening.setdefault(addr, asyncio.Lock()):
            if self._is_closed:
                raise CallFailed("closed", "this client is closed")
            connection = self._open.get(addr)
            if connection is None or connection.is_lost:
                connection = await _open(addr, self._tls, traffic)
                if self._is_closed:
                    connection.end("this client closed the connection")
                self._open[addr] = connection
            return connection

    def _retire(self, addr: str, connection: _Connection) -> None:
        """Stop using a silent connection: it may be dead although the system does not know.

        Open requests keep it until they end.
        """
        if self._open.get(addr) is connection:
            del self._open[addr]
            self._retired.add(connection)
        if not connection.is_waiting:
            self._retired.discard(connection)
            connection.end("the connection was silent")

    def _without_key(self, answer: Answer) -> Answer:
        """Return the answer without the access key, which brokers repeat when they refuse it."""
        if self._credentials is None or answer.remark is None or answer.denied is None:
            return answer
        key = rf"(?<!\w){re.escape(self._credentials.access_key)}(?!\w)"
        return replace(answer, remark=re.sub(key, "***", answer.remark))


class _Connection:
    """An open connection."""

    def __init__(self, addr: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, traffic: Traffic) -> None:
        self._addr = addr
        self._reader = reader
        self._writer = writer
        self._traffic = traffic
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._numbers = itertools.count(1)
        self._received = 0  # frames, of any kind
        self.is_silent = False  # a request timed out, and nothing was received meanwhile
        self.is_lost = False
        self._task = asyncio.create_task(self._read())

    @property
    def _has_tls(self) -> bool:
        return self._writer.get_extra_info("ssl_object") is not None

    @property
    def is_waiting(self) -> bool:
        """Return whether there is an open request."""
        return bool(self._waiting)

    async def call(self, request: Request, credentials: Credentials | None) -> Answer:
        """Send a request and wait for its answer."""
        if self.is_lost:
            raise CallFailed("closed", f"{self._addr}: the connection was lost")
        opaque = next(self._numbers) & INT_MAX
        frame = encode_request(request, opaque, credentials)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[opaque] = future
        received = self._received
        try:
            self._writer.write(frame)
            self._traffic.requests += 1
            self._traffic.bytes_sent += len(frame)
            await self._writer.drain()
            return await future
        except OSError as error:
            self.end(_reason(error))
            raise CallFailed("closed", f"{self._addr} closed the connection: {_reason(error)}") from None
        except asyncio.CancelledError:  # the timeout
            self.is_silent = self.is_silent or self._received == received
            raise
        finally:
            del self._waiting[opaque]
            if future.done() and not future.cancelled():
                future.exception()  # mark its error as retrieved, also if the write failed first

    def end(self, why: str, kind: FailureKind = "closed") -> None:
        """Give up the connection. Open requests fail."""
        if self.is_lost:
            return
        self.is_lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(CallFailed(kind, f"{self._addr}: {why}"))
        self._writer.transport.abort()
        if self._task is not asyncio.current_task():
            self._task.cancel()

    async def close(self, why: str) -> None:
        """Give up the connection and wait until it is closed."""
        self.end(why)
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(4)
                data = await self._reader.readexactly(read_length(head))
                self._take(data)
        except asyncio.IncompleteReadError as error:
            part = " in the middle of an answer" if error.partial else " before it answered"
            wanted = "a client certificate" if self._has_tls else "TLS"
            hint = "" if self._received or error.partial else f"; does it want {wanted}?"
            self.end(f"the server closed the connection{part}{hint}")
        except OSError as error:
            self.end(f"the connection was lost: {_reason(error)}")
        except DecodeError as error:
            self.end(f"the answer is not RocketMQ's protocol: {error.detail}", "refused_frame")

    def _take(self, data: bytes) -> None:
        self._received += 1
        self._traffic.bytes_received += 4 + len(data)
        received = read_frame(data)
        future = self._waiting.get(received.opaque) if received.is_response else None
        if future is None or future.done():  # a request of the server, or an answer that comes too late
            return
        self._traffic.answers += 1
        future.set_result(received.answer)


async def _open(addr: str, tls: ssl.SSLContext | None, traffic: Traffic) -> _Connection:
    host, _, port = addr.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
        raise CallFailed("unreachable", f"{addr!r} is not an address: it should be host:port")
    name = host if tls is not None else None
    try:
        reader, writer = await asyncio.open_connection(
            host, int(port), ssl=tls, server_hostname=name, limit=_BUFFER_BYTES
        )
    except (OSError, ValueError) as error:  # ValueError: an invalid host name
        is_reset = tls is not None and isinstance(error, ConnectionResetError)
        hint = "; does it speak TLS?" if is_reset else ""
        raise CallFailed("unreachable", f"no connection to {addr}: {_reason(error)}{hint}") from None
    traffic.connections += 1
    return _Connection(addr, reader, writer, traffic)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "no handshake").replace("_", " ").lower()
        return f"TLS failed: {_ALERT.sub('the server reports ', reason)}"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionResetError):
        return "connection reset"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
