"""A night on which brokers refuse: permissions, a full disk, slaves that are missing.

Three masters with a slave each; `pier-b` waits for its slave. Second 0 to 120: nothing is wrong.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.clusters import Cluster
from cluster.made_nights import Night

CLIENTS = ("desk", "east", "west")
DISK_MIB = 64
DISK_FULL = 0.95  # a broker refuses above 0.90: CleanCommitLogService, diskSpaceWarningLevelRatio
RATES = {"manifest": 2.0, "tariff": 2.0, "ledger": 2.0, "berth": 2.0}


@contextmanager
def brokers(cluster: Cluster, properties: dict[str, str]) -> Iterator[None]:
    """Define the brokers. The store of pier-a is a small file system of its own, which can be filled.

    5.x waits for a slave only with inSyncReplicas above 1 (CommitLog.handleHA).
    """
    waits = {"brokerRole": "SYNC_MASTER", "slaveTimeout": "2000"}
    if cluster.version.startswith("5."):
        waits |= {"totalReplicas": "2", "inSyncReplicas": "2"}
    store = cluster.add_broker("pier-a", 0, **properties).home / "store"
    cluster.add_broker("pier-a", 1, **properties)
    cluster.add_broker("pier-b", 0, **(properties | waits))
    cluster.add_broker("pier-b", 1, **properties)
    cluster.add_broker("pier-c", 0, **properties)
    cluster.add_broker("pier-c", 1, **properties)
    store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(store)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(store)], check=True)


def set_up(night: Night) -> None:
    """Create the topics and start the consumers, two of each group."""
    desk = night.clients["desk"]
    for topic in ("manifest", "tariff", "berth"):
        desk.create_topic(topic, {"pier-a": 2, "pier-b": 2, "pier-c": 2})
    desk.create_topic("ledger", {"pier-b": 4})
    groups = {"clerks": "manifest", "customs": "tariff", "keepers": "ledger", "pilots": "berth"}
    for number, (group, topic) in enumerate(groups.items()):
        for member, process in enumerate(("east", "west"), 1):
            night.start(f"{group}-{member}", process, group, topic, client_name=f"10.48.{number}.{member}")


def run(night: Night) -> None:
    """Go through the faults."""
    truth, cluster, desk = night.truth, night.cluster, night.clients["desk"]
    everywhere = {"pier-a": 2, "pier-b": 2, "pier-c": 2}
    with night.sending("desk", RATES):
        night.begin()
        night.until(122)
        with truth.lasting("slave_stopped", broker_name="pier-c", broker_id=1, how="SIGTERM"):
            cluster.stop_in_order("pier-c-1")
            night.until(130)
            with truth.lasting("readers_refused", topic="manifest", perm=2, brokers=sorted(everywhere)):
                desk.configure_topic("manifest", everywhere, perm=2)
                night.until(220)
                desk.configure_topic("manifest", everywhere)
            night.until(240)
            with truth.lasting("writers_refused", topic="tariff", perm=4, brokers=sorted(everywhere)):
                desk.configure_topic("tariff", everywhere, perm=4)
                night.until(310)
                desk.configure_topic("tariff", everywhere)
            night.until(325)
            cluster.start("pier-c-1")
        night.until(345)
        with truth.lasting("disk_full", broker_name="pier-a", broker_id=0, used=DISK_FULL):
            ballast = fill(cluster.servers["pier-a-0"].home / "store")
            night.until(410)
            ballast.unlink()
        night.until(430)
        sync = {"broker_name": "pier-b", "broker_id": 1, "topic": "ledger"}
        with truth.lasting("slave_of_sync_master_hangs", how="SIGSTOP", **sync):
            cluster.pause("pier-b-1")
            night.until(460)
            cluster.resume("pier-b-1")
        night.until(480)
        with truth.lasting("slave_of_sync_master_stopped", how="SIGTERM", **sync):
            cluster.stop_in_order("pier-b-1")
            night.until(520)
            cluster.start("pier-b-1")
        night.until(550)


def fill(store: Path) -> Path:
    """Fill the file system of a store up to DISK_FULL. Return the file that takes the space."""
    ballast = store / "ballast"
    size = os.statvfs(store)
    wanted = int(size.f_frsize * (size.f_blocks * DISK_FULL - (size.f_blocks - size.f_bfree)))
    with ballast.open("wb") as file:
        file.write(b"\0" * wanted)
    return ballast
