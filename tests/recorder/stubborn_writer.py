"""A process that records three polls and tries again while the disk is full: `python stubborn_writer.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from mqreplay.recorder.record_files import RecordFiles
from mqreplay.words.errors import RecordingFull

TS = 1_795_467_600_000
BODY = "".join(chr(33 + n * n % 89) for n in range(5000))
TRIES = 9  # more than the errors of any test


def record(folder: Path) -> None:
    files = RecordFiles(folder)
    for poll in range(3):
        for stem in ("broker_runtime", "routes"):
            files.append(stem, {"ts": TS + poll, "body": BODY})
        files.append_offsets("broker-a", 0, TS + poll, {"orders@pay": {0: poll, 1: 7}})
        _until_written(files.flush)
        _until_written(lambda poll=poll: files.write_snapshot("broker-a", 0, TS + poll, "topics.json", BODY.encode()))
    _until_written(files.close)


def _until_written(write) -> None:
    for _ in range(TRIES):
        try:
            return write()
        except RecordingFull as error:
            print(error)
    raise SystemExit("it is still full")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
