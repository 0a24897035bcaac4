"""Figures in the text format of Prometheus: of rocketmq-exporter and of brokers since 5.1.

Offsets and lags are sums of all queues, polled at different times, so no decision uses them: a note has the largest.
How full a disk is comes from the same answer as brokerStatus (GET_BROKER_RUNTIME_INFO), of the masters alone.
Sources: RMQMetricsCollector and MetricsCollectTask of rocketmq-exporter, BrokerMetricsConstant.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from mqreplay.importer.files.other_files import HEAD_BYTES, unused_text
from mqreplay.importer.mqadmin.admin import CLEAN_RATIO
from mqreplay.importer.mqadmin.answers import Record
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.words.errors import DecodeError

_FIGURE: Final = re.compile(r"^rocketmq_\w+\{.*$", re.ASCII | re.MULTILINE)
_DISK: Final = "rocketmq_brokeruntime_commitlog_disk_ratio"
# By figure: what the largest one is, in words.
_BEHIND: Final = "group {group} is {value:,.0f} messages behind on {topic}"
_SHOWN: Final = {
    "rocketmq_group_diff": _BEHIND,
    "rocketmq_consumer_lag_messages": _BEHIND,
    "rocketmq_send_to_dlq_messages_total": "group {group} gave up {value:,.0f} messages since the broker started",
    _DISK: "the disk of {brokerHost} is {value:.0%} full",
}


class MetricsPage(NamedTuple):
    """A page of figures: what it is, with what to give instead, and its figures with their labels, by name."""

    what: str
    figures: Mapping[str, list[tuple[Mapping[str, str], float]]]

    @property
    def title(self) -> str:
        """Return what it is, for the user."""
        return self.what.partition(":")[0]

    @property
    def shown(self) -> str:
        """Return the largest of the figures that have words."""
        return "; ".join(self._largest())

    def _largest(self) -> Iterator[str]:
        for name, text in _SHOWN.items():
            if (figures := self.figures.get(name)) and (largest := max(figures, key=lambda figure: figure[1]))[1] > 0:
                labels, value = largest
                group = labels.get("group") or labels.get("consumer_group", "?")
                yield text.format_map(defaultdict(lambda: "?", {**labels, "group": group, "value": value}))


def metrics_page_of(text: str) -> MetricsPage | None:
    """Return the page of RocketMQ's figures that a text is; None for another text.

    >>> page = metrics_page_of('rocketmq_group_diff{group="g",topic="t",} 7.0\\n')
    >>> page.title, page.shown
    ('a page of figures of rocketmq-exporter', 'group g is 7 messages behind on t')
    """
    figures: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
    for line in _FIGURE.findall(text):
        with suppress(ValueError):  # one by one: a line that is torn leaves the others
            for sample in chain.from_iterable(family.samples for family in text_string_to_metric_families(line)):
                figures[sample.name].append((sample.labels, sample.value))
    kind = unused_text(text[:HEAD_BYTES]) if figures else None
    return None if kind is None else MetricsPage(kind.words, figures)


def disks(page: MetricsPage, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the polls of brokers with a disk that is, or was, nearly full.

    Raises DecodeError without any: the detail says what the page is, what it shows, and what to give instead.
    """
    ratios = page.figures.get(_DISK, [])
    names = {labels["broker"] for figures in page.figures.values() for labels, _ in figures if "broker" in labels}
    polls: list[Record] = []
    for labels, ratio in ratios:
        addr = labels.get("brokerHost", "")
        # The exporter asks masters alone. The only name of a page is that of its only address.
        only = (min(names), 0) if len(names) == len(ratios) == 1 else None
        broker = context.names.of_address(addr) or only
        is_full = broker in context.nearly_full or CLEAN_RATIO < ratio <= 1
        if broker is None or not is_full:
            continue
        context.nearly_full.add(broker)
        key = {"broker_name": broker[0], "broker_id": broker[1], "broker_addr": addr or None}
        table = {"commitLogDiskRatio": str(ratio)}
        polls.append(("broker_runtime", {"ts": ts_ms, **key, "full": False, "table": table}))
    if not polls:
        shown = f". It shows: {page.shown}" if page.shown else ""
        raise DecodeError("not_used", f"it is {page.what}{shown}")
    instead = "give the output of mqadmin consumerProgress -g GROUP twice for lag"
    context.remarks[f"{page.title}, of which only the disks are used ({instead}): {page.shown}"] += 1
    return polls
