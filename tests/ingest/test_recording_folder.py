"""Entries of a recording's folder: names, links, and unreadable folders."""

from __future__ import annotations

import os
import socket
from collections import Counter
from pathlib import Path

import pytest

from mqreplay.decode.recording.files import classify
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.lines import file_sha256
from mqreplay.ingest.listing import find_recordings
from mqreplay.words.errors import InputError

MOMENT = "1795228794427"


def put(path: Path, text: str = "{}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def recording(tmp_path):
    put(tmp_path / "recording" / "pull_log.jsonl")
    return tmp_path / "recording"


def kinds(recording: Path, follow_links: bool = False) -> dict[str, str]:
    (files,) = find_recordings([str(recording)], follow_links).values()
    return {file.path: file.kind for file, _ in files}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"snapshots/broker-a-0/{MOMENT}/consumerOffset.json", "consumer_offset"),
        (f"snapshots/broker-²/{MOMENT}/consumerOffset.json", "no_source"),
        (f"snapshots/broker-٣/{MOMENT}/topics.json", "no_source"),
        (f"snapshots/broker-0\n/{MOMENT}/topics.json", "no_source"),
        (f"snapshots/broker-99999999999999999999/{MOMENT}/consumerOffset.json", "no_source"),
        (f"snapshots/broker/{MOMENT}/consumerOffset.json", "no_source"),
        (f"snapshots/-0/{MOMENT}/consumerOffset.json", "no_source"),
        (f"snapshots/client-10.0.0.1@7/{MOMENT}/consumerOffset.json", "no_source"),
        (f"snapshots/client-10.0.0.1@7/{MOMENT}/g.offsets.json", "client_offsets"),
        (f"snapshots/somebody/{MOMENT}/g.offsets.json", "no_source"),
        (f"snapshots/broker-a-0/{MOMENT}\n/consumerOffset.json", "other"),
        ("snapshots/broker-a-0/١٧٩٥٢٢٨٧٩٤٤٢٧/consumerOffset.json", "other"),
        ("pull_log.٢.jsonl", "other"),
        ("pull_log.jsonl\n", "other"),
        ("snapshots/broker-a-0/000000000000/consumerOffset.json", "consumer_offset"),
        (f"snapshots/broker-a-0/0{MOMENT}/consumerOffset.json", "bad_time"),
        ("snapshots/broker-a-0/20261121073000/consumerOffset.json", "bad_time"),
        ("SHA256SUMS", "checksums"),
        ("logs/SHA256SUMS", "log"),
    ],
)
def test_a_name_is_what_it_says_to_the_letter(path: str, kind: str) -> None:
    assert classify(path)[0] == kind


def test_a_name_that_is_not_utf8_is_told_of_and_nothing_else_is_lost(recording):
    strange = os.fsencode(recording) + b"/notes-\xff.jsonl"
    with open(strange, "wb") as file:
        file.write(b"x")
    assert kinds(recording) == {"pull_log.jsonl": "pull_log", "notes-\\xff.jsonl": "bad_name"}


