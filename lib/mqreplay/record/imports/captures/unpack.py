"""Make the JSONL files of a recording from packet captures, without a recorder in the clients.

Without Spark and Java. A capture is read twice, because names may come after the requests that need them.

The files get their final names at the end, one by one. JOURNAL lists them meanwhile, so that the next run removes those
of a run that was killed. brokers.json is written if the captures contain the cluster's name or a broker's settings.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from mqreplay.decode.capture.calls import Call, Calls
from mqreplay.decode.capture.cluster import CapturedCluster
from mqreplay.decode.capture.lines import Cut, Unnamed, record_of
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.translated import TranslatedCalls
from mqreplay.errors import DecodeError, InputError, OwnDiskError
from mqreplay.local_files import check_on_disk, output_folder
from mqreplay.machine_failures import is_machine_failure
from mqreplay.printable import printable
from mqreplay.record.durable import UNFINISHED
from mqreplay.record.imports.brokers.broker_names import BrokerNames
from mqreplay.record.imports.brokers_file import BrokersFile
from mqreplay.record.imports.captures.capture_files import all_segments, in_order
from mqreplay.record.own_files import open_own, own_disk
from mqreplay.recording_files import RECORD_TABLES, classify

JOURNAL = f"unpack{UNFINISHED}"
REASONS = 100  # reasons for skipped data that are printed; a reason may name an address
PULLS = "pull_log"
BROKERS = "brokers.json"
WRITTEN = (*(f"{stem}.jsonl.gz" for stem in RECORD_TABLES), BROKERS)


@dataclass
class Unpacked:
    """The result of unpacking captures: records by kind, the data without a record, and notes for the user."""

    records: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    torn: list[str] = field(default_factory=list)
    unanswered: Counter[str] = field(default_factory=Counter)  # pulls by the reason
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        records, left_out = dict(self.records), dict(self.left_out)
        return {"records": records, "left_out": left_out, "torn": self.torn, "notes": self.notes}


class Captures:
    """The records of several packet captures. ``done`` has the counts."""

    def __init__(self, captures: Sequence[str]) -> None:
        """Read the captures once for names. Raises InputError for a file that is not a capture."""
        self._files = in_order(captures)
        self.cluster = CapturedCluster()
        self._names = Names(self.cluster.watch(Calls(all_segments(self._files, []))))
        self.done = Unpacked()

    def records(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield the kind and the fields of each record."""
        calls = Calls(all_segments(self._files, self.done.torn))
        translated = TranslatedCalls()
        for call in calls:
            if (found := _record(call, self._names, self.done)) is None:
                continue
            # Of two copies one may have the address of a broker that nothing names: it gives no record.
            if translated.repeats(call, self._names.client(call.connection)):
                self.done.left_out["requests seen again after a translation of addresses: they count once"] += 1
                continue
            if found[0] == PULLS and call.unanswered is not None:
                self.done.unanswered[call.unanswered] += 1
            yield found
        counts = {
            "commands that tcpdump cut or lost: capture with -s 0": calls.cut - calls.dropped,
            "incomplete commands that were given up: too many at the same time": calls.dropped,
            "answers that were given up: too many open requests at the same time": calls.unanswered,
        }
        self.done.left_out += Counter({what: count for what, count in counts.items() if count})
        if self.done.unanswered:
            self.done.notes.append(_unanswered_note(self.done.unanswered))


def unpack(captures: Sequence[str], folder: str, out: TextIO, as_json: bool = False) -> None:
    """Write KIND.jsonl.gz files of all captures into ``folder``, and print a report.

    Raises InputError for a file that is not a capture, or if ``folder`` already has files of a kind to write, because
    records could then be there twice.
    """
    check_on_disk(captures, "unpack")
    into = output_folder(folder)
    found = Captures(captures)
    _write(found, into)
    print(json.dumps(found.done.as_dict(), indent=1) if as_json else _summary(found.done, folder), file=out)


def _write(captures: Captures, folder: Path) -> None:
    try:
        with own_disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with _only_run(folder):
            with own_disk(folder):
                _remove_unfinished(folder)
                there = {classify(name)[0] for name in os.listdir(folder)}
            _write_or_remove(captures, folder, there)
    except OwnDiskError as error:
        if is_machine_failure(error):
            raise
        raise InputError(f"{folder} is not a writable folder: {error.detail}") from None


def _write_or_remove(captures: Captures, folder: Path, there: set[str]) -> None:
    try:
        _write_all(captures, folder, there)
    except BaseException as error:
        with suppress(OSError):
            _remove_unfinished(folder)
        if isinstance(error, OwnDiskError) and not is_machine_failure(error):
            why = error.detail
            raise InputError(f"writing into {folder} failed: {why}; no file was kept; run it again") from None
        raise


@contextmanager
def _only_run(folder: Path) -> Iterator[None]:
    """Lock the folder: two runs at the same time would remove each other's files."""
    with own_disk(folder):
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another unpack writes into {folder}; wait for it, or give another folder") from None
        except OSError:
            pass  # a file system without locks, such as some network file systems
        yield
    finally:
        os.close(held)


