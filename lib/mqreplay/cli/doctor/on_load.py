"""A broker's start from consumerOffset.json and its .bak, by ConfigManager#load and fastjson."""

from __future__ import annotations

from typing import NamedTuple

from mqreplay.core.consumer_offset_manager import OffsetTable, load
from mqreplay.core.fastjson.consumer_offset import decode_consumer_offset
from mqreplay.core.version import BROKER_4
from mqreplay.errors import RocketMQError
from mqreplay.quantity import counted

VERSIONS = {"4.9": BROKER_4, "5.3": "5.3.3"}
MOST_BYTES = 32 * 1024 * 1024  # read token by token like fastjson: about 3 MB per second
LONGEST_REASON = 160  # characters
BAK = ".bak"


class Start(NamedTuple):
    """The start of a broker: its source (file, .bak or none), the refusal of the file, and the offsets.

    ``refusal`` is None if it reads the file or has none; ``table`` is topic@group -> queue id -> offset in messages,
    empty if it does not start.
    """

    starts: bool
    source: str
    refusal: str | None
    table: OffsetTable

    @property
    def in_words(self) -> str:
        """Return the text for the terminal, after the names of the versions."""
        if self.refusal is None:
            return f"reads it all the same: {self._read}"
        if not self.starts:
            return f"{self.refusal}, refuses the .bak too, and does not start"
        if self.source == BAK:
            return f"{self.refusal}, and takes the .bak: {self._read}"
        return f"{self.refusal}, finds {self.source}, and starts without offsets: groups begin by consumeFromWhere"

    @property
    def in_words_of_bak(self) -> str:
        """Return the same if only a .bak was examined."""
        if not self.starts:
            return "when it needs this .bak, it refuses it and does not start"
        read = f"reads it all the same: {self._read}" if self.source == BAK else "starts without offsets"
        return f"when it needs this .bak, it {read}"

    @property
    def _read(self) -> str:
        return holding(sum(map(len, self.table.values())), len(self.table))

    def as_dict(self) -> dict[str, object]:
        """Return the values for JSON: counts instead of the table."""
        counts = {"entries": sum(map(len, self.table.values())), "keys": len(self.table)}
        return {"starts": self.starts, "source": self.source, "refusal": self.refusal, **counts}


def holding(queues: int, keys: int) -> str:
    """Return the size of a table of offsets as text.

    >>> holding(8, 1)
    '8 queues of 1 key topic@group'
    """
    return f"{counted(queues, 'queue')} of {counted(keys, 'key')} topic@group"


def broker_starts(file: bytes | None, bak: bytes | None) -> dict[str, Start]:
    """Return the start of a broker by version line, from these bytes (None: no file).

    >>> found = broker_starts(b'{"offsetTable":{"T@g":{0:5', b'{"offsetTable":{"T@g":{0:4}}}')["4.9"]
    >>> found.source, found.table
    ('.bak', {'T@g': {0: 4}})
    """
    text, bak_text = _text(file), _text(bak)
    return {name: _start(text, bak_text, version) for name, version in VERSIONS.items()}


def _text(data: bytes | None) -> str | None:
    # As Java's new String(bytes, UTF_8): invalid bytes become U+FFFD, and nothing is refused.
    return None if data is None else data.decode("utf-8", "replace")


def _start(file: str | None, bak: str | None, version: str) -> Start:
    def decode(text: str) -> OffsetTable | None:
        decoded = decode_consumer_offset(text, version)
        return decoded.offset_table if decoded else None

    refusal = "finds nothing in it" if file == "" else None
    if file:
        try:
            decode(file)
        except RocketMQError as error:
            # fastjson sometimes quotes the whole text from the second line on.
            refusal = f"refuses it ({str(error).splitlines()[0][:LONGEST_REASON]})"
    ok, table = load(file, bak, decode)
    if file and refusal is None:
        return Start(ok, "file", None, table)
    return Start(ok, BAK if bak else "no .bak" if bak is None else "an empty .bak", refusal, table)
