"""An HTTP proxy in front of an S3 server: keeps conditional writes atomic, and delays, stalls or cuts requests.

s3proxy reads whether a key exists, and then writes it: of 20 clients that create one key at once, up to 9 succeed. A
real store lets one succeed. Therefore the proxy lets only one conditional write run at a time.
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

CONDITIONS = ("If-None-Match", "If-Match")
ANSWER_S = 60  # longest time that the server behind needs
WAITS_S = 120  # a stalled request ends by then, if nobody ends the stall


class S3Front:
    """The proxy, listening on a free port of this machine. ``port`` is its own, ``server_port`` the server's.

    A test changes how it treats requests whose method and path match ``matching``: ``delay_s`` before each,
    ``stalls`` (no answer until it is false), ``cuts`` (close the connection without an answer), ``refuses`` (the
    status of the answer to conditional writes), ``ignores_conditions_in`` (the server's folder: a conditional write
    replaces the file). ``seen`` counts the requests that matched.
    """

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.matching = re.compile("")
        self.delay_s = 0.0
        self.cuts = False
        self.stalls = False
        self.refuses = 0
        self.ignores_conditions_in: Path | None = None
        self.seen = 0
        self._conditional = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.front = self
        self.port = int(self._http.server_address[1])
        self.endpoint = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """End the proxy; requests that are held end without an answer."""
        self.cuts, self.stalls = True, False
        self._http.shutdown()
        self._http.server_close()

    def lets_through(self, what: str) -> bool:
        """Apply the disturbances to a request (method and path). Return whether it may go on."""
        if not self.matching.search(what):
            return True
        self.seen += 1
        time.sleep(self.delay_s)
        deadline = time.monotonic() + WAITS_S
        while self.stalls and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.cuts

    def in_turn(self, conditional: bool) -> threading.Lock | nullcontext[None]:
        """Return the context in which a request runs."""
        return self._conditional if conditional else nullcontext()


@contextmanager
def s3_front(server_port: int) -> Iterator[S3Front]:
    """A proxy that ends with the block."""
    front = S3Front(server_port)
    try:
        yield front
    finally:
        front.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    front: S3Front

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed close their connections: no matter."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _forward(self) -> None:
        front, body = self.server.front, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        conditional = self.command == "PUT" and any(name in self.headers for name in CONDITIONS)
        if not front.lets_through(f"{self.command} {self.path}"):
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        if conditional and front.refuses:
            self._answer(front.refuses, [], b"<Error><Code>NotImplemented</Code></Error>")
            return
        with front.in_turn(conditional):
            if conditional and front.ignores_conditions_in is not None:
                (front.ignores_conditions_in / unquote(self.path.split("?")[0]).lstrip("/")).unlink(missing_ok=True)
            status, headers, content = self._ask(body)
        self._answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        # A connection for each request: the server closes those that are idle.
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.front.server_port, timeout=ANSWER_S)
        with closing(upstream):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(body)
            response = upstream.getresponse()
            return response.status, response.getheaders(), response.read()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        given = {name.lower(): value for name, value in headers}
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        of_head = self.command == "HEAD" and "content-length" in given
        self.send_header("Content-Length", given["content-length"] if of_head else str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
