"""`mqreplay bundle`: write a recording to one file or folder. Without Spark, Java or a running cluster.

Only files that nightly reads are in it, so that packet captures and logs, with the bodies of messages, stay away.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Literal, TextIO

from mqreplay import __version__
from mqreplay.bundle.bundle_files import OF_MESSAGES, BundledFile, files_of, path_of, without_body
from mqreplay.bundle.names import Names
from mqreplay.bundle.redact import DAMAGED, NO_JSON, redact
from mqreplay.machine.local_files import check_on_disk, local_folder
from mqreplay.machine.machine_failures import is_machine_failure
from mqreplay.recorder.durable import UNFINISHED, open_own, own_disk
from mqreplay.words.errors import InputError, OwnDiskError
from mqreplay.words.printable import json_text, printable

MANIFEST: Final = "BUNDLE.json"
MODES: Final[dict[str, Literal["w:xz", "w:gz"]]] = {".tar.xz": "w:xz", ".tar.gz": "w:gz", ".tgz": "w:gz"}
ARCHIVES: Final = frozenset({".tar", ".zip", ".gz", ".xz", ".bz2", ".zst", ".7z", ".tbz", ".txz"})
PRIVATE: Final = 0o600
_IN_MEMORY: Final = 1 << 24  # bytes of a file that is being rewritten
# Strategies whose shares depend on the text of names, and not only on their order.
_BY_TEXT: Final = re.compile(
    rb"CONSISTENT_HASH|AllocateMessageQueueConsistentHash|MACHINE_ROOM|MachineRoom|\"CONFIG\"|ByConfig"
)
_GROUP: Final = re.compile(rb'"consumer_?[gG]roup"\s*:\s*"([^"\\]*)"')
_OF_STRATEGY: Final = frozenset({"rebalance_log", "assignments", "pop_assignments"})


@dataclass
class Bundled:
    """The result of a bundle. ``by_text`` are the groups whose allocations stay undetermined."""

    files: int = 0
    redacted: bool = False
    replaced: dict[str, int] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    by_text: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mqreplay": __version__,
            "redacted": self.redacted,
            "files": self.files,
            "replaced": self.replaced,
            "removed": dict(sorted(self.removed.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "undetermined_allocations_of_groups": sorted(self.by_text),
            "notes": self.notes,
        }


def bundle(recording: str, file: str, out: TextIO, *, is_redacted: bool, mapping: str | None, as_json: bool) -> None:
    """Write a recording to ``file``, a new .tar.xz, .tar.gz or folder, and print a report.

    ``is_redacted``: names, addresses and keys are replaced; ``mapping`` is a new file for the replacements. Raises
    InputError for a folder that is no recording, and for a file that exists or cannot be written.
    """
    check_on_disk([recording, file], "bundle")
    folder = local_folder(recording, "RECORDING")
    if not folder.is_dir():
        raise InputError(f"{recording} is not a folder; give the folder of a recording")
    if mapping is not None and not is_redacted:
        raise InputError("--mapping needs --redact: without it nothing is replaced")
    path, mode = _new_file(file, "--out"), _mode(file)
    kept = None if mapping is None else _new_file(mapping, "--mapping")
    for written in (path, kept):
        if written is not None and folder in written.parents:
            raise InputError(f"{written} is in the recording itself; give a path outside of it")
    done = Bundled(redacted=is_redacted)
    files = files_of(folder, done.left_out)
    names = _collected(files, done) if is_redacted else None
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        try:
            _write(files, unfinished, mode, names, done)
            if kept is not None and names is not None:
                _write_mapping(kept, names)
            with own_disk(path.parent):
                unfinished.rename(path)
        except BaseException:
            with suppress(OSError):
                _remove(unfinished)
            raise
    except OwnDiskError as error:
        if is_machine_failure(error):
            raise
        raise InputError(f"{path.parent} is not a writable folder: {error.detail}") from None
    print(json_text(done.as_dict(), indent=1) if as_json else _summary(done, path, kept), file=out)


def _new_file(text: str, option: str) -> Path:
    path = local_folder(text, option)
    if os.path.lexists(path):
        raise InputError(f"{option} {text} exists already; remove it, or give another file")
    if not path.parent.is_dir():
        raise InputError(f"{option} {text}: the folder {path.parent} does not exist; make it first")
    return path


def _mode(file: str) -> Literal["w:xz", "w:gz"] | None:
    """Return how to write an archive; None: a folder is wanted."""
    mode = next((mode for end, mode in MODES.items() if file.endswith(end)), None)
    if mode is None and Path(file).suffix in ARCHIVES:
        raise InputError(f"--out {file} should end in .tar.xz or .tar.gz, or name a new folder")
    return mode


def _root(path: Path) -> str:
    """Return the folder in the archive: the file's name without its ending."""
    end = next(end for end in MODES if path.name.endswith(end))
    return path.name.removesuffix(end) or "recording"