def _remove_unfinished(folder: Path) -> None:
    """Remove the files of an unfinished run, also the renamed ones."""
    journal = folder / JOURNAL
    for name, identity in _journaled(journal).items():
        with suppress(FileNotFoundError):
            if _identity(folder / name) == identity:
                (folder / name).unlink()
    for name in WRITTEN:
        (folder / f"{name}{UNFINISHED}").unlink(missing_ok=True)
    journal.unlink(missing_ok=True)


def _journaled(journal: Path) -> dict[str, list[int]]:
    """Return the files that a killed run was renaming; none if it was killed before all were written."""
    try:
        written = json.loads(journal.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return (
        {name: identity for name, identity in written.items() if name in WRITTEN} if isinstance(written, dict) else {}
    )


def _identity(path: Path) -> list[int]:
    """Return what identifies a file across a rename."""
    status = os.lstat(path)
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def _write_all(captures: Captures, folder: Path, there: set[str]) -> None:
    written: dict[str, Path] = {}  # by its final name
    with ExitStack() as streams:
        into: dict[str, gzip.GzipFile] = {}
        for stem, fields in captures.records():
            if stem not in into:
                if stem in there:
                    raise InputError(
                        f"{folder} has files of {stem} already: what a recorder wrote and a capture shows would be "
                        "there twice; give another folder"
                    )
                path = written[f"{stem}.jsonl.gz"] = folder / f"{stem}.jsonl.gz{UNFINISHED}"
                raw = streams.enter_context(open_own(path))
                # No name and no time in it: the same captures give the same bytes.
                zipped = gzip.GzipFile("", "wb", 6, raw, mtime=0)
                into[stem] = streams.enter_context(closing(zipped))
            known = {name: value for name, value in fields.items() if value is not None}
            into[stem].write(json.dumps(known, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            captures.done.records[stem] += 1
    if (brokers := _brokers_json(captures, folder)) is not None:
        path = written[BROKERS] = folder / f"{BROKERS}{UNFINISHED}"
        with open_own(path) as stream:
            stream.write(brokers)
    with own_disk(folder):
        (folder / JOURNAL).write_text(json.dumps({name: _identity(path) for name, path in written.items()}))
        for name, path in written.items():
            path.rename(folder / name)
        (folder / JOURNAL).unlink()


def _brokers_json(captures: Captures, folder: Path) -> bytes | None:
    """Return the content of brokers.json; None if the file exists or the captures have neither cluster nor settings."""
    found, done = BrokersFile(BrokerNames()), captures.done
    if not done.records:
        return None
    found.add_captured(captures.cluster)
    try:
        data = found.as_bytes()
    except DecodeError as error:
        done.notes.append(f"{BROKERS} is not written: {error.detail}")
        return None
    if len(found.cluster) != 1:
        clusters = f" ({', '.join(found.cluster)})" if found.cluster else ""
        named = f"the captures name {len(found.cluster) or 'no'} cluster{'s' if found.cluster else ''}{clusters}"
        done.notes.append(f"{named}; give nightly --cluster NAME")
    if data is not None and (folder / BROKERS).exists():
        done.notes.append(f"{BROKERS} already exists and is kept")
        return None
    if data is not None and len(found.cluster) == 1:
        done.notes.append(f"{BROKERS} names the cluster {found.cluster[0]}")
    return data


def _record(call: Call, names: Names, done: Unpacked) -> tuple[str, dict[str, object]] | None:
    try:
        return record_of(call, names)
    except Unnamed as error:
        what = f"requests that cannot be attributed: {error}"
        known = what in done.left_out or len(done.left_out) < REASONS
        done.left_out[what if known else "requests that cannot be attributed: other brokers"] += 1
    except Cut:
        done.left_out["records whose body tcpdump cut: capture with -s 0"] += 1
    except DecodeError as error:
        done.left_out[f"answers that do not match their requests ({error.code})"] += 1
    return None


def _unanswered_note(counts: Counter[str]) -> str:
    """Return why pulls have no answer. A hook in a client logs a pull when its call ends, which a kill prevents.

    >>> _unanswered_note(Counter({"the broker was killed": 1, "the client was killed": 2}))
    '3 pulls have no answer: the client was killed (2), the broker was killed (1)'
    """
    total = counts.total()
    pulls = "1 pull has no answer" if total == 1 else f"{total:,} pulls have no answer"
    return f"{pulls}: {', '.join(f'{reason} ({count:,})' for reason, count in counts.most_common())}"


def _summary(done: Unpacked, folder: str) -> str:
    lines = [f"{count:>10,}  {stem}.jsonl.gz" for stem, count in sorted(done.records.items())]
    lines = [f"records in {folder}", *lines] if lines else ["no record of RocketMQ in these captures"]
    if done.left_out:
        lines += ["left out", *(f"{count:>10,}  {what}" for what, count in sorted(done.left_out.items()))]
    lines += [f"torn: {what}" for what in done.torn] + [f"note: {what}" for what in done.notes]
    return "\n".join(map(printable, lines))
