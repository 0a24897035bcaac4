"""What of a recording is new, by digest and place."""

from __future__ import annotations

from mqreplay.ingest.manifest import KnownFile, plan
from mqreplay.ingest.recording import RecordedFile, classify

OLD, NEW = "a" * 64, "b" * 64


def file(path: str, recording: str = "/night") -> RecordedFile:
    kind, source, ts = classify(path)
    return RecordedFile(recording, path, kind, 10, source, ts)


def known(path: str, sha256: str, status: str = "read", duplicates: int = 0, recording: str = "/night") -> KnownFile:
    return KnownFile(recording, path, classify(path)[0], sha256, status, duplicates)


def test_what_was_read_is_not_read_again():
    assert plan([(file("pull_log.jsonl"), OLD)], [known("pull_log.jsonl", OLD)]).nothing_new


def test_other_bytes_in_its_place_replace_what_it_gave():
    [new] = plan([(file("pull_log.jsonl"), NEW)], [known("pull_log.jsonl", OLD)]).new
    assert new.replaces == OLD[:32]


def test_a_copy_elsewhere_gives_nothing():
    made = plan([(file("pull_log.jsonl", "/copy"), OLD)], [known("pull_log.jsonl", OLD)])
    assert not made.new
    assert len(made.duplicates) == 1


def test_two_copies_in_one_recording_are_one():
    made = plan([(file("pull_log.1.jsonl"), OLD), (file("pull_log.2.jsonl"), OLD)], [])
    assert (len(made.new), len(made.duplicates)) == (1, 1)


def test_the_same_bytes_at_another_time_are_another_snapshot():
    paths = [f"snapshots/b-0/{ts}/consumerOffset.json" for ts in (1795228794427, 1795228799427)]
    assert len(plan([(file(path), OLD) for path in paths], []).new) == 2


def test_a_replaced_file_brings_back_its_copies():
    before = [known("pull_log.1.jsonl", OLD), known("pull_log.2.jsonl", OLD, "duplicate")]
    made = plan([(file("pull_log.1.jsonl"), NEW), (file("pull_log.2.jsonl"), OLD)], before)
    assert {n.file.path for n in made.new} == {"pull_log.1.jsonl", "pull_log.2.jsonl"}
    partly = [known("pull_log.1.jsonl", OLD), known("pull_log.2.jsonl", NEW[::-1] + "", "read", duplicates=3)]
    made = plan([(file("pull_log.1.jsonl"), "c" * 64), (file("pull_log.2.jsonl"), NEW[::-1])], partly)
    assert {n.file.path for n in made.new} == {"pull_log.1.jsonl", "pull_log.2.jsonl"}


def test_what_is_not_read_is_entered_all_the_same():
    made = plan([(file("logs/broker/broker.log"), OLD), (file("notes.txt"), NEW)], [])
    assert len(made.not_read) == 2


def test_a_file_that_cannot_be_read_is_told_of_once_and_changes_nothing_that_was_read():
    made = plan([(file("pull_log.jsonl"), ""), (file("notes.txt"), "")], [])
    assert ([n.file.path for n in made.unreadable], [n.file.path for n in made.not_read]) == (
        ["pull_log.jsonl"],
        ["notes.txt"],
    )
    assert plan([(file("pull_log.jsonl"), "")], [known("pull_log.jsonl", "", "refused")]).nothing_new
    for status in ("read", "duplicate", "superseded", "refused", "late"):
        assert plan([(file("pull_log.jsonl"), "")], [known("pull_log.jsonl", OLD, status)]).nothing_new
    [new] = plan([(file("pull_log.jsonl"), NEW)], [known("pull_log.jsonl", "", "refused")]).new
    assert new.replaces is None
