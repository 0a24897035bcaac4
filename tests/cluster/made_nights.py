"""A night that is made: a cluster of real brokers, clients that send and consume, and the truth about them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from cluster.clients import ClientProcess, Consumer
from cluster.clusters import Cluster
from cluster.night_truth import Truth, now_ms


class Night:
    """The cluster of a night and its clients. Times in a scenario are seconds since `begin`."""

    def __init__(self, cluster: Cluster, clients: list[ClientProcess], truth: Truth) -> None:
        self.cluster = cluster
        self.clients = {client.name: client for client in clients}
        self.truth = truth
        self._consumers: dict[str, tuple[Consumer, str, dict[str, Any]]] = {}
        self._began = time.monotonic()

    def begin(self) -> None:
        """Start the clock of the scenario."""
        self._began = time.monotonic()
        self.truth.event("setup", "traffic_begins")

    def until(self, second: float) -> None:
        """Wait until so many seconds after `begin`."""
        time.sleep(max(0.0, self._began + second - time.monotonic()))

    def start(self, name: str, process: str, group: str, topic: str, **options: Any) -> Consumer:
        """Start a consumer of a topic in a client process. Options are those of `ClientProcess.consumer`."""
        called = now_ms()
        consumer = self.clients[process].consumer(group, {topic: "*"}, **options)
        entry = self.truth.client(
            id=name,
            process=process,
            client_id=consumer.client_id,
            consumer_group=group,
            strategy=options.get("strategy", "AVG"),
            message_model="CLUSTERING",
            subscriptions=f"{topic}:*",
            listener="orderly" if options.get("orderly") else "concurrent",
            start_from=options.get("start_from", "CONSUME_FROM_FIRST_OFFSET"),
            settings=options.get("settings", {}),
            start_called=called,
            started=now_ms(),
        )
        self._consumers[name] = consumer, process, entry
        return consumer

    def consumer(self, name: str) -> Consumer:
        """Return a consumer that runs."""
        return self._consumers[name][0]

    def stop(self, *names: str) -> None:
        """Stop consumers in order."""
        for name in names:
            consumer, _, entry = self._consumers.pop(name)
            entry["stop_called"] = now_ms()
            consumer.shutdown()
            entry |= {"stopped": now_ms(), "how": "shutdown"}

    def stop_all(self) -> None:
        """Stop the consumers that run."""
        self.stop(*self._consumers)

    def kill_clients(self, process: str) -> None:
        """Kill a client process as `kill -9` does, with its consumers."""
        self.clients[process].kill()
        for name, (_, where, entry) in list(self._consumers.items()):
            if where == process:
                entry |= {"stopped": now_ms(), "how": "kill -9"}
                del self._consumers[name]

    def send(self, process: str, topic: str, key: str) -> None:
        """Send a message, and note how that ended."""
        self.truth.send(topic, _sent(self.clients[process], topic, key))

    @contextmanager
    def sending(self, process: str, rates: dict[str, float]) -> Iterator[None]:
        """Send messages to topics, so many a second, until the block ends."""
        stop = Event()

        def send(topic: str, rate: float) -> None:
            number = 0
            while not stop.wait(1 / rate):
                self.send(process, topic, f"{topic}-{number}")
                number += 1

        threads = [Thread(target=send, args=item) for item in rates.items()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _sent(client: ClientProcess, topic: str, key: str) -> str:
    """Return the status of the result, or the exception with its response code."""
    try:
        return client.send(topic, key)
    except Py4JJavaError as error:
        name = str(error.java_exception.getClass().getSimpleName())
        with contextlib.suppress(Py4JError):  # other exceptions have no code
            return f"{name} {error.java_exception.getResponseCode()}"
        return name
