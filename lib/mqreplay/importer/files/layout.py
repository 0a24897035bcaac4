"""What the path of a file shows: its kind, its name in a recording, and hints at its broker.

Pure: other modules read the contents.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from mqreplay.decode.recording.files import RECORD_TABLES
from mqreplay.importer.files.other_files import why_in_folder, why_not_of_config, why_not_used
from mqreplay.importer.times.name_times import NameTime, time_of_path, without_times

SNAPSHOT: Final = "snapshot"
OFFSET_LINES: Final = "offset_lines"
CLIENT_OFFSETS: Final = "client_offsets"
RECORDS: Final = "records"
BROKERS: Final = "brokers"
BROKER_CONFIG: Final = "broker_config"
CAPTURE: Final = "capture"
ARCHIVE: Final = "archive"
UNFINISHED: Final = "unfinished"
NOT_USED: Final = "not_used"
TEXT: Final = "text"  # any other file: it may be mqadmin's output

OFFSET_LINES_NAME: Final = "consumerOffset.jsonl.gz"
COMPRESSED: Final = re.compile(r"\.(?:gz|bz2|xz)$")
_ROTATED: Final = re.compile(r"[._-](?:\d{4}-\d\d-\d\d|\d{8}|\d{1,4})(?=[._-]|$)", re.ASCII)
_ARCHIVE = re.compile(r"\.(?:tar|tar\.(?:gz|bz2|xz)|tgz|tbz2?|txz|zip)$", re.IGNORECASE)
_SNAPSHOT = re.compile(
    r"(?P<before>(?:.*[^A-Za-z0-9])?)"
    r"(?P<stem>consumerOffset|lmqConsumerOffset|topics|subscriptionGroup|delayOffset|messageRequestMode|consumerOrderInfo)"
    r"(?P<between>(?:[^A-Za-z].*)?)\.json(?P<after>.*)"
)
_BAK = re.compile(r"(?:^|[._-])bak(?:$|[^A-Za-z])")
_TMP = re.compile(r"(?:^|[._-])(?:tmp|part|partial|swp)$")
_CLIENT_OFFSETS = re.compile(r"offsets\.json(?P<bak>\.bak)?")
_GROUP_OFFSETS = re.compile(r"(?P<group>.+)\.offsets\.json(?P<bak>\.bak)?")
_RECORDS = re.compile(r"(?P<stem>[a-z_]+?)(?:\.[0-9]+)?\.jsonl(?:\.gz)?")
_CAPTURE = re.compile(r"\.(?:pcap|pcapng|cap)[0-9]*$")
_CONFIG = re.compile(r".*\.(?:conf|properties)")
_EDGES: Final = " ._-@:,+"


class Place(NamedTuple):
    """The facts in a path. ``name`` is the file's name in a recording; ``owner`` is the client of CLIENT_OFFSETS.

    ``time`` is the instant in the path. ``broker_hints`` are the parts that may name its broker, without times, the
    nearest to the file first. ``why``: what a file of NOT_USED is.
    """

    kind: str
    name: str
    time: NameTime | None
    broker_hints: tuple[str, ...]
    owner: str | None = None
    is_bak: bool = False
    why: str | None = None


def place_of(parts: Sequence[str], zone: dt.tzinfo) -> Place:
    """Return the facts in the path ``parts`` of a file.

    >>> place = place_of(("night", "broker-a-0", "consumerOffset.json.20261121.gz"), dt.UTC)
    >>> place.kind, place.name, place.time.ms, place.broker_hints
    ('snapshot', 'consumerOffset.json', 1795219200000, ('broker-a-0', 'night'))
    >>> place_of(("broker-b-1_topics-1795228794.json.bak",), dt.UTC)[:2]
    ('snapshot', 'topics.json.bak')
    >>> place_of(("pull_log.0002.jsonl.gz",), dt.UTC).kind, place_of(("wire.pcap1.gz",), dt.UTC).kind
    ('records', 'capture')
    """
    last = parts[-1]
    plain = COMPRESSED.sub("", last)
    if (why := why_in_folder(parts[:-1])) is not None:
        return Place(NOT_USED, last, None, (), why=why)
    if _ARCHIVE.search(last):
        return Place(ARCHIVE, last, None, ())
    if last == OFFSET_LINES_NAME:
        return Place(OFFSET_LINES, last, time_of_path(parts, zone), _hints(parts[:-1], zone))
    if (match := _RECORDS.fullmatch(last)) and match["stem"] in RECORD_TABLES:
        return Place(RECORDS, last, None, ())
    if match := _SNAPSHOT.fullmatch(plain):
        return _snapshot(parts, match, zone)
    if plain == "brokers.json":
        return Place(BROKERS, plain, None, ())
    if (client := _client_offsets(parts, plain, zone)) is not None:
        return client
    if _CAPTURE.search(plain):
        return Place(CAPTURE, last, None, ())
    if (why := why_not_used(plain)) is not None:
        return Place(NOT_USED, last, None, (), why=why)
    if _CONFIG.fullmatch(plain):
        return Place(BROKER_CONFIG, plain, None, _hints(parts[:-1], zone))
    if (why := why_not_of_config(parts)) is not None:
        return Place(NOT_USED, last, None, (), why=why)
    return Place(TEXT, last, time_of_path(parts, zone), _hints((*parts[:-1], _stem(plain)), zone))


def base_name(path: str) -> str:
    """Return the name that a rotated log had before it was rotated.

    >>> base_name("logs/broker-2026-11-21.1.log.gz"), base_name("rocketmq_client.log.3"), base_name("app-7.log")
    ('broker.log', 'rocketmq_client.log', 'app.log')
    """
    name = COMPRESSED.sub("", path.rpartition("/")[2])
    return _ROTATED.sub("", name) or name


def _snapshot(parts: Sequence[str], match: re.Match[str], zone: dt.tzinfo) -> Place:
    is_bak = _BAK.search(match["after"]) is not None
    name = f"{match['stem']}.json{'.bak' if is_bak else ''}"
    if _TMP.search(match["after"]):
        return Place(UNFINISHED, name, None, ())
    own = (_without_bak(without_times(match[group], zone)) for group in ("before", "between", "after"))
    hints = tuple(hint for hint in own if hint)
    return Place(SNAPSHOT, name, time_of_path(parts, zone), (*hints, *_hints(parts[:-1], zone)), is_bak=is_bak)


def _client_offsets(parts: Sequence[str], plain: str, zone: dt.tzinfo) -> Place | None:
    """Return the place of offsets of a broadcasting client: CLIENT/GROUP/offsets.json, or that of a recording."""
    if (match := _CLIENT_OFFSETS.fullmatch(plain)) and len(parts) >= 3 and "@" in parts[-3]:
        name = f"{parts[-2]}.offsets.json{match['bak'] or ''}"
        return Place(CLIENT_OFFSETS, name, time_of_path(parts[:-3], zone), (), parts[-3], match["bak"] is not None)
    if match := _GROUP_OFFSETS.fullmatch(plain):
        for folder in reversed(parts[:-1]):
            owner = folder.removeprefix("client-")
            if owner != folder and "@" in owner:
                time = time_of_path([part for part in parts if part != folder], zone)
                return Place(CLIENT_OFFSETS, plain, time, (), owner, match["bak"] is not None)
    return None


def _hints(parts: Sequence[str], zone: dt.tzinfo) -> tuple[str, ...]:
    """Return the parts that may name a broker, the last first; a folder of digits with the folder above: NAME/0.

    >>> _hints(("night", "broker-a", "0"), dt.UTC)
    ('broker-a/0', 'broker-a', 'night')
    """
    hints: list[str] = []
    kept = [without_times(part, zone) for part in parts]
    for index in reversed(range(len(kept))):
        above = kept[index - 1] if index else ""
        if above and re.fullmatch("[0-9]{1,2}", kept[index]):
            hints.append(f"{above}/{kept[index]}")
        elif kept[index] and not kept[index].isdigit():
            hints.append(kept[index])
    return tuple(hints)


def _stem(name: str) -> str:
    """Return a name without its suffix, such as .txt."""
    return re.sub(r"\.(?:txt|log|out|json)$", "", name)


def _without_bak(text: str) -> str:
    return re.sub(r"(?:^|[._-])(?:bak|json)(?=$|[^A-Za-z])", "", text).strip(_EDGES)
