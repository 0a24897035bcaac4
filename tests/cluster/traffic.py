"""A steady stream of messages while a test watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from py4j.protocol import Py4JError

from cluster.clients import ClientProcess

PERIOD_S = 0.25


@contextmanager
def sending(client: ClientProcess, topic: str) -> Iterator[None]:
    """Send four messages a second until the block ends. A broker that is down refuses some."""
    stop = Event()

    def send() -> None:
        number = 0
        while not stop.wait(PERIOD_S):
            with suppress(Py4JError):
                client.send(topic, f"{topic}-{number}")
            number += 1

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
