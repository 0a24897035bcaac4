"""Members of tar and zip archives, unpacked to disk under generated names.

Names in an archive are never used as paths on disk. Links and devices are not followed. The unpacked size is bounded,
also by the size of the archive, so that a small file cannot fill the disk.
"""

from __future__ import annotations

import datetime as dt
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from mqreplay.importer.files.layout import ARCHIVE, place_of
from mqreplay.importer.files.sources import Source
from mqreplay.recorder.durable import open_own, require_free
from mqreplay.words.errors import DecodeError

MOST_MEMBERS: Final = 2_000_000
MOST_BYTES: Final = 50 * 1024**3  # of all archives of a run
MOST_HEADER: Final = 1 << 20  # bytes of a long name in a tar
# (bytes that an archive may always unpack to, most bytes for each of its own). Logs reach a ratio of 104. One repeated
# line reaches 294 in zip and gzip, and 7,000 in bzip2 and xz.
_DEFLATED: Final = (1 << 28, 600)
_DENSE: Final = (1 << 30, 2000)  # of bzip2 and xz, and of an archive together with the archives in it
_DENSE_MAGIC: Final = (b"BZh", b"\xfd7zXZ")
_LOCAL_HEADER: Final = struct.Struct("<26xHH")  # of a zip's member: the sizes of its name and of its extra fields
_CHUNK: Final = 1 << 20
_KEPT_FREE: Final = 1 << 28  # bytes of the disk
_UT_FIELD: Final = 0x5455  # a zip's extra field of times in UTC
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, DecodeError, struct.error)
# Raised by zipfile for members that it cannot read: encrypted, unknown method, broken name.
_UNREADABLE = (NotImplementedError, RuntimeError, ValueError, *_DAMAGED)


_UNPACK_IT: Final = "unpack it yourself, and give its folder"
_DOUBTFUL: Final = f"check where it comes from; if it is right, {_UNPACK_IT}"


class TooLarge(Exception):
    """An archive unpacks to more than an import accepts. The text says why, and what to do."""


@dataclass
class Spool:
    """The folder of unpacked members, and the space left. ``refused`` collects (path, reason) of skipped members."""

    folder: Path
    zone: dt.tzinfo
    wanted: Callable[[Source], bool]
    refused: list[tuple[str, str]] = field(default_factory=list)
    members_left: int = MOST_MEMBERS
    bytes_left: int = MOST_BYTES
    limits: list[int] = field(default_factory=list)  # bytes left of the archive that is open, and of the one around it
    _count: int = 0

    def take(self, path: str, hint: str, stream: IO[bytes], modified_ms: int | None) -> Source:
        """Write a member's bytes to a file and return it. Raises TooLarge, and OwnDiskError if the disk is full."""
        self._count += 1
        file = self.folder / f"{self._count:07d}"
        size = 0
        try:
            with open_own(file) as out:
                while chunk := _read(stream):
                    size += len(chunk)
                    self.bytes_left -= len(chunk)
                    self.limits = [limit - len(chunk) for limit in self.limits]
                    if self.bytes_left < 0:
                        raise TooLarge(f"it unpacks to more than {MOST_BYTES // 1024**3} GiB; {_UNPACK_IT}")
                    if min(self.limits) < 0:
                        raise TooLarge(
                            f"it unpacks to far more bytes for its size than logs and copies do; {_DOUBTFUL}"
                        )
                    out.write(chunk)
        except TooLarge:
            file.unlink()
            raise
        require_free(self.folder, _KEPT_FREE)
        return Source(path, size, modified_ms, file, hint, is_unpacked=True)

    def count(self) -> None:
        """Count a member. Raises TooLarge."""
        self.members_left -= 1
        if self.members_left < 0:
            raise TooLarge(f"it has more than {MOST_MEMBERS} members; {_UNPACK_IT}")


def members_of(archive: Source, spool: Spool, nested: bool = False) -> list[Source]:
    """Return the wanted members of an archive, and of the archives in it, one level deep.

    Members that cannot be read are in ``spool.refused``. A torn archive gives the members before the cut.
    """
    found: list[Source] = []
    read = _zip_members if archive.path.lower().endswith(".zip") else _tar_members
    try:
        spool.limits = [_limit(archive), spool.limits[1] if nested else _most(archive, _DENSE)]
        for member in read(archive, spool):
            found.append(member)
    except TooLarge as error:
        for member in found:
            member.file.unlink(missing_ok=True)
        spool.refused.append((archive.path, str(error)))
        return []
    except _UNREADABLE as error:
        kept = "; the members before were read" if found else ""
        spool.refused.append((archive.path, f"the archive is torn or damaged ({_text(error)}){kept}; copy it again"))
    flat: list[Source] = []
    for member in found:
        if place_of(member.parts, spool.zone).kind != ARCHIVE:
            flat.append(member)
        elif nested:
            spool.refused.append((member.path, "the archive is nested two levels deep; unpack it, and give its folder"))
        else:
            flat += members_of(member, spool, nested=True)
            member.file.unlink(missing_ok=True)
    return flat


