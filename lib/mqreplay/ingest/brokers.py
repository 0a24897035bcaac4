"""The cluster of a recording, and rows of silver.broker from its brokers.json, which is small: the driver reads it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.cluster_info import decode_cluster_info
from mqreplay.ingest.ledger import Ledger, QuarantineEntry
from mqreplay.ingest.lines import KEPT_OF_LINE, LineReader, read_whole
from mqreplay.ingest.manifest import NewFile
from mqreplay.ingest.recording import RecordedFile
from mqreplay.words.errors import DecodeError
from mqreplay.words.time_span import EPOCH

LARGEST_BROKERS_FILE = 16 * 1024 * 1024  # of a brokers.json: a thousand brokers with all their properties take 10 MB
DEFAULT_CLUSTER = "DefaultCluster"  # the default of brokers
NAMING = ("brokers", "cluster_info")  # kinds of files that name it
MOST_FILES, MOST_LINES = 3, 100  # lines of cluster_info that are read: each has all names


def cluster_of(files: Iterable[RecordedFile]) -> str | None:
    """Return the cluster that the recording's brokers.json names; None without a complete file."""
    for file in files:
        if file.kind == "brokers" and file.trouble is None:
            try:
                return decode_brokers(read_whole(file.full_path, file.root, LARGEST_BROKERS_FILE)).cluster
            except DecodeError:
                return None  # the ledger reports the error when the file is read
    return None


def read_brokers(
    new: NewFile, cluster: str, since: dt.datetime | None, ledger: Ledger, *, most_bytes: int = LARGEST_BROKERS_FILE
) -> list[tuple[object, ...]]:
    """Return rows of silver.broker in the contract's column order, valid from the recording's first instant."""
    entry, data = ledger.enter(new), b""
    try:
        data = read_whole(new.file.full_path, new.file.root, most_bytes)
        brokers = decode_brokers(data).brokers
    except DecodeError as error:
        entry.rows_in = entry.rows_quarantined = 1
        advice = "write it again from `mqadmin getBrokerConfig`; without it no slave suggestion can be judged"
        place = (new.file.recording, new.file.path, "brokers", new.digest, 0, "")
        ledger.refused.append(QuarantineEntry(*place, error.code, str(error), advice, data[:KEPT_OF_LINE]))
        return []
    entry.rows_in = entry.rows_out = len(brokers)
    return [
        (
            cluster,
            new.file.recording,
            since or EPOCH,
            b.broker_name,
            b.broker_id,
            b.addr,
            b.role,
            b.rocketmq_version,
            b.physical_memory_bytes,
            b.access_message_in_memory_max_ratio,
            b.effective_access_message_in_memory_max_ratio,
            b.slave_read_enable,
            b.offset_check_in_slave,
            b.properties,
            new.digest,
        )
        for b in brokers
    ]


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
