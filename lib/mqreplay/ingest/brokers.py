"""brokers.json -> rows of silver.broker. Small, so the driver reads it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from mqreplay.decode.brokers import decode_brokers
from mqreplay.errors import DecodeError
from mqreplay.ingest.ledger import Ledger, QuarantineEntry
from mqreplay.ingest.lines import KEPT, read_whole
from mqreplay.ingest.manifest import NewFile
from mqreplay.ingest.recording import RecordedFile

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MOST_BYTES = 16 * 1024 * 1024  # of a brokers.json: a thousand brokers with all their properties take 10 MB


def cluster_of(files: Iterable[RecordedFile]) -> str | None:
    """Return the cluster that the recording's brokers.json names; None without a complete file."""
    for file in files:
        if file.kind == "brokers" and file.trouble is None:
            try:
                return decode_brokers(read_whole(file.full_path, file.root, MOST_BYTES)).cluster
            except DecodeError:
                return None  # the ledger reports the error when the file is read
    return None


def read_brokers(
    new: NewFile, cluster: str, since: dt.datetime | None, ledger: Ledger, *, most_bytes: int = MOST_BYTES
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
        ledger.refused.append(QuarantineEntry(*place, error.code, str(error), advice, data[:KEPT]))
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
