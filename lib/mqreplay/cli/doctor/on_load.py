"""A broker's start from a broken consumerOffset.json and its .bak, by ConfigManager#load and the strict reader.

fastjson refuses each text that is cut short. It reads some other texts that the strict reader refuses, so a broker's
start from these is undetermined.
"""

from __future__ import annotations

from typing import NamedTuple

from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.words.errors import DecodeError
from mqreplay.words.quantity import counted

BAK = ".bak"
VERSIONS = ("4.9", "5.3")  # they do the same with a file that the strict reader accepts, or that is cut short
TORN = "torn"  # the code of a text that is cut short
WITHOUT_OFFSETS = "starts without offsets"
DOES_NOT_START = "does not start"


class Start(NamedTuple):
    """A broker's start from an incomplete file or a .bak alone, as text and as values for JSON.

    ``starts`` and ``source`` (.bak, no .bak or an empty .bak) are None if they are undetermined; ``entries`` and
    ``keys`` count its table of offsets.
    """

    words: str
    starts: bool | None
    source: str | None = None
    refusal: str | None = None
    entries: int = 0
    keys: int = 0


class _Text(NamedTuple):
    """The strict reader's code, None for a complete text, and the size of its table."""

    code: str | None
    entries: int = 0
    keys: int = 0


def holding(queues: int, keys: int) -> str:
    """Return the size of a table of offsets as text.

    >>> holding(8, 1)
    '8 queues of 1 key topic@group'
    """
    return f"{counted(queues, 'queue')} of {counted(keys, 'key')} topic@group"


def start_from_file(file: bytes, bak: bytes | None) -> Start:
    """Return the start from a file that the strict reader refuses, and its .bak (None: there is none).

    >>> start_from_file(b'{"offsetTable":{"T@g":{0:5', b'{"offsetTable":{"T@g":{0:4}}}').words
    'refuses it, and takes the .bak: 1 queue of 1 key topic@group'
    """
    code = _read(file).code
    start = _from_bak(bak)
    if code == TORN:
        return start._replace(words=f"refuses it, and {start.words}", refusal="refuses it")
    if not file:
        return start._replace(words=f"finds nothing in it, and {start.words}", refusal="finds nothing in it")
    return Start(f"undetermined; if it refuses it, it {start.words}", None)


def start_from_bak(bak: bytes) -> Start:
    """Return the start from a .bak that the strict reader refuses, if the file beside it cannot be read either."""
    words = f"undetermined; if it needs this .bak and refuses it, it {DOES_NOT_START}"
    if not bak:
        words = f"when it needs this .bak, it {WITHOUT_OFFSETS}"
    elif _read(bak).code == TORN:
        words = f"when it needs this .bak, it refuses it and {DOES_NOT_START}"
    return _from_bak(bak)._replace(words=words)


def _from_bak(bak: bytes | None) -> Start:
    if not bak:
        source = "no .bak" if bak is None else "an empty .bak"
        return Start(f"finds {source}, and {WITHOUT_OFFSETS}: groups begin by consumeFromWhere", True, source)
    text = _read(bak)
    if text.code is None:
        words = f"takes the .bak: {holding(text.entries, text.keys)}"
        return Start(words, True, BAK, entries=text.entries, keys=text.keys)
    if text.code == TORN:
        return Start(f"{DOES_NOT_START}, because it refuses the .bak too", False, BAK)
    return Start(f"{DOES_NOT_START} if it refuses the .bak too", None)


def _read(data: bytes) -> _Text:
    try:
        offsets = decode_consumer_offset(data)
    except DecodeError as error:
        return _Text(error.code)
    return _Text(None, len(offsets), len(set(offsets.key)))
