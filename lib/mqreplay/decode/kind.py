"""Everything about one kind of file in a recording, in one record beside its decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from mqreplay.decode.columns import PlainColumns

CAPTURE: Final = "capture the brokers' ports with tcpdump and run `mqreplay import` on the capture"
RECORD: Final = "run `mqreplay record`"
AGAIN: Final = "run `mqreplay record` without --group and --topic for the whole night"
CLIENT_LOG: Final = "import rocketmq_client.log of each client"
BROKER_LOG_ADVICE: Final = "import broker.log of each broker"

# A text with names of columns in braces, or several texts, of which the first without a null value is used.
Phrase = str | tuple[str, ...]
QUEUE_PHRASE: Final = "queue {broker_name}/{queue_id} of {topic}"
ON_BROKER: Final = "on {broker_name}-{broker_id}"
OFFSET_PHRASES: Final = (
    "offset {previous_offset:,} -> {new_offset:,}",
    "offset {new_offset:,}",
    "offset {previous_offset:,} removed",
)


@dataclass(frozen=True, slots=True)
class RecordingWays:
    """How to record a kind of file that a decision needs.

    ``network`` says how to get it with `mqreplay record`, ``files`` how to get it otherwise, and ``instead`` is another
    way. ``by_hooks``: hooks in clients or brokers can write it. Missing kinds are listed in the order of
    ``importance``: 1 is the first.
    """

    network: str
    files: str
    instead: str = ""
    by_hooks: bool = True
    importance: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file of a recording.

    ``stem`` is its name; ``table`` is the silver table of its rows, and ``time`` the column of their instant, by the
    recorder's clock if ``by_recorder``. ``label`` names the kind for a reader, ``phrases`` say in words what a row
    shows. ``recording`` is set if a decision needs the kind.
    """

    stem: str
    table: str
    label: str
    time: str = "ts"
    by_recorder: bool = False
    phrases: tuple[Phrase, ...] = ()
    recording: RecordingWays | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(FileKind):
    """A kind of JSONL file, with one record a line. ``stem`` is the beginning of its files' names.

    ``decode`` takes a line (bytes), and may raise DecodeError. ``required`` columns are never None. ``plain`` is set if
    decode only takes these columns: such lines can be read many at a time. ``renamed``: columns with another name in
    the table.
    """

    decode: Callable[[bytes], dict[str, object]]
    columns: Mapping[str, str]
    required: tuple[str, ...]
    plain: PlainColumns | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
