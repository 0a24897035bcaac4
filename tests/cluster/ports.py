"""Free ports on this machine's loopback device that no other test run takes."""

from __future__ import annotations

import random
import socket
from pathlib import Path

# A broker listens on its port, on the port two below (for requests that must not wait), and on the port for its slaves.
BLOCK = 4
FIRST = 10_000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


class PortBlocks:
    """Blocks of ports below those that the kernel gives to outgoing connections.

    A broker that was killed thus finds its port free when it starts again. An abstract Unix socket reserves each block
    until this process ends.
    """

    def __init__(self) -> None:
        self._reservations: list[socket.socket] = []

    def take(self) -> int:
        """Return the first port of a block whose ports are all free."""
        last = int(EPHEMERAL.read_text().split()[0]) if EPHEMERAL.exists() else 32_768
        blocks = list(range(FIRST, min(last, 32_768) - BLOCK, BLOCK))
        random.shuffle(blocks)
        for first in blocks:
            if self._reserve(first) and all(_is_free(port) for port in range(first, first + BLOCK)):
                return first
        raise AssertionError("no block of ports is free")

    def close(self) -> None:
        """Release all blocks."""
        for reservation in self._reservations:
            reservation.close()

    def _reserve(self, first: int) -> bool:
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0mqreplay-test-ports-{first}")
        except OSError:
            reservation.close()
            return False
        self._reservations.append(reservation)
        return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
