"""Packet captures made into the JSONL files of a recording, for where no recorder ran in the clients.

Without Spark and without Java. A capture is read twice: who is who may be said after what it explains.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, TextIO

from mqreplay.decode.capture.calls import Call, Calls
from mqreplay.decode.capture.lines import Cut, Unnamed, record_of
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.packets import Segment, segments
from mqreplay.errors import DecodeError, InputError
from mqreplay.ingest.lines import open_maybe_gzip, trouble_of
from mqreplay.ingest.recording import classify

UNFINISHED = ".unfinished"  # behind the name of a file that is being written


@dataclass
class Unpacked:
    """What came of captures: records by kind, and what they told of that no record could be made of."""

    records: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    torn: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"records": dict(self.records), "left_out": dict(self.left_out), "torn": self.torn}


def unpack(captures: Sequence[str], folder: str, out: TextIO, as_json: bool = False) -> None:
    """Writes KIND.jsonl.gz files into ``folder``, of all captures together, and prints what came of them.

    Raises InputError where a capture is none, or ``folder`` has files of a kind that would be written: no record may
    be there twice.
    """
    files = _in_order(captures)
    names = Names(Calls(_all_segments(files, Unpacked())))
    done = Unpacked()
    calls = Calls(_all_segments(files, done))
    _write(calls, names, Path(folder), done)
    if calls.cut:
        done.left_out["commands that tcpdump cut or lost: capture with -s 0"] += calls.cut
    print(json.dumps(done.as_dict(), indent=1) if as_json else _told(done, folder), file=out)


def _in_order(captures: Sequence[str]) -> list[str]:
    """The captures by their first packet: tcpdump numbers those that it rotates, and not so that names sort."""
    firsts = []
    for path in captures:
        with _open(path) as stream:
            try:
                first = next(segments(stream), None)
            except (DecodeError, EOFError, OSError, zlib.error) as error:
                if isinstance(error, DecodeError) and error.code != "torn":
                    raise InputError(f"{path} is no packet capture that can be read: {error.detail}") from None
                first = None
        firsts.append((first.ts_us if first else 0, path))
    return [path for _, path in sorted(firsts)]


def _open(path: str) -> BufferedReader:
    try:
        return open_maybe_gzip(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {trouble_of(error)}") from None


def _all_segments(files: Sequence[str], done: Unpacked) -> Iterator[Segment]:
    for path in files:
        with _open(path) as stream:
            try:
                yield from segments(stream)
            except (DecodeError, EOFError, OSError, zlib.error) as error:
                detail = error.detail if isinstance(error, DecodeError) else str(error)
                done.torn.append(f"{path}: {detail}; the packets before were read")


def _write(calls: Calls, names: Names, folder: Path, done: Unpacked) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = {classify(name)[0] for name in os.listdir(folder)}
    except OSError as error:
        raise InputError(f"{folder} is no folder that can be written to: {trouble_of(error)}") from None
    written: dict[str, Path] = {}
    with ExitStack() as opened:
        opened.callback(lambda: [path.unlink(missing_ok=True) for path in written.values()])
        with ExitStack() as streams:
            into: dict[str, IO[bytes]] = {}
            for call in calls:
                found = _record(call, names, done)
                if found is None:
                    continue
                stem, fields = found
                if stem not in into:
                    if stem in there:
                        raise InputError(
                            f"{folder} has files of {stem} already: what a recorder wrote and a capture shows would be "
                            "there twice; give another folder"
                        )
                    written[stem] = folder / f"{stem}.jsonl.gz{UNFINISHED}"
                    raw = streams.enter_context(open(written[stem], "wb"))
                    # No name and no time in it: the same captures give the same bytes.
                    into[stem] = streams.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
                known = {name: value for name, value in fields.items() if value is not None}
                into[stem].write(json.dumps(known, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                done.records[stem] += 1
        for stem, path in written.items():
            path.rename(folder / f"{stem}.jsonl.gz")


def _record(call: Call, names: Names, done: Unpacked) -> tuple[str, dict[str, object]] | None:
    try:
        return record_of(call, names)
    except Unnamed as error:
        done.left_out[f"requests of which nothing tells {error}"] += 1
    except Cut:
        done.left_out["records whose body tcpdump cut: capture with -s 0"] += 1
    except DecodeError as error:
        done.left_out[f"answers that are not what was asked for ({error.code})"] += 1
    return None


def _told(done: Unpacked, folder: str) -> str:
    lines = [f"{count:>10,}  {stem}.jsonl.gz" for stem, count in sorted(done.records.items())]
    lines = [f"records in {folder}", *lines] if lines else ["no record of RocketMQ's in these captures"]
    if done.left_out:
        lines += ["left out", *(f"{count:>10,}  {what}" for what, count in sorted(done.left_out.items()))]
    return "\n".join(lines + [f"torn: {what}" for what in done.torn])
