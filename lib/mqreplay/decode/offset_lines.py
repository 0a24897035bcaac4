"""consumerOffset.json against the one before it, line by line: only lines that differ are read.

A broker writes the same table again and again, one line a topic@group (RemotingSerializable.toJson, pretty), and of
most lines nothing changes. A file that has the lines of a file read before, but for offsets within the offset table,
means what that one means, but for those offsets; what else differs outside the table is decoded as ever. Any other
file is not taken here: the caller decodes it whole, so nothing is believed that `decode_consumer_offset` refuses.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mqreplay.decode.consumer_offset import ConsumerOffsets, decode_consumer_offset
from mqreplay.decode.fastjson_text import LONG_MAX, LONG_MIN
from mqreplay.errors import DecodeError

_ID = rb"(?:0|[1-9][0-9]{0,9})"
_LINE: Final = re.compile(
    rb'(\t+"([^"\\\x00-\x1f]+)":\{)('
    + _ID
    + rb":(?:0|-?[1-9][0-9]{0,18})(?:,"
    + _ID
    + rb":(?:0|-?[1-9][0-9]{0,18}))*+)"
)
_BEGIN: Final = b'\t"offsetTable":{'
_ENDS: Final = (b"\t}", b"\t},")


class Changed(NamedTuple):
    """Queues of one topic@group whose offset is another one: ids, and offsets (messages) before and now."""

    key: str
    queue_id: list[int]
    previous_offset: list[int]
    new_offset: list[int]


class Difference(NamedTuple):
    """What a file changed against the one before it, and its dataVersion's counter."""

    changed: list[Changed]
    data_version_counter: int | None


class OffsetLines:
    """Reads files of one broker in time order. Not safe between threads."""

    def __init__(self) -> None:
        """Nothing is known yet: the first file is read whole."""
        self._lines: list[bytes] = []
        self._begin = self._end = 0
        self._counter: int | None = None

    def remember(self, data: bytes, decoded: ConsumerOffsets) -> None:
        """Takes a file that was decoded whole as the one before the next.

        A file of another layout is forgotten: the next one is then read whole too.
        """
        lines = data.split(b"\n")
        self._lines = []
        if lines.count(_BEGIN) != 1:
            return
        begin = lines.index(_BEGIN) + 1
        end = next((i for i in range(begin, len(lines)) if lines[i] in _ENDS), None)
        if end is None:
            return
        rows: list[tuple[str, int, int]] = []
        for line in lines[begin:end:2]:
            found = _LINE.fullmatch(line)
            if found is None:
                return
            run = _numbers(found[3])
            key = found[2].decode("utf-8")
            rows += [(key, i, offset) for i, offset in zip(run[::2], run[1::2], strict=True)]
        # The layout is taken for what it looks like only where it gives just what the whole reading gave.
        if rows == list(zip(decoded.key, decoded.queue_id, decoded.offset, strict=True)):
            self._lines, self._begin, self._end = lines, begin, end
            self._counter = decoded.data_version_counter

    def difference(self, data: bytes) -> Difference | None:
        """What the file changed against the one before; None where it must be read whole.

        >>> one = b'{\\n\\t"offsetTable":{\\n\\t\\t"t@g":{0:5,1:7\\n\\t\\t}\\n\\t}\\n}'
        >>> lines = OffsetLines()
        >>> lines.remember(one, decode_consumer_offset(one))
        >>> lines.difference(one.replace(b"1:7", b"1:9"))
        Difference(changed=[Changed(key='t@g', queue_id=[1], previous_offset=[7], new_offset=[9])], \
data_version_counter=None)
        >>> lines.difference(one.replace(b"1:7", b"2:9")) is None
        True
        """
        lines, before = data.split(b"\n"), self._lines
        if not before or len(lines) != len(before):
            return None
        changed: list[Changed] = []
        outside = False
        for at, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old == new:
                continue
            if not self._begin <= at < self._end:
                outside = True
                continue
            one = _changed(old, new)
            if one is None:
                return None
            changed.append(one)
        counter = self._counter
        if outside:
            try:
                counter = self._decode_outside(lines)
            except DecodeError:
                return None
        self._lines, self._counter = lines, counter
        return Difference(changed, counter)

    def _decode_outside(self, lines: list[bytes]) -> int | None:
        """The counter of the file, its offset table left out. Raises DecodeError."""
        if lines[self._begin - 1] != _BEGIN or lines[self._end] != self._lines[self._end]:
            raise DecodeError("layout", "the offset table begins or ends elsewhere")
        empty = b"{}," if lines[self._end] == b"\t}," else b"{}"
        rest = [*lines[: self._begin - 1], b'\t"offsetTable":' + empty, *lines[self._end + 1 :]]
        return decode_consumer_offset(b"\n".join(rest)).data_version_counter


def _changed(old: bytes, new: bytes) -> Changed | None:
    """The queues that differ between two lines of the table; None if more than offsets differs."""
    was, now = _LINE.match(old), _LINE.match(new)
    if was is None or now is None or was[1] != now[1] or old[was.end() :] != new[now.end() :]:
        return None
    before, after = _numbers(was[3]), _numbers(now[3])
    if before[::2] != after[::2]:
        return None
    offsets = after[1::2]
    if max(offsets) > LONG_MAX or min(offsets) < LONG_MIN:
        return None
    moved = [i for i, (a, b) in enumerate(zip(before[1::2], offsets, strict=True)) if a != b]
    return Changed(
        was[2].decode("utf-8"),
        [after[2 * i] for i in moved],
        [before[2 * i + 1] for i in moved],
        [offsets[i] for i in moved],
    )


def _numbers(run: bytes) -> list[int]:
    return list(map(int, run.replace(b":", b",").split(b",")))
