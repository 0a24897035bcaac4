"""The plan over all files equals the plan of `plan`, in any ranges of paths."""

from __future__ import annotations

import dataclasses
import itertools
import random

import polars as pl
import pytest

from ingest.planned_files import file, known
from mqreplay.decode.recording.files import SNAPSHOT_FILES, classify
from mqreplay.ingest import planning, recorded_files
from mqreplay.ingest.manifest import LEDGER, plan
from mqreplay.ingest.planning import moved_recordings, plan_files
from mqreplay.ingest.recorded_files import FILE_SCHEMA, RecordedFiles, in_ranges
from mqreplay.ingest.recording import RecordedFile

A, B, C = "a" * 64, "b" * 64, "c" * 64
SNAPSHOT = "snapshots/b-0/1795228794427/consumerOffset.json"
PATHS = [
    *(
        f"snapshots/b-{b}/179522879442{n}/{name}.json"
        for b in (0, 1)
        for n in range(4)
        for name in ("topics", "delayOffset")
    ),
    *(f"snapshots/b-0/179522879442{n}/consumerOffset.json{bak}" for n in range(4) for bak in ("", ".bak")),
    "pull_log.1.jsonl",
    "pull_log.2.jsonl",
    "brokers.json",
    "notes.txt",
    "logs/broker.log",
]
STATUSES = ("read", "read", "read", "duplicate", "refused", "superseded", "late", "not_read")


def ledger(rows) -> pl.DataFrame:
    return pl.DataFrame([tuple(getattr(k, name) for name in LEDGER) for k in rows], LEDGER, orient="row")


def places(files):
    return sorted((n.file.recording, n.file.path, n.sha256, n.file.bytes) for n in files)


@pytest.mark.parametrize("seed", range(40))
def test_ranges_of_paths_give_the_plan_of_all_files(seed, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(planning, "BATCH", rng.randrange(1, 5))
    recordings = ["/night", "/other"]
    found, before = [], []
    for recording in recordings:
        for path in PATHS:
            sha256, old = rng.choice([A, A, A, B, ""]), rng.choice([A, A, A, C])
            status = "not_read" if classify(path)[0] in ("log", "other") else rng.choice(STATUSES)
            if rng.random() < 0.8:
                listed = dataclasses.replace(file(path, recording), bytes=rng.choice([10, 10, 11]))
                found.append((listed, sha256))
            if rng.random() < 0.8:
                before.append(known(path, old, status, rng.choice([0, 1]), recording))
    if rng.random() < 0.3:
        found.append((RecordedFile("/night", "snapshots/b-1", "folder", 0), ""))
    given, forget = recordings[: rng.randrange(1, 3)], rng.random() < 0.7
    closed = [f.full_path for f, _ in found if f.kind == "folder"]
    whole = plan(found, before, given, forget=forget, closed=closed)
    work = plan_files(RecordedFiles.of(found), ledger(before), given, forget=forget)
    assert places(work.new) == places(n for n in whole.new if n.file.kind not in SNAPSHOT_FILES)
    for mine, theirs in (
        (work.snapshots, [n for n in whole.new if n.file.kind in SNAPSHOT_FILES]),
        (work.duplicates, whole.duplicates),
        (work.not_read, whole.not_read),
    ):
        assert sorted((f.recording, f.path, sha256, f.bytes) for f, sha256 in mine) == places(theirs)
    assert places(work.unreadable) == places(whole.unreadable)
    assert sorted((n.place, k.place) for n, k in work.renamed) == sorted((n.place, k.place) for n, k in whole.renamed)
    assert {k.place for k in work.gone_places} == {k.place for k in whole.gone_places}
    assert (work.gone, work.gone_snapshots) == (whole.gone, whole.gone_snapshots)


def test_unchanged_snapshots_never_become_objects(monkeypatch):
    files = [(file(f"snapshots/b-0/{1795228794427 + n}/consumerOffset.json"), A) for n in range(100)]
    columns, before = RecordedFiles.of(files), ledger(known(f.path, A) for f, _ in files)
    monkeypatch.setattr(recorded_files, "_file", None)
    assert plan_files(columns, before, ["/night"]).nothing_new


def test_files_are_the_same_as_columns():
    files = [(file(path), A) for path in PATHS]
    files += [
        (dataclasses.replace(file("x"), trouble="no", trouble_code="checksum", version="v", follow_links=True), "")
    ]
    assert list(RecordedFiles.of(files)) == files
    assert RecordedFiles.of(files).rows.schema == FILE_SCHEMA


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_ranges_keep_a_path_together(most):
    one = pl.DataFrame({"path": ["a", "a", "b", "c", "c", "c", "e"]})
    other = pl.DataFrame({"path": ["b", "c", "d", "f"]})
    parts = list(in_ranges(one, other, most=most))
    assert [pl.concat(column)["path"].to_list() for column in zip(*parts, strict=True)] == [
        one["path"].to_list(),
        other["path"].to_list(),
    ]
    for before, after in itertools.pairwise(parts):
        assert not {*before[0]["path"], *before[1]["path"]} & {*after[0]["path"], *after[1]["path"]}


def test_a_recording_is_moved_if_half_of_its_files_lie_unchanged_in_another_folder():
    before = [known("pull_log.jsonl", A, recording="/old"), known(SNAPSHOT, B, recording="/old")]
    found = [(file("pull_log.jsonl", "/new"), A), (file(SNAPSHOT, "/new"), C)]
    assert moved_recordings(RecordedFiles.of(found), ledger(before), ["/new"], ["/old"]) == {"/old": "/new"}
    assert moved_recordings(RecordedFiles.of(found), ledger(before), ["/new"], []) == {}, (
        "the old folder is still there: the new one is a copy"
    )
    assert moved_recordings(RecordedFiles.of(found[1:]), ledger(before), ["/new"], ["/old"]) == {}


def test_nights_that_share_their_brokers_json_alone_are_two():
    before = [known("brokers.json", A, recording="/old"), known("pull_log.jsonl", B, recording="/old")]
    found = [(file("brokers.json", "/new"), A), (file("pull_log.jsonl", "/new"), C)]
    assert moved_recordings(RecordedFiles.of(found), ledger(before), ["/new"], ["/old"]) == {}
