"""A broker that rewrites a file of its store, as 4.9 and 5.x do, in small steps: `store_broker.py CONFIG HOW SECONDS`.

It prints the number of the last content.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

FILE = "consumerOffset.json"


def content(number: int) -> bytes:
    """A file whose offsets all have one number, of some hundred queues."""
    table = {f"orders-{n}@pay": {str(queue): number for queue in range(16)} for n in range(40)}
    return json.dumps({"offsetTable": table}, indent="\t").encode()


def write_slowly(path: Path, data: bytes, chance: random.Random) -> None:
    """Write in place, in pieces."""
    with path.open("wb", buffering=0) as file:
        for begin in range(0, len(data), 8192):
            file.write(data[begin : begin + 8192])
            time.sleep(chance.choice((0, 0, 0.0005)))


def rewrite(config: Path, how: str, number: int, chance: random.Random) -> None:
    path, bak, temporary = config / FILE, config / f"{FILE}.bak", config / f"{FILE}.tmp"
    if how == "4.9":
        write_slowly(temporary, content(number), chance)
        if path.exists():
            write_slowly(bak, path.read_bytes(), chance)
        path.unlink(missing_ok=True)
        time.sleep(chance.choice((0, 0.0005)))
        temporary.rename(path)
    else:
        if path.exists():
            path.rename(bak)
        time.sleep(chance.choice((0, 0.0005)))
        write_slowly(path, content(number), chance)


def rewrite_for(config: Path, how: str, seconds: float) -> int:
    chance, end, number = random.Random(1), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number += 1
        rewrite(config, how, number, chance)
        time.sleep(chance.uniform(0, 0.04))
    return number


if __name__ == "__main__":
    print(rewrite_for(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
