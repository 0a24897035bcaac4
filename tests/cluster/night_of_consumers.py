"""A night of consumers: new groups and queues, a slow listener, failing messages, locks that outlive, restarts.

Two masters with a slave each. On `vat-b` of 4.9.7 nothing counts as in memory, so that a queue that is new to a group
begins where the group's ConsumeFromWhere says; on `vat-a`, and in 5.3.3, which looks into the page cache, such a queue
begins at 0 (ConsumerManageProcessor.queryConsumerOffset). Second 0 to 120: nothing is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.clusters import Cluster
from cluster.made_nights import Night

CLIENTS = ("desk", "north", "south", "lost")
RATES = {"milk": 2.0, "cream": 2.0, "curd": 2.0, "whey": 6.0, "rind": 1.0}
BOTH = ("vat-a", "vat-b")
FIRST, LAST, TIMESTAMP = (f"CONSUME_FROM_{where}" for where in ("FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP"))
RESTARTS = 6
RESTART_EVERY_S = 28


@contextmanager
def brokers(cluster: Cluster, properties: dict[str, str]) -> Iterator[None]:
    """Define the brokers. Readers of vat-b are never sent to its slave."""
    disk = {"accessMessageInMemoryMaxRatio": "0", "slaveReadEnable": "false"}
    for name, more in (("vat-a", {}), ("vat-b", disk)):
        cluster.add_broker(name, 0, **(properties | more))
        cluster.add_broker(name, 1, **(properties | more))
    yield


def set_up(night: Night) -> None:
    """Create the topics and start the consumers."""
    desk = night.clients["desk"]
    for topic in RATES:
        desk.create_topic(topic, dict.fromkeys(BOTH, 2))
    for member, process in enumerate(("north", "south"), 1):
        night.start(f"b{member}", process, "bottlers", "milk", client_name=f"10.96.0.{member}")
        night.start(f"r{member}", process, "rinsers", "milk", client_name=f"10.96.1.{member}")
    for member, process in enumerate(("north", "south", "lost"), 1):
        night.start(f"c{member}", process, "churners", "cream", orderly=True, client_name=f"10.96.2.{member}")
    night.start("p1", "north", "pressers", "curd", client_name="10.96.3.1")
    night.start("s1", "south", "salters", "curd", start_from=LAST, client_name="10.96.4.1")
    slow = {"PullThresholdForQueue": 100}
    night.start("d1", "north", "dryers", "whey", settings=slow, client_name="10.96.5.1")
    night.start("t1", "south", "testers", "rind", client_name="10.96.6.1").refuse("bad", 2)
    settings = {"MaxReconsumeTimes": 1}
    night.start("u1", "north", "tasters", "rind", settings=settings, client_name="10.96.7.1").refuse("bad", 99)


def run(night: Night) -> None:
    """Go through the faults."""
    with night.sending("desk", RATES):
        night.begin()
        night.until(122)
        _new_groups(night)
        _more_queues(night)
        night.until(185)
        slow = night.consumer("d1")
        with night.truth.lasting("slow_listener", consumer_group="dryers", topic="whey", client_id=slow.client_id):
            slow.delay(30_000)
            night.until(200)
            _failing_messages(night)
            night.until(255)
            night.truth.fault(
                "consumer_killed",
                consumer_group="churners",
                topic="cream",
                listener="orderly",
                client_id=night.consumer("c3").client_id,
                locked_until_at_most=round(time.time() * 1000) + 60_000,
            )
            night.kill_clients("lost")
            night.until(310)
            slow.delay(0)
        night.until(335)
        _restarts(night, 335)
        night.until(530)


def _new_groups(night: Night) -> None:
    """Groups that no broker knows begin on a topic that has messages."""
    stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(time.time() - 60))
    places: dict[str, tuple[str, dict[str, str]]] = {
        "auditors": (LAST, {}),
        "archivists": (TIMESTAMP, {"ConsumeTimestamp": stamp}),
        "historians": (FIRST, {}),
    }
    for number, (group, (start_from, settings)) in enumerate(places.items()):
        night.truth.fault("new_group", consumer_group=group, topic="milk", start_from=start_from, **settings)
        name = f"10.96.{number + 8}.1"
        night.start(f"{group}-1", "south", group, "milk", start_from=start_from, settings=settings, client_name=name)


def _more_queues(night: Night) -> None:
    """A topic grows, one broker after the other, while a group FIRST and a group LAST consume it."""
    for second, broker_name in ((145, "vat-a"), (160, "vat-b")):
        night.until(second)
        place = {"topic": "curd", "broker_name": broker_name, "queue_ids": [2, 3]}
        night.truth.fault("queues_added", consumer_groups=["pressers", "salters"], **place)
        night.clients["desk"].configure_topic("curd", {broker_name: 4})


def _failing_messages(night: Night) -> None:
    """Five messages: `testers` refuse each twice, `tasters` give up after one retry."""
    place = {"topic": "rind", "keys": "bad-0 to bad-4", "count": 5}
    night.truth.fault("failing_messages", consumer_group="testers", refusals=2, **place)
    night.truth.fault("dead_letters", consumer_group="tasters", max_reconsume_times=1, **place)
    for number in range(5):
        night.send("desk", "rind", f"bad-{number}")


def _restarts(night: Night, second: int) -> None:
    """Both members of a group are stopped and started again, six times in three minutes."""
    with night.truth.lasting("restarts", consumer_group="rinsers", topic="milk", restarts=RESTARTS):
        for number in range(RESTARTS):
            night.until(second + number * RESTART_EVERY_S)
            night.stop("r1", "r2")
            time.sleep(3)
            for member, process in enumerate(("north", "south"), 1):
                night.start(f"r{member}", process, "rinsers", "milk", client_name=f"10.96.1.{member}")
            night.truth.event("restarts", "restarted", number=number + 1)
