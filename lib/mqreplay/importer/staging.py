"""The unfinished recording: a folder beside the final one, renamed when it is complete.

A killed run leaves only the folder *.import.unfinished, which the next run to the same or another --out beside it
removes.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from mqreplay.decode.kinds import KINDS
from mqreplay.importer.files.sources import Source
from mqreplay.machine.local_files import output_folder, trouble_of
from mqreplay.machine.machine_failures import is_machine_failure
from mqreplay.recorder.durable import open_own, own_disk, sync
from mqreplay.words.errors import DecodeError, InputError, OwnDiskError

STAGING: Final = ".import.unfinished"  # suffix of the name of --out
SPOOL: Final = ".spool"


def staging_of(out: Path) -> Path:
    """Return the folder of the unfinished recording."""
    return out.with_name(f".{out.name}{STAGING}")


def final_folder(text: str) -> Path:
    """Return the folder of --out. Raise InputError if it exists already."""
    out = output_folder(text)
    try:
        if any(os.scandir(out)):
            raise InputError(
                f"--out {text} is not empty; give a new folder. To add to a recording, import it and the new files "
                "together into a new one"
            )
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"--out {text} is not a writable folder: {trouble_of(error)}") from None
    return out


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``out`` at the end; it is removed if the run fails.

    Raises InputError if it cannot be written, or another import writes to the same place.
    """
    folder = staging_of(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(f"{out.parent} is not a writable folder: {trouble_of(error)}") from None
    try:
        _lock(held, folder, out)
        _empty(folder)
        _remove_abandoned(folder)
        try:
            with own_disk(folder):
                (folder / SPOOL).mkdir()
            yield folder
            with own_disk(folder):
                shutil.rmtree(folder / SPOOL)
                _name(folder, out)
        except OwnDiskError as error:
            shutil.rmtree(folder, ignore_errors=True)
            if is_machine_failure(error):
                raise OwnDiskError(str(out.parent), error.detail) from error.__cause__
            raise InputError(f"writing {out} failed: {error.detail}; nothing was kept; run it again") from None
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    finally:
        os.close(held)


def _name(folder: Path, out: Path) -> None:
    """Rename the finished recording. Sync it first: after a power loss it is complete, or not renamed."""
    os.sync()  # one call: 20,000 copies take 0.3 s, but 19 s file by file
    try:
        folder.rename(out)
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EXDEV):
            raise InputError(f"--out {out} is a mount point, which cannot be replaced; give a folder in it") from None
        raise
    sync(out.parent)


def _lock(held: int, folder: Path, out: Path) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"another import writes {out}; wait for it, or give another folder") from None
    except OSError:
        pass  # a file system without locks, such as some network file systems
    # The other import may have ended between open and lock: then this is its recording.
    if not folder.exists() or not os.path.samestat(os.fstat(held), folder.stat()):
        raise InputError(f"another import has just written {out}; give another folder")


def _remove_abandoned(own: Path) -> None:
    """Remove the folders beside ``own`` that killed imports left: nobody holds their locks.

    One without a spool may be of an import that has not locked it yet.
    """
    for folder in own.parent.glob(f".*{STAGING}"):
        with suppress(OSError):  # it is in use or not ours, or the file system has no locks
            if folder != own and (folder / SPOOL).is_dir():
                held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                finally:
                    os.close(held)


def _empty(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


class RecordingWriter:
    """A writer of the files of a recording."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: Counter[str] = Counter()  # records by the file's name
        self._streams = ExitStack()
        self._files: dict[str, tuple[str, Any]] = {}

    def append(self, stem: str, record: Mapping[str, object]) -> None:
        """Write one line into the file of the kind ``stem``. Values of None are left out."""
        if stem not in self._files:
            if stem not in KINDS:
                raise ValueError(f"{stem!r} is not a kind of record")
            name = self._free_name(f"{stem}.jsonl.gz")
            raw = self._streams.enter_context(open_own(self.folder / name))
            # Without name and time in the header: the same input gives the same bytes.
            self._files[stem] = name, self._streams.enter_context(closing(gzip.GzipFile("", "wb", 6, raw, mtime=0)))
        name, stream = self._files[stem]
        stream.write(line_of(record))
        self.written[name] += 1

    def take_over(self, source: Source, name: str) -> str:
        """Copy a file of another recording unchanged; return its new name. Raises DecodeError, and keeps no part."""
        name = self._free_name(name)
        self.copy(source, name)
        return name

    def copy(self, source: Source, path: str) -> None:
        """Copy a file to ``path`` below the recording's folder. Raises DecodeError, and keeps no part."""
        try:
            with self.create(path) as out:
                for chunk in source.chunks():
                    out.write(chunk)
        except DecodeError:
            with own_disk(self.folder):
                (self.folder / path).unlink()
            raise

    def write(self, path: str, data: bytes) -> None:
        """Write a complete file below the recording's folder."""
        with self.create(path) as out:
            out.write(data)

    def create(self, path: str) -> BinaryIO:
        """Open a new file below the recording's folder."""
        file = self.folder / path
        with own_disk(self.folder):
            file.parent.mkdir(parents=True, exist_ok=True)
        return open_own(file, "xb")

    def close(self) -> None:
        """Finish the files."""
        self._streams.close()

    def _free_name(self, name: str) -> str:
        """Return the name, with a number if it is taken."""
        stem, _, ending = name.partition(".")
        ending = "jsonl.gz" if ending.endswith(".gz") else "jsonl"
        number = 0
        while (self.folder / name).exists():
            number += 1
            name = f"{stem}.{number:04d}.{ending}"
        return name


def line_of(record: Mapping[str, object]) -> bytes:
    """Return a record as a line of JSON.

    >>> line_of({"ts": 1795228794427, "error": None, "topic": "t"})
    b'{"ts":1795228794427,"topic":"t"}\\n'
    """
    known = {name: value for name, value in record.items() if value is not None}
    return json.dumps(known, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
