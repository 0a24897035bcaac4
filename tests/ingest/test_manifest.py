"""The plan of a run that makes the tables equal to the recordings."""

from __future__ import annotations

import dataclasses

from ingest.planned_files import file, known
from mqreplay.ingest.manifest import Plan, plan

A, B, C = "a" * 64, "b" * 64, "c" * 64
SNAPSHOT = "snapshots/b-0/1795228794427/consumerOffset.json"


def made(found, before=(), given=("/night",), **settings):
    return plan(found, before, given, **settings)


def is_empty(work):
    return work == Plan(seen=work.seen)


def paths(files):
    return [n.file.path for n in files]


def test_what_is_in_the_tables_is_not_read_again():
    assert is_empty(made([(file("pull_log.jsonl"), A)], [known("pull_log.jsonl", A)]))


def test_other_bytes_in_its_place_replace_its_rows():
    work = made([(file("pull_log.jsonl"), B)], [known("pull_log.jsonl", A)])
    assert (paths(work.new), work.gone) == (["pull_log.jsonl"], {"pull_log": {A[:32]}})
    work = made([(file(SNAPSHOT), B)], [known(SNAPSHOT, A)])
    assert (paths(work.new), [k.sha256 for k in work.gone_snapshots]) == ([SNAPSHOT], [A])


def test_a_changed_file_whose_new_content_is_known_loses_its_old_rows():
    before = [known("pull_log.1.jsonl", A), known("pull_log.2.jsonl", B)]
    work = made([(file("pull_log.1.jsonl"), B), (file("pull_log.2.jsonl"), B)], before)
    assert (work.new, work.gone) == ([], {"pull_log": {A[:32]}})
    assert paths(work.duplicates) == ["pull_log.2.jsonl"]
    assert [(new.file.path, old.path) for new, old in work.renamed] == [("pull_log.1.jsonl", "pull_log.2.jsonl")]


def test_a_removed_file_loses_its_rows_unless_settings_keep_them():
    before = [known("pull_log.1.jsonl", A), known("pull_log.2.jsonl", B), known(SNAPSHOT, C)]
    work = made([(file("pull_log.1.jsonl"), A)], before)
    assert (work.gone, [k.path for k in work.gone_snapshots]) == ({"pull_log": {B[:32]}}, [SNAPSHOT])
    assert {k.path for k in work.gone_places} == {"pull_log.2.jsonl", SNAPSHOT}
    assert is_empty(made([(file("pull_log.1.jsonl"), A)], before, forget=False))


def test_a_renamed_file_is_not_read_again():
    work = made([(file("pull_log.2.jsonl"), A)], [known("pull_log.1.jsonl", A)])
    assert (work.new, dict(work.gone), paths(new for new, _ in work.renamed)) == ([], {}, ["pull_log.2.jsonl"])
    assert [k.path for k in work.gone_places] == ["pull_log.1.jsonl"]


def test_files_under_a_folder_that_cannot_be_listed_keep_their_rows():
    before = [known(SNAPSHOT, C), known("pull_log.jsonl", A)]
    work = made([(file("pull_log.jsonl"), A)], before, closed=["/night/snapshots"])
    assert (work.gone_places, work.gone_snapshots) == ([], [])


def test_recordings_that_are_not_given_stay():
    assert made([(file("pull_log.jsonl"), A)], [known("pull_log.jsonl", A), known("x.jsonl", B, recording="/old")])
    before = [known("pull_log.jsonl", A, recording="/other")]
    work = made([(file("pull_log.jsonl"), A)], before)
    assert (work.new, [(n.file.recording, n.file.path) for n in work.duplicates]) == (
        [],
        [("/other", "pull_log.jsonl")],
    )


def test_the_first_place_stands_for_a_content_whichever_came_first():
    work = made([(file("pull_log.1.jsonl"), A), (file("pull_log.2.jsonl"), A)])
    assert (paths(work.new), paths(work.duplicates)) == (["pull_log.1.jsonl"], ["pull_log.2.jsonl"])
    late = made([(file("pull_log.1.jsonl"), A), (file("pull_log.2.jsonl"), A)], [known("pull_log.2.jsonl", A)])
    assert (paths(new for new, _ in late.renamed), paths(late.duplicates)) == (
        ["pull_log.1.jsonl"],
        ["pull_log.2.jsonl"],
    )


def test_a_copy_of_a_snapshot_in_another_recording_is_a_duplicate():
    work = made([(file(SNAPSHOT), A), (file(SNAPSHOT, "/copy"), A)], given=("/copy", "/night"))
    assert [n.file.recording for n in (*work.new, *work.duplicates)] == ["/copy", "/night"]


def test_the_same_bytes_at_another_time_are_another_snapshot():
    moments = [f"snapshots/b-0/{ts}/consumerOffset.json" for ts in (1795228794427, 1795228799427)]
    assert len(made([(file(path), A) for path in moments]).new) == 2


def test_lines_that_were_copies_of_what_goes_come_back():
    before = [known("pull_log.1.jsonl", A), known("pull_log.2.jsonl", B, duplicates=3)]
    work = made([(file("pull_log.1.jsonl"), C), (file("pull_log.2.jsonl"), B)], before)
    assert paths(work.new) == ["pull_log.1.jsonl", "pull_log.2.jsonl"]
    assert work.gone == {"pull_log": {A[:32], B[:32]}}


def test_lines_that_were_copies_come_back_from_a_file_that_is_renamed_meanwhile():
    before = [known("pull_log.1.jsonl", A), known("pull_log.2.jsonl", B, duplicates=3)]
    found = [(file("pull_log.1.jsonl"), C), (file("pull_log.3.jsonl"), B)]
    work = made(found, before, is_there=lambda file: file.path != "pull_log.2.jsonl")
    assert paths(work.new) == ["pull_log.1.jsonl", "pull_log.3.jsonl"]
    assert (work.gone, work.renamed) == ({"pull_log": {A[:32], B[:32]}}, [])


def test_a_file_without_a_digest_is_entered_again_when_it_grows():
    """As one that is large and not read."""
    before = [known("core", "", "not_read")]
    assert made([(file("core"), "")], before).not_read == []
    grown = dataclasses.replace(file("core"), bytes=11)
    assert paths(made([(grown, "")], before).not_read) == ["core"]


def test_what_is_not_read_is_entered_once():
    found = [(file("logs/broker/broker.log"), A), (file("notes.txt"), B)]
    assert len(made(found).not_read) == 2
    before = [known("logs/broker/broker.log", A, "not_read"), known("notes.txt", B, "not_read")]
    assert is_empty(made(found, before))


def test_a_file_that_cannot_be_read_is_entered_once_and_changes_nothing_that_was_read():
    work = made([(file("pull_log.jsonl"), ""), (file("notes.txt"), "")])
    assert (paths(work.unreadable), paths(work.not_read)) == (["pull_log.jsonl"], ["notes.txt"])
    for status in ("read", "duplicate", "superseded", "refused", "late"):
        assert is_empty(made([(file("pull_log.jsonl"), "")], [known("pull_log.jsonl", A, status)]))
    work = made([(file("pull_log.jsonl"), B)], [known("pull_log.jsonl", "", "refused")])
    assert (paths(work.new), dict(work.gone)) == (["pull_log.jsonl"], {})


def test_a_late_snapshot_is_tried_again():
    assert paths(made([(file(SNAPSHOT), A)], [known(SNAPSHOT, A, "late")]).new) == [SNAPSHOT]
