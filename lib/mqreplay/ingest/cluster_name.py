"""The cluster of a recording: from --cluster, from brokers.json, or from answers of the name servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from mqreplay.decode.cluster_info import decode_cluster_info
from mqreplay.ingest.brokers import cluster_of
from mqreplay.ingest.lines import LineReader
from mqreplay.ingest.recording import RecordedFile

DEFAULT_CLUSTER = "DefaultCluster"  # the default of brokers
NAMING = ("brokers", "cluster_info")  # kinds of files that name it
MOST_FILES, MOST_LINES = 3, 100  # lines of cluster_info that are read: each has all names


def cluster_name(
    folder: str, files: Sequence[RecordedFile], listed: Iterable[tuple[str, str]], say: Callable[[str], None]
) -> str:
    """Return the cluster of the recording in ``folder`` when --cluster is absent.

    brokers.json has priority over answers of name servers, because an operator may have edited it. If brokers.json
    cannot be read now, the cluster stays as it was. ``listed`` are the known (cluster, recording) pairs. Conflicts and
    guesses go to ``say``.
    """
    before = {name for name, recording in listed if recording == folder}
    by_file = cluster_of(files)
    if by_file is not None:
        answered = clusters_answered(files) if not before else []
        if answered and by_file not in answered:
            say(
                f"{folder}: brokers.json names cluster {by_file}, name servers name {', '.join(answered)}; "
                f"taking {by_file} (--cluster sets another)"
            )
        return by_file
    if len(before) == 1 and any(file.kind == "brokers" for file in files):
        return before.pop()
    answered = clusters_answered(files)
    if len(answered) == 1:
        return answered[0]
    why = f"names several clusters ({', '.join(answered)})" if answered else "does not name its cluster"
    say(f"{folder} {why}; taking {DEFAULT_CLUSTER} (--cluster sets another)")
    return DEFAULT_CLUSTER


def is_named(files: Sequence[RecordedFile]) -> bool:
    """Return whether these files name the cluster of their recording; otherwise `cluster_name` guesses."""
    return cluster_of(files) is not None or len(clusters_answered(files)) == 1


def clusters_answered(files: Iterable[RecordedFile]) -> list[str]:
    """Return the names of clusters that the first answers of the recording's name servers list, sorted."""
    found: set[str] = set()
    readable = (file for file in files if file.kind == "cluster_info" and file.trouble is None)
    for file in islice(readable, MOST_FILES):
        lines = LineReader(file.full_path, decode_cluster_info, root=file.root)
        for _, _, answer in islice(lines, MOST_LINES):
            clusters: Any = answer["clusters"]
            found.update(clusters or ())
    return sorted(found)
