"""Consumer offsets that were polled: each line is read as a whole consumerOffset.json copied at its time."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.polled_recordings import (
    NAME,
    START,
    change,
    copied,
    everything,
    files,
    members,
    moves,
    polled,
    read,
    refused,
    snapshots,
    whole,
)
from mqreplay.decode.polled_offsets import decode_polled_offsets
from mqreplay.ingest.polled import SUPERSEDED
from mqreplay.settings import IngestSettings
from mqreplay.words.errors import DecodeError
from tests_shared import table_at

S = 1_000
KEY = f"{START}/{NAME}"
LINES = [
    whole(START, {"T@g": {"0": 5, "1": 7}, "U@g": {"0": 1}}),
    change(START + 5 * S, {"T@g": {"0": 6}}),
    change(START + 10 * S),
    change(START + 15 * S, {"T@g": {"2": 9}}, {"U@g": [0]}),
]
MOVES = [
    ("T", "g", 0, None, 5, None, 0),
    ("T", "g", 1, None, 7, None, 0),
    ("U", "g", 0, None, 1, None, 0),
    ("T", "g", 0, 5, 6, 0, 5 * S),
    ("T", "g", 2, None, 9, 10 * S, 15 * S),
    ("U", "g", 0, 1, None, 10 * S, 15 * S),
]


def test_each_line_is_a_snapshot(tmp_path: Path) -> None:
    polled(tmp_path / "r", LINES)
    read(tmp_path / "w", tmp_path / "r")
    assert moves(tmp_path / "w") == MOVES
    name = "consumerOffset.json"
    assert snapshots(tmp_path / "w") == [
        (0, name, 3, 3),
        (5 * S, name, 3, 1),
        (10 * S, name, 3, 0),
        (15 * S, name, 3, 2),
    ]
    assert files(tmp_path / "w") == {KEY: ("read", 6, 6, 0, 0)}
    row = table_at(tmp_path / "w", "bronze.source_file").row(0, named=True)
    assert row["kind"] == "consumer_offset"
    assert (row["last_ts"] - row["first_ts"]).total_seconds() == 15
    digests = table_at(tmp_path / "w", "silver.offset_change")["source_digest"].unique().to_list()
    assert digests == [row["sha256"][:32]]


def test_a_file_that_grows_gives_the_tables_of_one_run(tmp_path: Path) -> None:
    later = [change(START + (20 + 5 * i) * S, {"T@g": {"0": 100 + i}}) for i in range(4)]
    path = polled(tmp_path / "r", LINES[:2])
    for number in range(2, len(LINES + later) + 1, 3):
        path.write_bytes(members((LINES + later)[:number]))
        read(tmp_path / "grown", tmp_path / "r")
    path.write_bytes(members(LINES + later))
    read(tmp_path / "grown", tmp_path / "r")
    read(tmp_path / "once", tmp_path / "r")
    assert everything(tmp_path / "grown") == everything(tmp_path / "once")
    assert moves(tmp_path / "once")[: len(MOVES)] == MOVES


def test_a_new_hour_and_a_restart_begin_with_a_whole_table(tmp_path: Path) -> None:
    hour = START + 300 * S
    polled(tmp_path / "r", [*LINES, whole(START + 100 * S, {"T@g": {"0": 6, "1": 8, "2": 9}})])
    polled(tmp_path / "r", [whole(hour, {"T@g": {"0": 6, "1": 8, "2": 9}, "V@g": {"0": 2}})], hour)
    read(tmp_path / "w", tmp_path / "r")
    assert moves(tmp_path / "w") == [
        *MOVES,
        ("T", "g", 1, 7, 8, 15 * S, 100 * S),
        ("V", "g", 0, None, 2, 100 * S, 300 * S),
    ]


def test_hours_that_come_late_or_go_leave_the_tables_of_what_is_there(tmp_path: Path) -> None:
    hours = [START + 3600 * S * i for i in range(4)]
    lines = {
        h: [whole(h, {"T@g": {"0": i * 10}}), change(h + 60 * S, {"T@g": {"0": i * 10 + 5}})]
        for i, h in enumerate(hours)
    }
    for h in hours:
        polled(tmp_path / "all", lines[h], h)
        if h != hours[1]:
            polled(tmp_path / "r", lines[h], h)
    read(tmp_path / "w", tmp_path / "r")
    gap = everything(tmp_path / "w")
    late = polled(tmp_path / "r", lines[hours[1]], hours[1])
    read(tmp_path / "w", tmp_path / "r")
    read(tmp_path / "once", tmp_path / "all")
    assert moves(tmp_path / "w") == moves(tmp_path / "once")
    assert snapshots(tmp_path / "w") == snapshots(tmp_path / "once")
    late.unlink()
    read(tmp_path / "w", tmp_path / "r")
    assert everything(tmp_path / "w") == gap


@pytest.mark.parametrize("bad", [b'{"ts":', b"no json", b'{"ts":17}', LINES[1].replace(b"6", b'"6"')])
def test_after_a_bad_line_the_next_whole_table_is_believed(tmp_path: Path, bad: bytes) -> None:
    again = whole(START + 60 * S, {"T@g": {"0": 8}})
    polled(tmp_path / "r", [LINES[0], bad, *LINES[2:], again])
    read(tmp_path / "w", tmp_path / "r", settings=IngestSettings(refused_share=1.0))
    assert moves(tmp_path / "w") == [
        *MOVES[:3],
        ("T", "g", 0, 5, 8, 0, 60 * S),
        ("T", "g", 1, 7, None, 0, 60 * S),
        ("U", "g", 0, 1, None, 0, 60 * S),
    ]
    (number, _, _), passed_over = refused(tmp_path / "w")
    assert number == 2
    assert passed_over[:2] == (3, "no_table")
    assert "lines 3 to 4 are changes to an unknown table" in passed_over[2]
    assert "the next complete table is in line 5" in passed_over[2]
    assert files(tmp_path / "w")[KEY][3] == 3


def test_a_file_that_begins_with_a_change_says_that_no_whole_table_follows(tmp_path: Path) -> None:
    polled(tmp_path / "r", [LINES[1]])
    copied(tmp_path / "r", START + 90 * S, {"T@g": {"0": 1}})
    read(tmp_path / "w", tmp_path / "r", settings=IngestSettings(refused_share=1.0))
    ((number, code, reason),) = refused(tmp_path / "w")
    assert (number, code) == (1, "no_table")
    assert "line 1 is a change" in reason
    assert "no complete table follows" in reason
    assert files(tmp_path / "w")[KEY][0] == "refused"


def test_a_line_that_goes_back_in_time_is_refused_and_the_changes_to_it(tmp_path: Path) -> None:
    back = [change(START + 4 * S, {"T@g": {"0": 1}}), change(START + 30 * S, {"T@g": {"0": 2}})]
    polled(tmp_path / "r", [*LINES, *back])
    read(tmp_path / "w", tmp_path / "r", settings=IngestSettings(refused_share=1.0))
    assert moves(tmp_path / "w") == MOVES
    assert [(number, code) for number, code, _ in refused(tmp_path / "w")] == [(5, "bad_time"), (6, "no_table")]


def test_what_lies_before_the_time_of_the_folder_is_refused(tmp_path: Path) -> None:
    polled(tmp_path / "r", [whole(START - 1, {"T@g": {"0": 1}}), *LINES])
    read(tmp_path / "w", tmp_path / "r", settings=IngestSettings(refused_share=1.0))
    assert moves(tmp_path / "w") == MOVES
    assert [code for _, code, _ in refused(tmp_path / "w")] == ["bad_time"]


def test_a_torn_tail_keeps_the_lines_before_it(tmp_path: Path) -> None:
    path = polled(tmp_path / "r", LINES)
    path.write_bytes(path.read_bytes() + gzip.compress(change(START + 20 * S) + b"\n")[:-12])
    read(tmp_path / "w", tmp_path / "r", settings=IngestSettings(refused_share=1.0))
    assert moves(tmp_path / "w") == MOVES
    assert [code for _, code, _ in refused(tmp_path / "w")] == ["torn_gzip"]


def test_lines_twice_are_one_snapshot(tmp_path: Path) -> None:
    """Two copies of a recording, the one made later: the first lines of both are the same."""
    polled(tmp_path / "r1", LINES[:3])
    polled(tmp_path / "r2", LINES)
    read(tmp_path / "w", tmp_path / "r1", tmp_path / "r2")
    assert moves(tmp_path / "w") == MOVES
    assert len(snapshots(tmp_path / "w")) == len(LINES)
    polled(tmp_path / "one", [line for line in LINES for _ in range(2)])
    read(tmp_path / "twice", tmp_path / "one")
    assert moves(tmp_path / "twice") == MOVES


def test_two_recorders_together_are_one_row_of_polls(tmp_path: Path) -> None:
    first, second = START, START + 2 * S
    polled(tmp_path / "r", [whole(first, {"T@g": {"0": 1}}), change(first + 5 * S, {"T@g": {"0": 3}})], first)
    polled(tmp_path / "r", [whole(second, {"T@g": {"0": 2}}), change(second + 5 * S, {"T@g": {"0": 4}})], second)
    read(tmp_path / "w", tmp_path / "r")
    assert [row[3:] for row in moves(tmp_path / "w")] == [
        (None, 1, None, 0),
        (1, 2, 0, 2 * S),
        (2, 3, 2 * S, 5 * S),
        (3, 4, 5 * S, 7 * S),
    ]


def test_copies_near_a_poll_are_superseded_and_others_are_read(tmp_path: Path) -> None:
    far = START + 2_000 * S
    polled(tmp_path / "r", [*LINES, whole(far, {"T@g": {"0": 20}})])
    for ts in (START - 60 * S, START + 7 * S, START + 75 * S, far - 60 * S, far + 60 * S):
        copied(tmp_path / "r", ts, {"T@g": {"0": 4}})
    (tmp_path / "r" / "snapshots" / "b-0" / str(START + 7 * S) / "consumerOffset.json").write_bytes(b"torn")
    for ts in (START - 61 * S, START + 1_000 * S):
        copied(tmp_path / "r", ts, {"T@g": {"0": 4 if ts < START else 15}})
    copied(tmp_path / "r", START + 1_000 * S, {"T@g": {"0": 14}}, "consumerOffset.json.bak")
    read(tmp_path / "w", tmp_path / "r")
    of_queue = [row[3:] for row in moves(tmp_path / "w") if row[:3] == ("T", "g", 0)]
    assert [new for _, new, _, _ in of_queue] == [4, 5, 6, 15, 20]
    status = {path: row[0] for path, row in files(tmp_path / "w").items() if path != KEY}
    read_at = [int(path.split("/")[0]) - START for path, what in status.items() if what == "read"]
    assert sorted(read_at) == [-61 * S, 1_000 * S]
    assert list(status.values()).count("superseded") == 6
    reasons = table_at(tmp_path / "w", "bronze.source_file")["reason"].to_list()
    assert reasons.count(SUPERSEDED) == 5
    assert not refused(tmp_path / "w")


@pytest.mark.first_case
@pytest.mark.parametrize("at", [-90, -30, 7, 70, 400, 800, 2_030])
def test_a_copy_that_comes_late_is_as_if_it_had_come_in_time(tmp_path: Path, at: int) -> None:
    far = START + 2_000 * S
    for folder in ("r", "all"):
        polled(tmp_path / folder, LINES)
        polled(tmp_path / folder, [whole(far, {"T@g": {"0": 20}})], far)
        copied(tmp_path / folder, START + 500 * S, {"T@g": {"0": 10}})
        copied(tmp_path / folder, START - 40 * S, {"T@g": {"0": 3}})
    copied(tmp_path / "all", START + at * S, {"T@g": {"0": 12}})
    read(tmp_path / "w", tmp_path / "r")
    before = everything(tmp_path / "w")
    late = copied(tmp_path / "r", START + at * S, {"T@g": {"0": 12}})
    read(tmp_path / "w", tmp_path / "r")
    read(tmp_path / "once", tmp_path / "r")
    assert everything(tmp_path / "w") == everything(tmp_path / "once")
    late.unlink()
    read(tmp_path / "w", tmp_path / "r")
    assert everything(tmp_path / "w") == before


def test_polls_that_come_late_supersede_copies_that_were_read(tmp_path: Path) -> None:
    for ts in (-100, -50, 10, 200):
        copied(tmp_path / "r", START + ts * S, {"T@g": {"0": 100 + ts}})
    read(tmp_path / "w", tmp_path / "r")
    polled(tmp_path / "r", LINES)
    read(tmp_path / "w", tmp_path / "r")
    read(tmp_path / "once", tmp_path / "r")
    assert everything(tmp_path / "w") == everything(tmp_path / "once")
    status = {int(path.split("/")[0]) - START: row[0] for path, row in files(tmp_path / "w").items() if path != KEY}
    assert status == {-100 * S: "read", -50 * S: "superseded", 10 * S: "superseded", 200 * S: "read"}


def test_keys_that_name_nothing_are_reported_once(tmp_path: Path) -> None:
    table = {"T@g": {"0": 1}, "a@b@c": {"0": 1}, "news@readers@broadcast": {"0": 5}}
    polled(
        tmp_path / "r",
        [
            whole(START, table),
            change(START + 5 * S, {"a@b@c": {"0": 2}, "T@g": {"0": 2}}),
            change(START + 10 * S, None, {"a@b@c": [0]}),
            change(START + 15 * S, {"nothing": {"1": 2}}),
        ],
    )
    read(tmp_path / "w", tmp_path / "r", settings=IngestSettings(refused_share=1.0))
    assert [(row[0], row[4]) for row in moves(tmp_path / "w")] == [("T", 1), ("T", 2)]
    assert [row[2:] for row in snapshots(tmp_path / "w")] == [(2, 1), (2, 1), (1, 0), (2, 0)]
    assert [code for _, code, _ in refused(tmp_path / "w")] == ["orphan_key"] * 2


@given(st.integers(0, 3), st.data())
def test_any_damage_gives_only_our_error_or_a_table(number: int, data: st.DataObject) -> None:
    line = bytearray(LINES[number])
    for _ in range(data.draw(st.integers(1, 3))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        decode_polled_offsets(bytes(line))
