"""A web server that keeps what is posted to it."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Hook(http.server.ThreadingHTTPServer):
    """The server: ``got`` has path and JSON of each request that it took, ``status`` is what it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, Any]] = []
        self.tries = 0
        self.authorizations: list[str | None] = []
        self.status = 200

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Hook)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.tries += 1
        self.server.authorizations.append(self.headers["Authorization"])
        if self.server.status == 200:
            self.server.got.append((self.path, body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hook() -> Iterator[Hook]:
    """Run a server during the block."""
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