def test_a_recording_whose_own_name_is_not_utf8_is_refused_in_words(tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xe9t\xe9")
    os.mkdir(folder)
    with pytest.raises(InputError, match=r"\\xe9t\\xe9: the name of its folder is not UTF-8; rename it"):
        find_recordings([folder])


def test_a_linked_folder_is_looked_into_if_links_may_lead_out(recording, tmp_path):
    put(tmp_path / "elsewhere" / "broker-a-0" / MOMENT / "consumerOffset.json")
    (recording / "snapshots").symlink_to(tmp_path / "elsewhere")
    inside = f"snapshots/broker-a-0/{MOMENT}/consumerOffset.json"
    assert kinds(recording, follow_links=True) == {"pull_log.jsonl": "pull_log", inside: "consumer_offset"}
    assert kinds(recording) == {"pull_log.jsonl": "pull_log", "snapshots": "link_outside"}


def test_the_recording_itself_may_be_a_link(recording, tmp_path):
    (tmp_path / "link").symlink_to(recording)
    assert kinds(tmp_path / "link") == {"pull_log.jsonl": "pull_log"}
    assert file_sha256(f"{tmp_path}/link/pull_log.jsonl", f"{tmp_path}/link")


def test_a_link_leads_nowhere_twice(recording, tmp_path):
    outside = tmp_path / "elsewhere"
    put(recording / "snapshots" / "broker-a-0" / MOMENT / "consumerOffset.json")
    put(outside / "b" / "notes.txt")
    (recording / "snapshots" / "broker-a-0" / "latest").symlink_to(recording / "snapshots" / "broker-a-0" / MOMENT)
    (recording / "self").symlink_to(recording)
    (recording / "above").symlink_to(tmp_path)
    (recording / "first").symlink_to(outside)
    (recording / "second").symlink_to(outside)
    (outside / "a").symlink_to(outside / "b")
    (outside / "back").symlink_to(recording)
    (outside / "round").symlink_to(outside)
    names = Counter(path.rsplit("/", 1)[-1] for path in kinds(recording, follow_links=True))
    assert names == {"pull_log.jsonl": 1, "consumerOffset.json": 1, "notes.txt": 1}
    left = {path for path, kind in kinds(recording).items() if kind == "link_outside"}
    assert left == {"above", "first", "second"}


def test_what_is_no_file_has_a_kind_that_says_so(recording, tmp_path, monkeypatch):
    put(tmp_path / "secret")
    os.mkfifo(recording / "routes.jsonl")
    (recording / "heartbeats.jsonl").symlink_to(recording / "gone")
    (recording / "round.jsonl").symlink_to(recording / "round.jsonl")
    (recording / "assignments.jsonl").symlink_to("/dev/zero")
    (recording / "lock_requests.jsonl").symlink_to(tmp_path / "secret")
    (recording / "consume_log.jsonl").symlink_to(recording / "pull_log.jsonl")
    (recording / "rebalance_log.jsonl.gz" / "deeper").mkdir(parents=True)
    (recording / "snapshots" / "broker-a-0" / MOMENT / "topics.json").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listening:
        # The address of a socket holds 107 bytes: too few for the path of a temporary folder.
        monkeypatch.chdir(recording)
        listening.bind("produce_log.jsonl")
        assert kinds(recording) == {
            "pull_log.jsonl": "pull_log",
            "consume_log.jsonl": "consume_log",
            "routes.jsonl": "special",
            "produce_log.jsonl": "special",
            "heartbeats.jsonl": "broken_link",
            "round.jsonl": "broken_link",
            "assignments.jsonl": "link_outside",
            "lock_requests.jsonl": "link_outside",
            "rebalance_log.jsonl.gz": "misnamed_folder",
            f"snapshots/broker-a-0/{MOMENT}/topics.json": "misnamed_folder",
        }
        assert kinds(recording, follow_links=True)["assignments.jsonl"] == "special"


def test_a_folder_that_cannot_be_looked_into_is_told_of(recording, monkeypatch):
    put(recording / "snapshots" / "broker-a-0" / MOMENT / "consumerOffset.json")
    closed, scandir = str(recording / "snapshots"), os.scandir

    def refuse(folder):
        if str(folder) == closed:
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert kinds(recording) == {"pull_log.jsonl": "pull_log", "snapshots": "folder"}


def test_a_file_that_cannot_be_read_has_its_trouble_and_is_asked_again(recording, tmp_path):
    put(recording / "routes.jsonl")
    troubled = True

    def digest(path: str, root: str | None) -> str:
        if troubled and path.endswith("routes.jsonl"):
            raise PermissionError(13, "Permission denied", path)
        return file_sha256(path, root)

    def asked():
        found = KnownDigests(str(tmp_path / "w"), digest=digest).of_recordings(find_recordings([str(recording)]))
        return {file.path: (sha256, file.trouble) for file, sha256 in found[str(recording)]}

    sha256 = file_sha256(str(recording / "routes.jsonl"))
    assert asked() == {"pull_log.jsonl": (sha256, None), "routes.jsonl": ("", "Permission denied")}
    troubled = False
    assert asked() == {"pull_log.jsonl": (sha256, None), "routes.jsonl": (sha256, None)}


def test_a_folder_that_is_no_recording_names_the_command_that_makes_one(tmp_path):
    put(tmp_path / "config" / "consumerOffset.2026-11-21.json")
    put(tmp_path / "rocketmq_client.log")
    with pytest.raises(InputError) as caught:
        find_recordings([str(tmp_path)])
    assert str(caught.value) == (
        f"{tmp_path} is not a recording: none of its 2 files is a part of one. "
        f"Make a recording from it: mqreplay import {tmp_path} --out RECORDING"
    )


def test_a_folder_of_recordings_names_those_inside(tmp_path):
    put(tmp_path / "README.md")
    put(tmp_path / "my night" / "pull_log.jsonl")
    put(tmp_path / "orders" / "2026-11-21" / "snapshots" / "b-0" / "1795228794427" / "consumerOffset.json")
    with pytest.raises(InputError) as caught:
        find_recordings([str(tmp_path)])
    assert str(caught.value) == (
        f"{tmp_path} is not a recording: it has 2 recordings inside; "
        f"give '{tmp_path}/my night' {tmp_path}/orders/2026-11-21"
    )


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), "To make one: mqreplay record NAMESRV --out RECORDING, or from files: mqreplay import FILES"),
        (("my notes.txt",), "its only file is not a part of one. Make a recording from it: mqreplay import '"),
    ],
)
def test_of_few_files_it_says_so(tmp_path, names, words):
    folder = tmp_path / "my files"
    folder.mkdir()
    for name in names:
        put(folder / name)
    with pytest.raises(InputError) as caught:
        find_recordings([str(folder)])
    assert words in str(caught.value)
