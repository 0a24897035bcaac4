"""Examine files one by one: kind, errors and advice. Without Spark and Java."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from mqreplay.cli.doctor.config_file import examine_config_file
from mqreplay.cli.doctor.imported_file import examine_imported_file
from mqreplay.cli.doctor.kind import HEAD, kind_of
from mqreplay.cli.doctor.line_file import examine_line_file
from mqreplay.cli.doctor.on_load import BAK
from mqreplay.cli.doctor.verdict import Verdict, spelled
from mqreplay.lake.files import files_of, is_remote
from mqreplay.recorder.durable import open_own
from mqreplay.words.errors import InputError, InputErrors
from mqreplay.words.printable import json_text
from mqreplay.words.quantity import counted

SHOWN = 5  # status of files that cannot be examined


def examine_files(paths: Sequence[str], out: TextIO, as_json: bool = False) -> bool:
    """Print the result for each file; return True if all are intact.

    Raises InputError, after examining the others, for a missing file, a folder, or a file that is not of a recording.
    """
    verdicts, unusable = [], []
    for path in paths:
        try:
            verdicts.append(examine_file(path))
        except InputError as error:
            unusable.append(str(error))
    if as_json:
        print(json_text({"files": [each.as_dict() for each in verdicts]}, indent=1), file=out)
    else:
        for verdict in verdicts:
            print(verdict.as_text(), file=out)
    if unusable:
        more = [f"… and {counted(len(unusable) - SHOWN, 'file')} more"] if len(unusable) > SHOWN else []
        raise InputErrors(unusable[:SHOWN] + more)
    return all(verdict.whole for verdict in verdicts)


def examine_file(path: str) -> Verdict:
    """Return the result for one file. Raises InputError if it is missing or not a file that mqreplay reads."""
    try:
        if is_remote(path):
            return _verdict_of_copy(path)
        _refuse_what_is_no_file(path)
        return _verdict(path)
    except OSError as error:
        raise InputError(f"{spelled(path)} cannot be read: {error.strerror or error}") from None


def _verdict_of_copy(path: str) -> Verdict:
    """Return the result for a file of a store."""
    with tempfile.TemporaryDirectory() as folder, files_of(path).open(path) as stream:
        local = Path(folder, path.rsplit("/", 1)[-1])
        with open_own(local) as copy:
            shutil.copyfileobj(stream, copy)
        try:
            verdict = _verdict(str(local))
        except InputError as error:
            raise InputError(str(error).replace(spelled(str(local)), spelled(path))) from None
    verdict.path = path
    return verdict


def _verdict(path: str) -> Verdict:
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD)
        taken = kind_of(Path(path).name, head)
        if taken is None:
            return examine_imported_file(path)
        verdict = Verdict(path, taken.kind)
        verdict.say("kind", taken.in_words)
        verdict.facts["known_by"] = taken.how
        (examine_line_file if taken.has_lines else examine_config_file)(path, verdict)
    except InputError as error:
        raise InputError(f"{spelled(path)}: {error}") from None
    return verdict


def _refuse_what_is_no_file(path: str) -> None:
    name = spelled(path)
    if Path(path).is_dir():
        raise InputError(f"{name} is a folder; `mqreplay nightly {name} --warehouse DIR` takes a recording as a whole")
    if not Path(path).exists():
        beside = f"; {name}{BAK} is there: give that" if Path(path + BAK).is_file() else ""
        raise InputError(f"{name} does not exist{beside}")
    if not Path(path).is_file():
        raise InputError(f"{name} is neither a file nor a folder")