def _remove(path: Path) -> None:
    """Remove what an interrupted run left."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _collected(files: list[BundledFile], done: Bundled) -> Names:
    """Read all files once for their names."""
    names, by_text = Names(), set[str]()
    for file in files:
        path_of(file.path, names)
        for line in file.lines(Counter()):
            _redacted_line(line, file, names)
            if file.kind in _OF_STRATEGY and _BY_TEXT.search(line) and (group := _GROUP.search(line)) is not None:
                by_text.add(group[1].decode("utf-8", "replace"))
    names.number()
    done.by_text = by_text
    return names


def _redacted_line(line: bytes, file: BundledFile, names: Names) -> bytes:
    ending = line[len(line.rstrip(b"\r\n")) :] if file.has_lines else b""
    content = line[: len(line) - len(ending)]
    if not content.strip():
        return ending
    try:
        text = content.decode()
    except UnicodeDecodeError:  # no JSON for the reader either
        names.remove(NO_JSON)
        return DAMAGED.encode() + ending
    return redact(text, file.kind, names).encode("utf-8", "replace") + ending


def _write(
    files: list[BundledFile], path: Path, mode: Literal["w:xz", "w:gz"] | None, names: Names | None, done: Bundled
) -> None:
    with own_disk(path.parent):
        _remove(path)
    with _folder(path) if mode is None else _archive(path, mode) as add:
        for file in files:
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as content:
                _fill(content, file, names, done)
                add(file.path if names is None else path_of(file.path, names), content)
                done.files += 1
        if names is not None:
            done.replaced = names.counts()
            done.removed += names.removed
            if not names.clients_keep_hosts:
                done.notes.append("clients of one host have different addresses, so that client ids sort as before")
        add(MANIFEST, io.BytesIO(_manifest(done, names)))


@contextmanager
def _folder(path: Path) -> Iterator[Callable[[str, IO[bytes]], None]]:
    """Make a folder, and give the function that adds a file to it."""

    def add(name: str, content: IO[bytes]) -> None:
        content.seek(0)
        with own_disk(path.parent):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            with (path / name).open("xb") as written:
                shutil.copyfileobj(content, written)

    with own_disk(path.parent):
        path.mkdir(PRIVATE | stat.S_IXUSR)
    yield add


@contextmanager
def _archive(path: Path, mode: Literal["w:xz", "w:gz"]) -> Iterator[Callable[[str, IO[bytes]], None]]:
    """Make an archive of a folder, and give the function that adds a file to it.

    No file has an owner or a time: the same recording gives the same bytes.
    """

    def add(name: str, content: IO[bytes]) -> None:
        info = tarfile.TarInfo(f"{root}/{name}")
        info.size = content.seek(0, io.SEEK_END)
        info.mode = 0o644
        content.seek(0)
        tar.addfile(info, content)

    root = _root(path.with_name(path.name.removesuffix(UNFINISHED)))
    with own_disk(path.parent):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    with open_own(path) as raw, tarfile.open(fileobj=raw, mode=mode, format=tarfile.PAX_FORMAT) as tar:
        yield add


def _fill(content: Any, file: BundledFile, names: Names | None, done: Bundled) -> None:
    """Write the new content of a file."""
    is_rewritten = names is not None or file.kind in OF_MESSAGES
    if not is_rewritten:
        with file.open() as raw:
            while chunk := raw.read(1 << 20):
                content.write(chunk)
        return
    zipped = gzip.GzipFile("", "wb", 6, content, mtime=0) if file.is_gzip else None
    target: IO[bytes] = content if zipped is None else zipped  # type: ignore[assignment]
    with closing(zipped) if zipped is not None else nullcontext():
        for line in file.lines(done.removed):
            target.write(without_body(line) if names is None else _redacted_line(line, file, names))


def _manifest(done: Bundled, names: Names | None) -> bytes:
    described = done.as_dict()
    if names is not None:
        described["undetermined_allocations_of_groups"] = sorted(map(names.group, done.by_text))
    return json.dumps(described, ensure_ascii=False, indent=1).encode() + b"\n"


def _write_mapping(path: Path, names: Names) -> None:
    with own_disk(path.parent):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            json.dump(names.mapping(), stream, ensure_ascii=False, indent=1)
            stream.write("\n")


def _summary(done: Bundled, path: Path, mapping: Path | None) -> str:
    size = sum(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())
    lines = [f"{path}: {done.files:,} file{'' if done.files == 1 else 's'} of the recording, {size / 1e6:.1f} MB"]
    if not done.redacted:
        lines.append("names, addresses and keys are as in the recording; --redact replaces them")
    for title, counts in (("replaced", done.replaced), ("removed", done.removed), ("left out", done.left_out)):
        if counts:
            lines += [title, *(f"{count:>10,}  {what}" for what, count in sorted(counts.items()))]
    if done.by_text:
        lines.append(
            "allocations that stay undetermined, because their strategy depends on the text of names or on settings"
        )
        lines += [f"            {group}" for group in sorted(done.by_text)]
    lines += [f"note: {note}" for note in done.notes]
    if mapping is not None:
        lines.append(f"{mapping} has each name and its replacement: keep it to yourself")
    return "\n".join(map(printable, lines))
