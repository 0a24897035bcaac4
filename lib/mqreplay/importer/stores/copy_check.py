"""What nightly makes of copied files: those that it refuses, and odd content. Import copies them all as they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import (
    FILE_NAME,
    ConsumerOffsets,
    decode_consumer_offset,
    impossible_offsets,
    strange_keys,
)
from mqreplay.decode.offset_lines import Shape, offset_shape, table_lines
from mqreplay.decode.text import MARK_BYTES, TAKE_BAK
from mqreplay.recorder.store_folder import BAK, DECODERS, DELAY_OFFSETS
from mqreplay.words.errors import DecodeError
from mqreplay.words.quantity import counted

SHOWN_NAMES: Final = 3  # names of files, keys or offsets in a note


class _Copy(NamedTuple):
    """A copy: its folder, time (epoch ms), name, and path for the user."""

    folder: str
    ms: int
    name: str
    path: str

    @property
    def file_name(self) -> str:
        return self.name.removesuffix(BAK)

    @property
    def moment(self) -> tuple[str, int, str]:
        return self.folder, self.ms, self.file_name


@dataclass
class CopyCheck:
    """Checks of copies with nightly's decoders, and the notes about them."""

    _refused: list[tuple[_Copy, DecodeError]] = field(default_factory=list)
    _whole: set[tuple[str, int, str]] = field(default_factory=set)
    _marked: list[str] = field(default_factory=list)
    _strange: dict[str, None] = field(default_factory=dict)
    _impossible: dict[tuple[str, int, int], None] = field(default_factory=dict)
    _last: dict[tuple[str, str], bytes] = field(default_factory=dict)
    _shapes: dict[str, Shape | None] = field(default_factory=dict)

    def add(self, folder: str, ms: int, name: str, path: str, data: bytes) -> str | None:
        """Add the copy ``name`` of ``folder``, time ``ms``. Return why it must not be copied: it is another file."""
        copy = _Copy(folder, ms, name, path)
        try:
            self._decode(copy, data)
        except DecodeError as error:
            if error.code == "foreign" and copy.file_name in DECODERS:
                return f"its content does not match its name ({error.detail})"
            if copy.file_name != DELAY_OFFSETS:  # nightly does not read it
                self._refused.append((copy, error))
        else:
            self._whole.add(copy.moment)
        if data.startswith(MARK_BYTES):
            self._marked.append(path)
        return None

    def _decode(self, copy: _Copy, data: bytes) -> None:
        name = copy.file_name
        if self._last.get((copy.folder, name)) == data:
            return
        decode = DECODERS.get(name, decode_client_offsets)
        if name == FILE_NAME and not copy.name.endswith(BAK):
            # Most copies differ from the one before in some numbers only: these are read without decoding the file.
            shape = offset_shape(data)
            if shape is None or shape != self._shapes.get(copy.folder):
                self._see(decode_consumer_offset(data))
                self._shapes[copy.folder] = shape if table_lines(data) is not None else None
        else:
            decoded = decode(data)
            if isinstance(decoded, ConsumerOffsets):
                self._see(decoded)
        self._last[copy.folder, name] = data

    def _see(self, got: ConsumerOffsets) -> None:
        self._strange.update(dict.fromkeys(strange_keys(got)))
        self._impossible.update(dict.fromkeys(impossible_offsets(got)))

    def notes(self) -> list[str]:
        """Return what nightly will refuse, by error, and odd content."""
        by_code: dict[str, list[tuple[str, DecodeError]]] = defaultdict(list)
        for copy, error in self._refused:
            if not (copy.name.endswith(BAK) and copy.moment in self._whole):  # such a .bak is never read
                by_code[error.code].append((copy.path, error))
        notes = [
            f"nightly refuses {counted(len(some), 'file')}, copied unchanged: {code}: "
            f"{some[0][1].detail.removesuffix(TAKE_BAK)}"
            f" ({_some([path for path, _ in some])})"
            for code, some in sorted(by_code.items())
        ]
        if self._marked:
            notes.append(
                f"{counted(len(self._marked), 'file')} with a byte order mark, as an editor writes it: brokers and "
                f"nightly pass over it ({_some(self._marked)})"
            )
        if self._strange:
            keys = _some([repr(key) for key in self._strange])
            notes.append(
                f"keys of offsets that are not topic@group, so no group can use them; nightly puts them into "
                f"bronze.quarantine: {keys}"
            )
        if self._impossible:
            some_offsets = _some([f"{offset} of {key} queue {queue}" for key, queue, offset in self._impossible])
            notes.append(f"offsets that no queue can have, negative or too large; they are kept: {some_offsets}")
        return notes


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES:,} more" if len(names) > SHOWN_NAMES else ""
    return f"{', '.join(names[:SHOWN_NAMES])}{more}"