def _limit(archive: Source) -> int:
    with archive.open_as_is() as raw:
        return _most(archive, _DENSE if raw.peek(5).startswith(_DENSE_MAGIC) else _DEFLATED)


def _most(archive: Source, bounds: tuple[int, int]) -> int:
    always, ratio = bounds
    return max(always, ratio * archive.size)


def _tar_members(archive: Source, spool: Spool) -> Iterator[Source]:
    with archive.open() as raw, closing(_open_tar(raw)) as tar:
        for info in tar:
            spool.count()
            if info.isdir():
                continue
            path = _member_path(archive, info.name, spool)
            if path is None:
                continue
            if not info.isreg():
                spool.refused.append((path, "it is a link or a device in an archive; give the file that it leads to"))
                continue
            modified = _in_range(info.mtime)
            hint = f"{archive.hint}/{path[len(archive.path) + 1 :]}"
            if not spool.wanted(Source(path, info.size, modified, archive.file, hint)):
                continue
            stream = tar.extractfile(info)
            if stream is not None:
                yield spool.take(path, hint, stream, modified)


class _BoundedHeaders(tarfile.TarInfo):
    """The members of a tar, with bounded long names."""

    def _proc_member(self, tar: Any) -> Any:
        if not self.isreg() and self.size > MOST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


def _open_tar(raw: IO[bytes]) -> tarfile.TarFile:
    return tarfile.open(fileobj=raw, mode="r|", tarinfo=_BoundedHeaders)


def _zip_members(archive: Source, spool: Spool) -> Iterator[Source]:
    with archive.open_as_is() as raw, zipfile.ZipFile(raw) as zipped:
        _refuse_overlaps(zipped.infolist(), raw)
        for info in zipped.infolist():
            spool.count()
            if info.is_dir():
                continue
            path = _member_path(archive, info.filename, spool)
            if path is None:
                continue
            mode = info.external_attr >> 16
            if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                spool.refused.append((path, "it is a link or a device in an archive; give the file that it leads to"))
                continue
            modified = _zip_time(info, spool.zone)
            hint = f"{archive.hint}/{path[len(archive.path) + 1 :]}"
            if not spool.wanted(Source(path, info.file_size, modified, archive.file, hint)):
                continue
            try:
                with zipped.open(info) as stream:
                    yield spool.take(path, hint, stream, modified)
            except _UNREADABLE as error:
                spool.refused.append((path, f"the zip's member cannot be read ({_text(error)}); unpack it yourself"))


def _refuse_overlaps(members: list[zipfile.ZipInfo], raw: IO[bytes]) -> None:
    """Raise TooLarge if two members share bytes of the zip: each is written, and the zip can be of any ratio."""
    end = 0
    for info in sorted(members, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise TooLarge(f"its members overlap, as no program packs them; {_DOUBTFUL}")
        raw.seek(info.header_offset)
        header = raw.read(_LOCAL_HEADER.size)
        if len(header) == _LOCAL_HEADER.size:  # else zipfile says what is wrong
            end = info.header_offset + len(header) + sum(_LOCAL_HEADER.unpack(header)) + info.compress_size


def _read(stream: IO[bytes]) -> bytes:
    try:
        return stream.read(_CHUNK)
    except OSError as error:  # bz2 has no error class; errors of the archive's file are not OSError, see open_input
        raise DecodeError("damaged", f"it is damaged ({error})") from None


def _member_path(archive: Source, name: str, spool: Spool) -> str | None:
    """Return a member's path for the user, None for one that leads out of the archive."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in name:
        spool.refused.append((f"{archive.path}/{name}", "its name leads out of the archive; unpack it, and rename it"))
        return None
    return f"{archive.path}/{'/'.join(parts)}"


def _zip_time(info: zipfile.ZipInfo, zone: dt.tzinfo) -> int | None:
    """Return the modification time of a member, epoch ms: in UTC if the zip has it, else its local time in ``zone``."""
    extra, at = info.extra, 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == _UT_FIELD and size >= 5 and at + 9 <= len(extra) and extra[at + 4] & 1:
            return _in_range(struct.unpack_from("<i", extra, at + 5)[0])
        at += 4 + size
    try:
        return _in_range(dt.datetime(*info.date_time, tzinfo=zone).timestamp())
    except (ValueError, OverflowError):
        return None


def _in_range(seconds: float) -> int | None:
    return int(seconds * 1000) if 0 < seconds < 4_102_444_800 else None


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]
