"""How large an estate is. A tenth of the entries moves between two snapshots; each of those is pulled twice."""

from __future__ import annotations

from dataclasses import dataclass

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
START_MS = 1_795_132_800_000  # 2026-11-20T00:00:00Z
FIRST_SNAPSHOT_MS = 30_000  # after the start: clients are up and have their routes
PULLS = 2  # of an active queue by a group between two snapshots


@dataclass(frozen=True)
class Size:
    """``names`` broker names, each a master and a slave; ``scale`` times 60 topic@group keys and 20 retry keys each."""

    names: int
    scale: int
    snapshots: int
    events: int

    @property
    def small_groups(self) -> int:
        """Short-lived groups among the additions."""
        return 1_000 if self.scale == 1 else 10_000

    @property
    def keys(self) -> int:
        """Keys topic@group of eight queues in a broker's file."""
        return 60 * self.scale

    @property
    def groups(self) -> int:
        """Consumer groups: three keys each."""
        return self.keys // 3

    @property
    def interval_ms(self) -> int:
        """From a snapshot to the next."""
        return (DAY_MS - 2 * FIRST_SNAPSHOT_MS) // self.snapshots

    def snapshot_ms(self, k: int) -> int:
        """When the master's k-th snapshot was copied (epoch ms)."""
        return START_MS + FIRST_SNAPSHOT_MS + k * self.interval_ms


SIZES = {
    "XS": Size(names=2, scale=1, snapshots=100, events=2),  # 0.2 M entries, 20 k pulls
    "S": Size(names=4, scale=8, snapshots=312, events=6),  # 10 M, 1 M
    "M": Size(names=8, scale=16, snapshots=781, events=12),  # 100 M, 10 M
    "L": Size(names=16, scale=32, snapshots=1953, events=24),  # 1 G, 100 M
}
