"""A fast reader of the offset table in a broker's answer to 43: most of it equals the answer before."""

from __future__ import annotations

import re

from mqreplay.core.java import INT_MAX
from mqreplay.decode.fields import bare_int, object_of, table_of, wrong_type
from mqreplay.recorder.network.bounded import MOST_DIGITS, is_long, read_bounded
from mqreplay.words.errors import DecodeError

Queues = dict[int, int]  # {queue id: offset in messages}

_TABLE = re.compile(rb'"offsetTable":\{')
_ENTRY = re.compile(rb'"([^"\\]+)":\{([^{}\\]*)\}(,|\})')
_QUEUE = re.compile(rb'(?:"([0-9]+)"|([0-9]+)):(-?[0-9]+)')
_REST = re.compile(rb'[0-9",:-]*')


class OffsetReader:
    """A reader of the answers of one broker.

    It keeps the text of each group's and topic's queues, so that only changed texts are read.
    """

    def __init__(self) -> None:
        self._texts: dict[str, tuple[bytes, Queues]] = {}

    def read(self, body: bytes) -> tuple[dict[str, Queues], set[str]]:
        """Return the table {"topic@group": {queue id: offset}}, and the keys that changed since the answer before.

        Raises DecodeError for a body that is not an offset table.

        >>> reader = OffsetReader()
        >>> reader.read(b'{"offsetTable":{"t@g":{0:12,1:7},"u@g":{0:1}}}')[0]
        {'t@g': {0: 12, 1: 7}, 'u@g': {0: 1}}
        >>> reader.read(b'{"offsetTable":{"t@g":{0:12,1:8},"u@g":{0:1}},"dataVersion":{"counter":3}}')[1]
        {'t@g'}
        """
        texts = self._fast(body)
        if texts is None:
            texts = _thorough(body)
        changed = {key for key, (text, _) in texts.items() if (old := self._texts.get(key)) is None or old[0] != text}
        changed |= self._texts.keys() - texts.keys()
        self._texts = texts
        return {key: queues for key, (_, queues) in texts.items()}, changed

    def _fast(self, body: bytes) -> dict[str, tuple[bytes, Queues]] | None:
        """Read the text in the form of all known versions; None if it has another form."""
        begin = _TABLE.search(body)
        if begin is None or body.count(b'"offsetTable":') != 1:
            return None
        texts: dict[str, tuple[bytes, Queues]] = {}
        at = begin.end()
        if body[at : at + 1] == b"}":
            return texts
        while True:
            entry = _ENTRY.match(body, at)
            if entry is None:
                return None
            name, text, after = entry.groups()
            try:
                key = name.decode()
            except UnicodeDecodeError:
                return None
            known = self._texts.get(key)
            if known is None or known[0] != text:
                queues = _queues(text)
                if queues is None:
                    return None
                known = text, queues
            texts[key] = known
            at = entry.end()
            if after == b"}":
                return texts


def _queues(text: bytes) -> Queues | None:
    """Return the offsets in the text within a queue table's braces; None if it holds anything else."""
    if not _REST.fullmatch(text):
        return None
    found = [(quoted or bare, offset) for quoted, bare, offset in _QUEUE.findall(text)]
    queues = {
        int(queue): int(offset)
        for queue, offset in found
        if len(queue) <= len(str(INT_MAX)) and len(offset) <= MOST_DIGITS
    }
    in_bounds = all(queue <= INT_MAX and is_long(offset) for queue, offset in queues.items())
    return queues if in_bounds and len(queues) == text.count(b":") else None


def _thorough(body: bytes) -> dict[str, tuple[bytes, Queues]]:
    texts = {}
    for key, value in table_of(read_bounded(body), "offsetTable").items():
        queues: Queues = {}
        for queue, offset in object_of(value, str(key)).items():
            if type(offset) is not int:
                raise wrong_type(f"an offset of {key}", "a whole number", offset)
            queue_id = bare_int(queue, "a queue id")
            if queue_id > INT_MAX:
                raise DecodeError("bad_number", f"a queue id is 0 to {INT_MAX}, and is {queue_id}")
            queues[queue_id] = offset
        texts[str(key)] = repr(sorted(queues.items())).encode(), queues
    return texts
