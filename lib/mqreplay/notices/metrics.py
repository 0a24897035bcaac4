"""Figures for Prometheus: a file for node_exporter's textfile collector, or an endpoint on the loopback device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from mqreplay import __version__
from mqreplay.answers.figures import METRICS, WATCHED, Sample
from mqreplay.lake.files import write_text
from mqreplay.machine.local_files import local_folder
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from mqreplay.notices.watch import RoundDone

LOOPBACK = "127.0.0.1"


class Figures(Collector):
    """The figures of the moment. Threads that answer requests read them while another one replaces them."""

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        """Take the first samples."""
        self.samples: Sequence[Sample] = tuple(samples)
        self._of_nights: dict[str, list[Sample]] = {}

    def take_round(self, done: RoundDone) -> None:
        """Replace the figures by those of a round of watch, beside those of the last nightly run of each cluster."""
        for cluster in {sample.labels[0] for sample in done.night_figures}:
            self._of_nights[cluster] = [
                sample for sample in done.night_figures if sample.labels[0] == cluster and sample.metric not in WATCHED
            ]
        of_round = [sample for one in done.clusters for sample in one.figures]
        self.samples = (*chain.from_iterable(self._of_nights.values()), *of_round)

    def collect(self) -> Iterator[Metric]:
        """Return the metrics that have samples. All are gauges: a later run may have less of each."""
        of_build = GaugeMetricFamily("mqreplay_build_info", "Version of mqreplay.", labels=["version"])
        of_build.add_metric([__version__], 1)
        yield of_build
        by_metric: dict[str, list[Sample]] = defaultdict(list)
        for sample in self.samples:
            by_metric[sample.metric].append(sample)
        for name, (text, labels) in METRICS.items():
            if by_metric[name]:
                family = GaugeMetricFamily(name, text, labels=["cluster", *labels])
                for sample in by_metric[name]:
                    family.add_metric(sample.labels, sample.value)
                yield family

    def registry(self) -> CollectorRegistry:
        """Return a registry that has them alone: not those of this Python process."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry


def metrics_file(text: str) -> str:
    """Return the path of the file that a user names. Raises InputError if there is no such folder."""
    path = local_folder(text, "--metrics")
    if not path.parent.is_dir() or path.is_dir():
        raise InputError(f"--metrics {text!r} is not a file in an existing folder")
    if path.suffix != ".prom":
        raise InputError(f"--metrics {text!r} must end in .prom: node_exporter reads no other file")
    return str(path)


def write_metrics(path: str, figures: Figures) -> None:
    """Replace the file atomically. All of it is OpenMetrics, and also the text format of Prometheus."""
    text: bytes = generate_latest(figures.registry())  # type: ignore[no-untyped-call]
    write_text(path, text.decode())


def serve_metrics(figures: Figures, port: int) -> None:
    """Answer /metrics on the loopback device, by threads that end with the process. Raises InputError."""
    try:
        start_http_server(port, addr=LOOPBACK, registry=figures.registry())
    except OSError as error:
        raise InputError(f"--metrics-port {port}: {error.strerror or error}") from None
