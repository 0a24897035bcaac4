"""Calls of captures on disk: they are decoded once, but the names in them are known only at their end."""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from isal import isal_zlib

from mqreplay.decode.capture.calls import Call
from mqreplay.decode.capture.commands import Command
from mqreplay.decode.capture.lines import has_record
from mqreplay.decode.capture.messages import without_messages
from mqreplay.recorder.durable import own_disk

_BATCH_BYTES: Final = 1 << 20  # of memory, about
_CALL_BYTES: Final = 2_000  # without its bodies
_LENGTH_BYTES: Final = 8


class CallSpool:
    """A file without a name that keeps the calls of which records are made, and no messages."""

    def __init__(self, folder: Path | None) -> None:
        """Make the file in ``folder``, or in that for temporary files. It and the methods raise OwnDiskError."""
        self._folder = folder or Path(tempfile.gettempdir())
        with own_disk(self._folder):
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115

    def keep(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Yield all calls, and keep those that have a record."""
        batch, size = list[Call](), 0
        for call in calls:
            if has_record(call):
                batch.append(call)
                size += _CALL_BYTES + len(call.request.body) + (len(call.response.body) if call.response else 0)
                if size > _BATCH_BYTES:
                    self._write(batch)
                    batch, size = [], 0
            yield call
        self._write(batch)

    def __iter__(self) -> Iterator[Call]:
        """Yield the kept calls."""
        with own_disk(self._folder):
            self._file.seek(0)
        while True:
            with own_disk(self._folder):
                packed = self._file.read(int.from_bytes(self._file.read(_LENGTH_BYTES), "big"))
            if not packed:
                return
            for connection, asker, asked, request, response, *rest in marshal.loads(isal_zlib.decompress(packed)):
                answer = None if response is None else Command(*response)
                yield Call(connection, asker, asked, Command(*request), answer, *rest)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def _write(self, calls: Iterable[Call]) -> None:
        rows = [
            # marshal knows tuples, but no classes.
            (*call[:3], tuple(call.request), call.response and tuple(call.response), *call[5:])
            for call in map(without_messages, calls)
        ]
        packed = isal_zlib.compress(marshal.dumps(rows), 0)
        with own_disk(self._folder):
            self._file.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)
