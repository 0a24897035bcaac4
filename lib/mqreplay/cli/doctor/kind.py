"""The kind of a file, by its name in a recording, else by its content."""

from __future__ import annotations

import re
from typing import NamedTuple

from mqreplay.decode.consumer_offset import LMQ_FILE_NAME
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.recording.files import POLLED, classify
from mqreplay.decode.text import text_of_bytes
from mqreplay.ingest.recording import NOT_READ
from mqreplay.words.errors import InputError

HEAD = 65_536  # bytes that are read; the table of a file is near its beginning
LINES = "jsonl"
POLLED_OFFSETS = "polled_offsets"
LMQ_OFFSETS = "lmq_consumer_offset"
ABOUT = {
    "consumer_offset": "a broker's consumer offsets",
    LMQ_OFFSETS: "the consumer offsets of a broker with enableLmq=true, which reads and writes no consumerOffset.json",
    POLLED_OFFSETS: "a broker's consumer offsets, a line for each poll",
    "topics": "a broker's topics",
    "subscription_groups": "a broker's consumer groups",
    "delay_offset": "a broker's delivered offsets of delay levels",
    "client_offsets": "a broadcasting client's own offsets",
    "brokers": "the brokers of a recording",
    LINES: "JSON lines of an unknown kind: each must be one object",
}
_HOLDS = (
    (LMQ_OFFSETS, re.compile(r'"lmqOffsetTable"')),
    # The three offset tables differ in their keys: in quotes, objects, numbers.
    ("consumer_offset", re.compile(r'"offsetTable"\s*:\s*\{\s*"[^"]*@')),
    ("client_offsets", re.compile(r'"offsetTable"\s*:\s*\{\s*\{')),
    ("delay_offset", re.compile(r'"offsetTable"\s*:\s*\{\s*"?[0-9]')),
    ("topics", re.compile(r'"topicConfigTable"')),
    ("subscription_groups", re.compile(r'"subscriptionGroupTable"')),
    ("brokers", re.compile(r'\A\s*\{.*"brokers"\s*:\s*\{', re.DOTALL)),
)


class Taken(NamedTuple):
    """A kind of file, and how it was found."""

    kind: str
    how: str

    @property
    def in_words(self) -> str:
        """Return the text for the terminal."""
        return f"{self.kind}, by {self.how}: {ABOUT.get(self.kind, 'records of a recording')}"

    @property
    def has_lines(self) -> bool:
        """Return whether it is read line by line."""
        return self.kind in (LINES, POLLED_OFFSETS) or self.kind in KINDS


def kind_of(name: str, head: bytes) -> Taken | None:
    """Return the kind of a recording's file with that name (without folders) and first bytes ``head``; None: no kind.

    Raises InputError for a file of a recording that has nothing to examine.

    >>> kind_of("consumerOffset.json.bak", b"").in_words
    "consumer_offset, by its name: a broker's consumer offsets"
    >>> kind_of("old.json", b'{"topicConfigTable":{').kind, kind_of("pull_log.0002.jsonl.gz", b"").has_lines
    ('topics', True)
    >>> kind_of("broker.log", b"") is None
    True
    """
    if name in POLLED:
        return Taken(POLLED_OFFSETS, "its name")
    if name.removesuffix(".bak") == LMQ_FILE_NAME:
        return Taken(LMQ_OFFSETS, "its name")
    for path in (name, f"snapshots/broker-0/000000000000/{name}"):
        kind = classify(path)[0]
        if kind in KINDS or kind in ABOUT:
            return Taken(kind, "its name")
        if kind != "other":
            raise InputError(f"there is nothing to examine in it: {NOT_READ[kind]}")
    if name.endswith((".jsonl", ".jsonl.gz")):
        return Taken(LINES, "its name")
    text, _ = text_of_bytes(head)
    for kind, table in _HOLDS:
        if table.search(text):
            return Taken(kind, "its content")
    return None
