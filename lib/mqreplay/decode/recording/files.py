"""The files of a recording: the kind of each by its path."""

from __future__ import annotations

import re
import sys

from mqreplay.decode.columns import TIME_MAX
from mqreplay.decode.kinds import KINDS

RECORD_TABLES = {stem: kind.table for stem, kind in KINDS.items()}
# Kinds of snapshot files, by file name. The .bak of a kind belongs to the same family.
SNAPSHOT_KINDS = {
    "consumerOffset.json": "consumer_offset",
    "consumerOffset.json.bak": "consumer_offset",
    # Of a broker with enableLmq=true, in place of consumerOffset.json.
    "lmqConsumerOffset.json": "consumer_offset",
    "lmqConsumerOffset.json.bak": "consumer_offset",
    "topics.json": "topics",
    "topics.json.bak": "topics",
    "subscriptionGroup.json": "subscription_groups",
    "subscriptionGroup.json.bak": "subscription_groups",
    "messageRequestMode.json": "message_request_modes",
    "messageRequestMode.json.bak": "message_request_modes",
    "consumerOrderInfo.json": "pop_orders",
    "consumerOrderInfo.json.bak": "pop_orders",
    "delayOffset.json": "delay_offset",
    "delayOffset.json.bak": "delay_offset",
}
# A broker's polled consumer offsets, one line a poll. They also have the kind consumer_offset.
POLLED = ("consumerOffset.jsonl.gz", "consumerOffset.jsonl")
# The kinds that are read.
SNAPSHOT_FILES = (
    "consumer_offset",
    "client_offsets",
    "topics",
    "subscription_groups",
    "message_request_modes",
    "pop_orders",
    "delay_offset",
)
CHECKSUMS = "checksums"
CHECKSUMS_FILE = "SHA256SUMS"
_JSONL = re.compile(r"(?P<stem>[a-z_]+?)(\.[0-9]+)?\.jsonl(\.gz)?")
_EPOCH_MS = re.compile(r"[0-9]{12,14}")
_BROKER_ID = re.compile(r"[0-9]+")
_PCAP = re.compile(r"\.pcap([0-9]+)?(\.gz)?$")


def classify(path: str) -> tuple[str, str | None, int | None]:
    """Return the kind, snapshot folder and epoch milliseconds of a file from its path inside the recording.

    >>> classify("pull_log.0002.jsonl.gz")
    ('pull_log', None, None)
    >>> classify("snapshots/broker-a-0/1795228794427/consumerOffset.json")
    ('consumer_offset', 'broker-a-0', 1795228794427)
    >>> classify("snapshots/broker-a-0/1795228794427/consumerOffset.jsonl.gz")
    ('consumer_offset', 'broker-a-0', 1795228794427)
    >>> classify("notes.txt")
    ('other', None, None)
    """
    parts = path.split("/")
    if parts[0] == "snapshots":
        return _classify_snapshot(parts)
    if parts[0] == "logs":
        return "log", None, None
    if _PCAP.search(parts[-1]):
        return "pcap", None, None
    if path == "brokers.json":
        return "brokers", None, None
    if path == CHECKSUMS_FILE:
        return CHECKSUMS, None, None
    match = _JSONL.fullmatch(parts[0]) if len(parts) == 1 else None
    if match and match["stem"] in RECORD_TABLES:
        return match["stem"], None, None
    return "other", None, None


def _classify_snapshot(parts: list[str]) -> tuple[str, str | None, int | None]:
    if len(parts) != 4 or not _EPOCH_MS.fullmatch(parts[2]):
        return "other", None, None
    source, ts, name = sys.intern(parts[1]), int(parts[2]), parts[3]  # one string object for all files of a source
    if not _is_time(parts[2]):
        return "bad_time", None, None
    of_broker = split_source(source) is not None
    if name in SNAPSHOT_KINDS or name in POLLED:
        kind = SNAPSHOT_KINDS.get(name, "consumer_offset")
        return (kind, source, ts) if of_broker else ("no_source", None, None)
    if name.endswith((".offsets.json", ".offsets.json.bak")) or name in ("offsets.json", "offsets.json.bak"):
        of_client = of_broker or source.startswith("client-")
        return ("client_offsets", source, ts) if of_client else ("no_source", None, None)
    return "other", None, None


def _is_time(name: str) -> bool:
    """Return whether digits are a time that every table can hold, in its only spelling.

    >>> _is_time("1795228794427"), _is_time("01795228794427"), _is_time("99999999999999")
    (True, False, False)
    """
    return (len(name) == 12 or name[0] != "0") and int(name) <= TIME_MAX


def split_source(source_name: str) -> tuple[str, int] | None:
    """Return (broker_name, broker_id) of a snapshot folder, or None for a client's.

    >>> split_source("broker-a-0")
    ('broker-a', 0)
    >>> split_source("client-10.0.0.1@7") is None
    True
    >>> split_source("broker-a"), split_source("-0"), split_source("broker-99999999999999999999")
    (None, None, None)
    """
    name, _, number = source_name.rpartition("-")
    if source_name.startswith("client-") and "@" in source_name:
        return None
    # Other scripts have digits too, and some of them are not numbers.
    return (name, int(number)) if name and _BROKER_ID.fullmatch(number) and int(number) < 2**63 else None
