"""The recordings of a run by cluster: which it has now, and which belonged to it until now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mqreplay.ingest.brokers import NAMING, cluster_name
from mqreplay.ingest.ledger import FILE_TABLE
from mqreplay.ingest.recorded_files import RecordedFiles, together
from mqreplay.lake.result_cache import CachedQuery, ResultCache
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ClusterFiles:
    """The files of one cluster's recordings in a run.

    ``requested`` are its recordings in the run; ``left`` those that belong to another cluster now; ``known`` those in
    the ledger.
    """

    cluster: str
    requested: list[str]
    left: list[str]
    known: frozenset[str]
    files: RecordedFiles

    @property
    def folders(self) -> list[str]:
        """Return all of its recordings that the run is about."""
        return [*self.requested, *self.left]


def by_cluster(
    warehouse: Warehouse,
    recordings: dict[str, RecordedFiles],
    cluster: str | None,
    settings: IngestSettings,
    progress: Progress,
) -> list[ClusterFiles]:
    """Return the files of each cluster. Give all recordings of a cluster together.

    ``recordings`` is emptied, to have the memory of a million files for the run.
    """
    some: dict[str, list[RecordedFiles]] = {}
    listed = [(name, recording) for name, recording in ResultCache(warehouse).rows(known_recordings())]
    for folder in list(recordings):
        files = recordings.pop(folder)
        name = cluster or cluster_name(folder, [file for file, _ in files.of_kinds(NAMING)], listed, progress)
        some.setdefault(name, []).append(files)
    requested = {name: sorted({r for files in each for r in files.recordings}) for name, each in some.items()}
    left = _left_clusters(listed, requested) if settings.forget_missing_files else {}
    return [
        ClusterFiles(
            name,
            requested.get(name, []),
            left.get(name, []),
            frozenset(recording for each, recording in listed if each == name),
            together(some.pop(name, [])),
        )
        for name in sorted(requested.keys() | left.keys())
    ]


def _left_clusters(listed: Iterable[tuple[str, str]], requested: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return cluster -> requested recordings that belonged to it until now and belong to another cluster."""
    now = {recording: name for name, recordings in requested.items() for recording in recordings}
    left: dict[str, list[str]] = defaultdict(list)
    for name, recording in listed:
        if now.get(recording, name) != name:
            left[name].append(recording)
    return left


def known_recordings() -> CachedQuery:
    """Return the (cluster, recording) pairs of bronze.source_file."""

    def read(warehouse: Warehouse) -> list[tuple[str, str]]:
        return warehouse.read(FILE_TABLE).select("cluster", "recording").unique().collect().rows()

    return CachedQuery("recordings", read)
