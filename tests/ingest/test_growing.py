"""Growing files: reading them while they grow gives the same tables as one run at the end."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from ingest.polled_recordings import read
from mqreplay.decode.kinds import KINDS
from tests_shared import table_at

DATA = Path(__file__).parents[1] / "decode" / "data"
STEMS = (
    "assignments",
    "broker_runtime",
    "cluster_info",
    "consume_stats",
    "consumer_connections",
    "consumer_lists",
    "ha_status",
    "proxy_connections",
    "recorder_events",
    "routes",
    "topic_stats",
)
MINUTE = 60_000


def members(stem: str) -> list[bytes]:
    """Gzip members of one, two or three lines, as a recorder appends them at each flush."""
    real = [json.loads(line) for line in (DATA / f"{stem}.jsonl").read_bytes().splitlines()]
    lines = [json.dumps(line | {"ts": line["ts"] + i * MINUTE}).encode() + b"\n" for i in range(4) for line in real]
    cuts = [0]
    while cuts[-1] < len(lines):
        cuts.append(cuts[-1] + 1 + len(cuts) % 3)
    return [gzip.compress(b"".join(lines[a:b]), mtime=0) for a, b in pairwise(cuts)]


def everything(warehouse: Path) -> dict[str, list[str]]:
    names = ["bronze.source_file", "bronze.quarantine", *(KINDS[stem].table for stem in STEMS)]
    return {name: sorted(map(str, table_at(warehouse, name).to_dicts())) for name in names}


def grow(recording: Path, share: float) -> None:
    """Write the first part of each kind's members, dealt to two hourly files."""
    recording.mkdir(exist_ok=True)
    for stem in STEMS:
        made = members(stem)
        made, half = made[: max(1, int(len(made) * share))], len(made) // 2
        for hour, some in (("2026112321", made[:half]), ("2026112322", made[half:])):
            if some:
                (recording / f"{stem}.{hour}.jsonl.gz").write_bytes(b"".join(some))


@pytest.mark.parametrize("shares", [(0.2, 0.5, 0.8), (0.4,)])
def test_a_recording_that_grows_gives_the_tables_of_one_run(tmp_path: Path, shares: tuple[float, ...]) -> None:
    for share in (*shares, 1.0):
        grow(tmp_path / "r", share)
        read(tmp_path / "grown", tmp_path / "r")
    read(tmp_path / "once", tmp_path / "r")
    assert everything(tmp_path / "grown") == everything(tmp_path / "once")
    for stem in STEMS:
        assert table_at(tmp_path / "once", KINDS[stem].table).height > 0


def test_what_was_read_while_a_member_was_written_is_read_again(tmp_path: Path) -> None:
    made = members("routes")
    (tmp_path / "r").mkdir()
    path = tmp_path / "r" / "routes.2026112321.jsonl.gz"
    path.write_bytes(b"".join(made)[:-20])
    read(tmp_path / "w", tmp_path / "r")
    rows = table_at(tmp_path / "w", "silver.route").height
    assert table_at(tmp_path / "w", "bronze.quarantine")["code"].to_list() == ["torn_gzip"]
    path.write_bytes(b"".join(made))
    read(tmp_path / "w", tmp_path / "r")
    assert table_at(tmp_path / "w", "silver.route").height > rows
    assert table_at(tmp_path / "w", "bronze.quarantine").is_empty()
