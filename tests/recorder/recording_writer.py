"""A process that records without end: `python recording_writer.py FOLDER`. It prints the numbers of
polls, first and last, once they are flushed.

It goes on where the recording in the folder ends. A poll is a minute of the recording, so files rotate all the time.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path

from mqreplay.recorder.record_files import RecordFiles
from mqreplay.recorder.recording_folder import hourly_files

START = 1_795_467_600_000
MINUTE = 60_000
STEMS = ("broker_runtime", "routes")


def table_at(number: int) -> dict[str, dict[int, int]]:
    """The offset table of a poll: queues come and go."""
    return {f"orders@g{n}": {queue: number // (queue + 1) for queue in range(number % 7)} for n in range(number % 5)}


def last_numbers(folder: Path, stem: str) -> list[int]:
    """The numbers in the two newest files of a kind."""
    paths = hourly_files(folder).get(stem, [])[-2:]
    return [json.loads(line)["number"] for path in paths for line in gzip.open(path)]


def record_without_end(folder: Path) -> None:
    chance = random.Random()
    with RecordFiles(folder) as files:
        number = 1 + max((number for stem in STEMS for number in last_numbers(folder, stem)), default=-1)
        while True:
            first = number
            for _ in range(chance.randrange(1, 4)):
                ts = START + number * MINUTE
                for stem in STEMS:
                    body = chance.randbytes(chance.choice((10, 1000, 200_000))).hex()
                    files.append(stem, {"ts": ts, "number": number, "body": body})
                files.append_offsets("broker-a", 0, ts, table_at(number))
                files.write_snapshot("broker-a", 0, ts, "topics.json", str(number).encode() * 5000)
                number += 1
            files.flush()
            print(first, number - 1, flush=True)


if __name__ == "__main__":
    record_without_end(Path(sys.argv[1]))
