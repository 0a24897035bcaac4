"""Figures of rocketmq-exporter and of brokers: disks are read, sums are put into words."""

from __future__ import annotations

import datetime as dt

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.importer.mqadmin.metrics_page import disks, metrics_page_of
from mqreplay.importer.staging import line_of
from mqreplay.importer.times.printed_times import PrintedTimes
from mqreplay.words.errors import DecodeError

TS = 1636000000000
LAG = 'rocketmq_group_diff{group="g",topic="t",countOfOnlineConsumers="2",} 48210.0\n'
OFFSET = 'rocketmq_producer_offset{cluster="c",broker="broker-a",topic="t",} 991200.0\n'
OF_BROKER = 'rocketmq_consumer_lag_messages{consumer_group="g",topic="t"} 7.0 1714000000000\n'
DEAD = 'rocketmq_send_to_dlq_messages_total{consumer_group="g"} 12.0 1714000000000\n'


def disk(ratio: str, addr: str = "10.5.0.1:10911") -> str:
    return f'rocketmq_brokeruntime_commitlog_disk_ratio{{cluster="c",brokerHost="{addr}",}} {ratio}\n'


def context(**brokers: str) -> AdminContext:
    names = BrokerNames()
    for name, addr in brokers.items():
        names.add(name, 0, addr)
    return AdminContext(names, PrintedTimes(dt.UTC))


def polls(text: str, of: AdminContext) -> list[tuple[object, ...]]:
    page = metrics_page_of(text)
    assert page is not None
    rows = [KINDS[stem].decode(line_of(record)) for stem, record in disks(page, TS, of)]
    return [(row["broker_name"], row["broker_id"], row["ts"], row["table"]) for row in rows]


def full(name: str, ratio: str) -> tuple[object, ...]:
    return name, 0, TS, {"commitLogDiskRatio": ratio}


def test_a_full_disk_of_the_only_broker_of_a_page() -> None:
    known = context()
    assert polls(LAG + OFFSET + disk("0.93"), known) == [full("broker-a", "0.93")]
    ((note, _),) = known.remarks.items()
    assert note.startswith("a page of figures of rocketmq-exporter, of which only the disks are used (give the output")
    assert note.endswith(": group g is 48,210 messages behind on t; the disk of 10.5.0.1:10911 is 93% full")
    assert polls(OFFSET + disk("0.7"), known) == [full("broker-a", "0.7")], "a disk that was full shows that it ended"


def test_disks_of_known_addresses() -> None:
    text = OFFSET + disk("0.91") + disk("0.95", "10.5.0.2:10911") + disk("0.3", "10.5.0.3:10911")
    assert polls(text, context(b="10.5.0.2:10911", c="10.5.0.3:10911")) == [full("b", "0.95")]


@pytest.mark.parametrize(
    ("text", "what", "shown"),
    [
        (LAG + OFFSET, "rocketmq-exporter", "It shows: group g is 48,210 messages behind on t"),
        (OFFSET + disk("0.93") + disk("0.94", "h:1"), "rocketmq-exporter", "It shows: the disk of h:1 is 94% full"),
        (OFFSET + disk("0.4"), "rocketmq-exporter", "It shows: the disk of 10.5.0.1:10911 is 40% full"),
        (OFFSET + disk("1e300"), "rocketmq-exporter", "It shows: the disk"),
        (OFFSET, "rocketmq-exporter", "brokerStatus -b ADDR for a disk"),
        (
            OF_BROKER + DEAD,
            "a broker's metrics",
            "It shows: group g is 7 messages behind on t; group g gave up 12 messages since the broker started",
        ),
    ],
)
def test_sums_are_put_into_words(text: str, what: str, shown: str) -> None:
    page = metrics_page_of(text)
    assert page is not None
    with pytest.raises(DecodeError) as refused:
        disks(page, TS, context())
    assert refused.value.detail.startswith(f"it is a page of {'figures of ' if 'exporter' in what else ''}{what}: sums")
    assert "; give the output of mqadmin consumerProgress" in refused.value.detail
    assert shown in refused.value.detail


def test_another_text_is_no_page() -> None:
    assert metrics_page_of("jvm_threads_live 7.0\n") is None
    assert metrics_page_of("the metric rocketmq_group_diff{group} 7 is high\n") is None
