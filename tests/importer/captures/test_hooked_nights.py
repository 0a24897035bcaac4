"""Pulls of packets against those that the clients' hooks logged: each counts once, and each difference has a reason."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from importer.captures.hooked_nights import (
    FORGOTTEN,
    IN_FLIGHT,
    NIGHTS,
    UNEXPLAINED,
    UNNAMED,
    UNSENT,
    UNWRITTEN,
    HookedNight,
    Packet,
    Pull,
    key_of,
    unpacked,
    written,
)
from mqreplay.importer.captures.captured_records import Captures
from mqreplay.importer.import_command import import_evidence

PULLS = {"hooked-4.9.7": 1225, "hooked-5.3.3": 1491}
HOOKED = {"hooked-4.9.7": 1230, "hooked-5.3.3": 1505}
# Of the pulls among the packets that no hook logged, and of those that hooks alone logged.
ONLY_PACKETS = {"hooked-4.9.7": {IN_FLIGHT: 5, FORGOTTEN: 3}, "hooked-5.3.3": {IN_FLIGHT: 8, UNWRITTEN: 1}}
ONLY_HOOKS = {"hooked-4.9.7": {UNNAMED: 13}, "hooked-5.3.3": {UNSENT: 23}}
# Pulls and commits that clients' logs have, too.
LOGGED = {"hooked-4.9.7": 2, "hooked-5.3.3": 10}
COMMITS = {"hooked-4.9.7": (604, 516), "hooked-5.3.3": (620, 526)}
LOGGED_TOO = "records of {} in logs of clients: the capture has them, too"


@pytest.fixture(scope="module", params=[NIGHTS[0], pytest.param(NIGHTS[1], marks=pytest.mark.long)])
def night(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HookedNight:
    return unpacked(request.param, tmp_path_factory.mktemp("hooked") / request.param)


def captured(*captures: Path) -> list[Pull]:
    """The pulls of the captures."""
    return [fields for stem, fields in Captures([str(path) for path in captures]).records() if stem == "pull_log"]


def imported(night: HookedNight, folder: Path, *parts: str) -> dict[str, Any]:
    """The report of an import of some of the night."""
    out = StringIO()
    import_evidence([str(night.folder / part) for part in parts], str(folder), out, as_json=True)
    return dict(json.loads(out.getvalue()))


def test_each_difference_between_packets_and_hooks_has_its_reason(night: HookedNight) -> None:
    name = night.folder.name
    wire, hooked = captured(night.capture), night.hooked()
    assert (len(wire), len(hooked)) == (PULLS[name], HOOKED[name])
    by_wire, by_hook = {key_of(pull): pull for pull in wire}, {key_of(pull): pull for pull in hooked}
    assert (len(by_wire), len(by_hook)) == (len(wire), len(hooked)), "none is there twice"
    reasons = Counter(night.why_not_hooked(pull) for key, pull in by_wire.items() if key not in by_hook)
    assert reasons == ONLY_PACKETS[name]
    sent = night.packet_pulls()
    assert (
        Counter(why_not_captured(pull, sent) for key, pull in by_hook.items() if key not in by_wire) == ONLY_HOOKS[name]
    )


def why_not_captured(pull: Pull, sent: dict[tuple[int, str, str, str], set[str | None]]) -> str:
    key = pull["opaque"], pull["consumer_group"], str(pull["queue_id"]), str(pull["queue_offset"])
    if key not in sent:
        return UNSENT if "error" in pull else UNEXPLAINED
    return UNNAMED if None in sent[key] else UNEXPLAINED


@pytest.mark.long
def test_a_pull_without_an_answer_has_its_reason_in_the_report(night: HookedNight, tmp_path: Path) -> None:
    unanswered = sum("response_ts" not in pull for pull in captured(night.capture))
    (note,) = [note for note in imported(night, tmp_path / "out", "night.pcap")["notes"] if "have no answer" in note]
    counts = {"hooked-4.9.7": (57, 6), "hooked-5.3.3": (88, 3)}[night.folder.name]
    assert sum(counts) == unanswered
    assert note == (
        f"{unanswered} pulls have no answer: the client ended the connection first, or was killed ({counts[0]}), "
        f"the broker ended the connection first, or was killed ({counts[1]})"
    )


@pytest.mark.long
@pytest.mark.first_case
def test_a_pull_that_the_clients_log_has_too_is_one(night: HookedNight, tmp_path: Path) -> None:
    """The client logs it because the broker answered with another offset: of one past the end, or a reset of 5.3.3."""
    name = night.folder.name
    moved = [pull for pull in captured(night.capture) if pull.get("response_name") == "PULL_OFFSET_MOVED"]
    logs = imported(night, tmp_path / "logs", "logs")
    assert logs["records"]["pull_log.jsonl.gz"] == LOGGED[name] <= len(moved)
    both = imported(night, tmp_path / "both", "night.pcap", "logs")
    assert both["records"]["pull_log.jsonl.gz"] == PULLS[name]
    assert both["left_out"][LOGGED_TOO.format("pull_log")] == LOGGED[name]
    of_capture, of_both = COMMITS[name]
    assert both["left_out"][LOGGED_TOO.format("offset_commits")] == of_both
    of_logs = logs["records"]["offset_commits.jsonl.gz"]
    assert both["records"]["offset_commits.jsonl.gz"] == of_capture + of_logs - of_both


@pytest.mark.long
def test_pulls_of_a_log_that_a_capture_lacks_are_kept(night: HookedNight, tmp_path: Path) -> None:
    moved = [pull for pull in captured(night.capture) if pull.get("response_name") == "PULL_OFFSET_MOVED"]
    first_us = min(pull["request_ts"] for pull in moved) * 1000 - 10**6
    written(night.folder / "short.pcap", night.capture, lambda packet: [packet] if packet[0] < first_us else [])
    report = imported(night, tmp_path / "out", "short.pcap", "logs")
    assert LOGGED_TOO.format("pull_log") not in report["left_out"]
    in_short = len(captured(night.folder / "short.pcap"))
    assert report["records"]["pull_log.jsonl.gz"] == in_short + LOGGED[night.folder.name]


@pytest.mark.long
@pytest.mark.parametrize("behind_us", [30, -400_000, 0, 400_000])
def test_captures_of_two_hosts_count_each_pull_once(night: HookedNight, behind_us: int) -> None:
    """Their clocks differ. The second capture begins later: connections that ended before are not in it."""
    first_us = min(pull["request_ts"] for pull in captured(night.capture)) * 1000 + 40 * 10**6

    def seen_there(packet: Packet) -> list[Packet]:
        return [(packet[0] + behind_us, packet[1])] if packet[0] >= first_us else []

    other = written(night.folder / "other.pcap", night.capture, seen_there)
    both = captured(night.capture, other)
    assert Counter(map(key_of, both)) == Counter(map(key_of, captured(night.capture)))


@pytest.mark.long
def test_rotated_files_beside_the_whole_count_each_pull_once(night: HookedNight) -> None:
    last_us = max(pull["request_ts"] for pull in captured(night.capture)) * 1000
    parts = [night.capture]
    for place in range(3):
        begin_us, end_us = last_us - (3 - place) * 30 * 10**6, last_us - (2 - place) * 30 * 10**6
        parts.append(
            written(
                night.folder / f"part{place}.pcap",
                night.capture,
                lambda packet, begin_us=begin_us, end_us=end_us: [packet] if begin_us <= packet[0] < end_us else [],
            )
        )
    assert Counter(map(key_of, captured(*parts))) == Counter(map(key_of, captured(night.capture)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("end", "later_us"),
    [
        ("client", 30),
        pytest.param("broker", 30, marks=pytest.mark.long),
        pytest.param("broker", -30, marks=pytest.mark.long),
    ],
)
def test_packets_of_two_interfaces_count_each_pull_once(night: HookedNight, end: str, later_us: int) -> None:
    """Each packet comes again, with another address of one end: as `tcpdump -i any` shows translated addresses.

    The other address of a broker is registered nowhere.
    """
    servers = {60911, 60921, 60931, 60941, 60909, 60919, 60929, 60939, 19876, 19877}

    def translated(packet: Packet) -> list[Packet]:
        ts_us, frame = packet
        to_server = int.from_bytes(frame[36:38], "big") in servers
        place = 26 if to_server == (end == "client") else 30  # of the source's or the target's address in IPv4
        again = ts_us + later_us, frame[:place] + bytes((10, 1, 1, 1)) + frame[place + 4 :]
        return sorted([packet, again])

    twice = written(night.folder / "twice.pcap", night.capture, translated)
    found = Captures([str(twice)])
    pulls = [fields for stem, fields in found.records() if stem == "pull_log"]
    assert Counter(map(key_of, pulls)) == Counter(map(key_of, captured(night.capture)))
    again = found.left_out["requests seen again after a translation of addresses: they count once"]
    assert (again > len(pulls)) == (end == "client")
