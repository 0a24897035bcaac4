"""Records from RocketMQ's logs: the same rebalances, queues and commits as those of hooks."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.record.imports.files.sources import source_of
from mqreplay.record.imports.logs.import_logs import LogReport, import_logs
from mqreplay.record.imports.logs.log_files import LOGS, base_name, scan_logs
from mqreplay.record.imports.logs.log_text import OTHER, why_no_log
from tests_shared import SAMPLE

Key = tuple[str, ...]
MEMBER = ("client_id", "consumer_group")
ORDERS, BULK = "orders-4.9.7", "bulk-5.3.3"
NIGHTS = [ORDERS, BULK]


class Collected:
    """A writer that keeps the records by stem, as JSON has them."""

    def __init__(self) -> None:
        self.records: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def append(self, stem: str, record: Mapping[str, object]) -> None:
        known = {name: value for name, value in record.items() if value is not None}
        self.records[stem].append(json.loads(json.dumps(known)))


def imported(
    folder: Path, time_zone: dt.tzinfo | None = None, evidence_ms: tuple[int, int] | None = None
) -> tuple[dict[str, list[dict[str, Any]]], LogReport]:
    """The records of all logs below a folder; folders such as broker-a-0 name brokers."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and ".log" in path.name]
    sources = [source_of(str(path.relative_to(folder)), path, "") for path in files]
    brokers = {}
    for path in files:
        name, _, broker_id = path.parent.name.rpartition("-")
        if path.name.startswith("broker.") and broker_id.isdigit():
            brokers[str(path.parent.relative_to(folder))] = (name, int(broker_id))
    into = Collected()
    scan = scan_logs(sources)
    report = import_logs(scan, into, time_zone, brokers, evidence_ms)
    report.not_recognised += [(source.path, why_no_log(source.path, count) or "") for source, count in scan.without]
    return into.records, report


def recorded(night: str, stem: str) -> list[dict[str, Any]]:
    with gzip.open(SAMPLE / night / f"{stem}.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def by(records: list[dict[str, Any]], fields: tuple[str, ...]) -> dict[Key, list[dict[str, Any]]]:
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        found[tuple(record[name] for name in fields)].append(record)
    return found


def computed(record: dict[str, Any]) -> tuple[object, ...]:
    """What a rebalance computed; the recording has the lists whose lengths the log has."""
    queues = sorted((broker_name, queue_id) for broker_name, queue_id in record["mq_divided"] or [])
    sizes = [record.get(f"{name}_size", len(record.get(name) or [])) for name in ("mq_all", "cid_all")]
    return record["strategy"], queues, *sizes


def held(record: dict[str, Any]) -> set[tuple[str, str, int]]:
    return {
        (queue["topic"], queue["broker_name"], queue["queue_id"])
        for queue in record["queues"]
        if not queue.get("dropped")
    }


@pytest.fixture(scope="module", params=NIGHTS)
def night(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def logs(night: str) -> dict[str, list[dict[str, Any]]]:
    return imported(SAMPLE / night / "logs")[0]


def test_every_line_is_one_of_a_recording(logs: dict[str, list[dict[str, Any]]]) -> None:
    assert {"rebalance_log", "assignments", "offset_commits", "heartbeats", "broker_runtime"} <= set(logs)
    for stem, records in logs.items():
        for record in records:
            KINDS[stem].decode(json.dumps(record).encode())


def test_each_rebalance_in_the_logs_is_one_that_was_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """In order, with the same content. A client logs it after it has taken the queues: up to 1 s later."""
    fields = (*MEMBER, "topic")
    calls = by(recorded(night, "rebalance_log"), fields)
    logged = by(logs["rebalance_log"], fields)
    assert sum(map(len, logged.values())) == {ORDERS: 245, BULK: 6}[night]
    for key, records in logged.items():
        rest = iter(calls[key])
        for record in records:
            call = next(
                (one for one in rest if computed(one) == computed(record) and 0 <= record["ts"] - one["ts"] < 1000),
                None,
            )
            assert call is not None, record


def test_each_recorded_change_of_a_share_is_in_the_logs(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """All but those that changed no client's queues, which RocketMQ does not log.

    CONFIG gives the queues of one topic for each topic: the second time changes nothing. Of an orderly group, queues
    whose lock another client holds are not taken: the same share is logged once the lock is free.
    """
    fields = (*MEMBER, "topic")
    logged = by(logs["rebalance_log"], fields)
    missing: Counter[str] = Counter()
    for key, calls in by(recorded(night, "rebalance_log"), fields).items():
        shares = [(computed(call)[1], list(same)) for call, same in ((c[0], c) for c in runs(calls))]
        rest = iter(logged.get(key, []))
        for place, (share, same) in enumerate(shares):
            if not share and place == 0:
                continue
            if not any(
                computed(one)[1] == share and same[0]["ts"] <= one["ts"] <= same[-1]["ts"] + 1000 for one in rest
            ):
                missing[key[1]] += 1
                rest = iter(logged.get(key, []))
    assert missing == ({"pay-config-group": 2, "seq-group": 2} if night == ORDERS else {})


def runs(calls: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Calls in a row that gave the same share."""
    return [list(same) for _, same in groupby(calls, key=lambda call: computed(call)[1])]


def test_queues_of_each_client_are_those_that_were_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """At each of the moments at which the hooks looked, changed or not: to 50 ms, since they look while queues move."""
    seen = by(recorded(night, "assignments"), MEMBER)
    logged = by(logs["assignments"], MEMBER)
    assert set(logged) == set(seen)
    looked = 0
    for key, moments in seen.items():
        changes = [(record["ts"], held(record)) for record in logged[key]]
        times = [ts for ts, _ in changes]
        for moment in moments:
            looked += 1
            before, after = bisect_right(times, moment["ts"] - 50), bisect_right(times, moment["ts"] + 50)
            states = [queues for _, queues in changes[max(before - 1, 0) : after]]
            assert held(moment) in states or (before == 0 and not held(moment)), (key, moment["ts"])
    assert looked == {ORDERS: 1382, BULK: 41}[night]


def test_an_assignment_is_shown_once_a_moment_and_repeated_each_minute(logs: dict[str, list[dict[str, Any]]]) -> None:
    repeats = 0
    for key, records in by(logs["assignments"], MEMBER).items():
        times = [record["ts"] for record in records]
        assert times == sorted(set(times)), key
        for before, record in pairwise(records):
            assert record["changed"] or (held(record) == held(before) and record["ts"] - before["ts"] >= 60_000)
            repeats += not record["changed"]
    assert repeats


def test_changed_assignments_follow_in_the_same_order(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """The hooks look once a second: what lasts longer is in both, and in the same order."""
    logged = by(logs["assignments"], MEMBER)
    for key, moments in by(recorded(night, "assignments"), MEMBER).items():
        seen = [queues for queues, _ in groupby(held(one) for one in moments if one["changed"])]
        changes = [record for record in logged[key] if record["changed"]]
        rest = iter(held(record) for record in changes)
        assert all(any(queues == one for one in rest) for queues in seen), key
        looked = [one["ts"] for one in moments]
        for record, following in pairwise(changes):
            long = following["ts"] - record["ts"] > 1500 and looked[0] < record["ts"] and following["ts"] < looked[-1]
            # Nobody looks at a client that is stopped.
            assert not long or not record["queues"] or held(record) in seen, (key, record["ts"])


def test_commits_are_those_that_were_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    """The log has the offset of the moment after it was sent: a busy queue may have gone on by some messages."""
    fields = (*MEMBER, "topic", "broker_name", "queue_id")
    sent = by([one for one in recorded(night, "offset_commits") if one["kind"] == "UPDATE"], fields)
    later = exact = 0
    for key, records in by([one for one in logs["offset_commits"] if one["source"] == "client_log"], fields).items():
        for record in records:
            near = [one["commit_offset"] for one in sent[key] if 0 <= record["ts"] - one["ts"] <= 1000]
            assert any(record["commit_offset"] - 20 <= offset <= record["commit_offset"] for offset in near), record
            later += record["commit_offset"] not in near
            exact += record["commit_offset"] in near
    assert later < exact // 100


def test_routes_are_some_that_were_recorded(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    decode = KINDS["routes"].decode

    def content(record: dict[str, Any]) -> tuple[object, ...]:
        route: dict[str, Any] = decode(json.dumps(record).encode())
        return sorted(map(repr, route["queue_datas"] or [])), sorted(map(repr, route["broker_datas"] or []))

    answers = by(recorded(night, "routes"), ("topic",))
    assert len(logs["routes"]) > 4
    for route in logs["routes"]:
        near = [one for one in answers[route["topic"],] if 0 <= route["ts"] - one["ts"] < 5000]
        assert content(route) in map(content, near), route


def test_each_client_that_unregistered_is_in_the_logs(night: str, logs: dict[str, list[dict[str, Any]]]) -> None:
    def left(records: list[dict[str, Any]], source: str | None) -> set[tuple[str, str]]:
        return {
            (one["client_id"], one["header"]["consumerGroup"])
            for one in records
            if one["kind"] == "UNREGISTER_CLIENT" and one.get("source") == source and "consumerGroup" in one["header"]
        }

    seen = left(recorded(night, "heartbeats"), None)
    assert seen
    assert left(logs["heartbeats"], "client_log") == seen
    assert left(logs["heartbeats"], "broker_log") == seen


def test_a_killed_client_vanishes_without_unregistering() -> None:
    logs, _ = imported(SAMPLE / ORDERS / "logs" / "..")
    killed = "10.20.12.3@13793#3080932234582"
    own = [one for one in logs["heartbeats"] if one["client_id"] == killed]
    beats = [one for one in own if one["kind"] == "HEART_BEAT"]
    real = [one["ts"] for one in recorded(ORDERS, "heartbeats") if one["client_id"] == killed]
    assert beats
    # Its last heartbeat, as the brokers noted it when the connections closed.
    closed = [one for one in own if one["kind"] == "CHANNEL_CLOSE"]
    assert {one["broker_name"] for one in closed} == {"broker-a", "broker-b"}
    assert {one["kind"] for one in own} == {"HEART_BEAT", "CHANNEL_CLOSE"}
    for last in (max(one["ts"] for one in beats), max(one["heard_ts"] for one in closed)):
        assert last - max(real) in range(1000)


def test_resets_have_the_offsets_that_the_broker_sent() -> None:
    logs, _ = imported(SAMPLE / ORDERS / "logs")
    decode = KINDS["server_requests"].decode
    sent = [
        decode(json.dumps(one).encode()) for one in recorded(ORDERS, "server_requests") if one["request_code"] == 220
    ]
    each = [decode(json.dumps(one).encode()) for one in logs["server_requests"]]
    asked, found = ([one for one in each if one["request_code"] == code] for code in (222, 220))
    # mqadmin asks each broker on a connection of its own.
    assert len({(one["client_addr"], one["broker_name"]) for one in asked}) == 4
    assert len(found) == 4
    for reset in found:
        assert any(
            (one["client_id"], one["broker_name"]) == (reset["client_id"], reset["broker_name"])
            and abs(one["ts"] - reset["ts"]) < 1000
            and sorted(one["reset_offsets"]) == sorted(reset["reset_offsets"])
            for one in sent
        ), reset


def test_an_illegal_offset_is_a_pull_that_was_moved() -> None:
    logs, _ = imported(SAMPLE / ORDERS / "logs")
    (pull,) = logs["pull_log"]
    (moved,) = [one for one in recorded(ORDERS, "pull_log") if one.get("response_code") == 21]
    for name in ("client_id", "topic", "broker_name", "queue_id", "queue_offset", "next_begin_offset", "broker_id"):
        assert pull[name] == moved[name], name
    assert 0 <= pull["response_ts"] - moved["response_ts"] < 1000


@pytest.mark.parametrize(("name", "begins_ms"), [("broker-a", 3_000), ("broker-b", 40_000)])
def test_a_broker_that_was_killed_or_stopped_is_down_until_it_is_back(name: str, begins_ms: int) -> None:
    """Of one that was stopped, clients show it first: by a heartbeat that it did not answer."""

    def down(records: list[dict[str, Any]]) -> tuple[int, int]:
        of_it = [one for one in records if (one["broker_name"], one["broker_id"]) == (name, 0)]
        began = min(one["ts"] for one in of_it if one.get("error"))
        return began, min(one["ts"] for one in of_it if one["ts"] > began and not one.get("error"))

    logs, _ = imported(SAMPLE / ORDERS / "logs")
    began, ended = down(logs["broker_runtime"])
    real_began, real_ended = down(recorded(ORDERS, "broker_runtime"))
    assert 0 <= began - real_began + 1000 < begins_ms
    assert abs(ended - real_ended) < 5_000


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("rocketmq_client.log", "rocketmq_client.log"),
        ("rocketmq_client.log.3", "rocketmq_client.log"),
        ("other_days/rocketmq_client-2.log.gz", "rocketmq_client.log"),
        ("otherdays/broker.10.log.gz", "broker.log"),
        ("broker-2026-11-21.1.log.gz", "broker.log"),
        ("namesrv.log.2026-11-21", "namesrv.log"),
        ("orders-service.log", "orders-service.log"),
        ("20190_rocketmq-cpp.log", "20190_rocketmq-cpp.log"),
    ],
)
def test_names_of_rotated_files(name: str, base: str) -> None:
    assert base_name(f"x/{name}") == base


def plain(night: str, process: str, log: str) -> list[str]:
    with gzip.open(SAMPLE / night / "logs" / process / f"{log}.log.gz", "rt") as lines:
        return lines.readlines()


def test_rotated_files_are_read_as_one_log(tmp_path: Path) -> None:
    lines = plain(ORDERS, "client-h1", "rocketmq_client")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    (parts / "otherdays").mkdir(parents=True)
    whole.mkdir()
    (whole / "rocketmq_client.log").write_text("".join(lines))
    # The oldest has the highest number. A stack trace may begin in one file and end in the next.
    (parts / "otherdays" / "rocketmq_client-2.log.gz").write_bytes(gzip.compress("".join(lines[:9000]).encode()))
    (parts / "otherdays" / "rocketmq_client-1.log.gz").write_bytes(gzip.compress("".join(lines[9000:20001]).encode()))
    (parts / "rocketmq_client.log").write_text("".join(lines[20001:]))
    assert imported(parts)[0] == imported(whole)[0]


def test_a_log_that_begins_after_its_clients_learns_what_they_hold(tmp_path: Path) -> None:
    lines = plain(ORDERS, "client-h1", "rocketmq_client")
    start = next(place for place, line in enumerate(lines) if line.startswith("2026-11-21 02:44:30"))
    (tmp_path / "rocketmq_client.log").write_text("".join(lines[start:]))
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "rocketmq_client.log").write_text("".join(lines))
    late, whole = imported(tmp_path)[0], imported(tmp_path / "whole")[0]
    known = by(whole["assignments"], MEMBER)
    learnt = by([one for one in late["assignments"] if one["ts"] > 1795229100000], MEMBER)
    assert len(learnt) > 8
    for key, records in learnt.items():
        changes = [(one["ts"], held(one)) for one in known[key]]
        for record in records:
            place = bisect_right([ts for ts, _ in changes], record["ts"]) - 1
            assert held(record) in [queues for _, queues in changes[max(place - 1, 0) : place + 2]], (key, record["ts"])


def test_the_zone_of_the_host_is_found_in_the_lines(tmp_path: Path) -> None:
    lines = plain(ORDERS, "client-h2", "rocketmq_client")
    moved = [line.replace("2026-11-21 02:", "2026-11-20 23:", 1) for line in lines]
    (tmp_path / "utc").mkdir()
    (tmp_path / "rio").mkdir()
    (tmp_path / "utc" / "rocketmq_client.log").write_text("".join(lines))
    (tmp_path / "rio" / "rocketmq_client.log").write_text("".join(moved))
    utc, _ = imported(tmp_path / "utc")
    rio, report = imported(tmp_path / "rio")
    assert rio == utc
    assert "-03:00 by the times in its lines" in report.recognised[0][1]


def test_a_chosen_zone_that_the_lines_contradict_is_used_and_reported() -> None:
    logs, report = imported(SAMPLE / BULK / "logs", time_zone=dt.UTC)
    right, _ = imported(SAMPLE / BULK / "logs")
    assert logs["rebalance_log"][0]["ts"] - right["rebalance_log"][0]["ts"] == 8 * 3_600_000
    assert any("+08:00: leave --time-zone out" in note for note in report.notes)


def test_a_log_that_does_not_meet_the_other_evidence_names_the_zones_that_would(tmp_path: Path) -> None:
    (tmp_path / "rocketmq_client.log").write_text(
        "2026-11-21 02:40:08,249 INFO RocketmqClient - RebalanceService service started\n"
        "2026-11-21 02:59:08,249 INFO RocketmqClient - RebalanceService service end\n"
    )
    began = 1795228800000  # 2026-11-21 02:40:00 UTC
    assert imported(tmp_path, evidence_ms=(began, began + 600_000))[1].notes == []
    (note,) = imported(tmp_path, evidence_ms=(began - 5 * 3_600_000, began - 5 * 3_600_000 + 600_000))[1].notes
    assert "they would overlap in +05:00; give --time-zone" in note


def test_a_log_of_no_known_broker_is_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text("2026-11-21 10:40:08 INFO main - dispatch behind commit log 0 bytes\n")
    records, report = imported(tmp_path)
    assert not records
    assert report.not_recognised == [("broker.log", "nothing shows which broker wrote it; give --broker NAME-ID")]
    assert report.recognised == []


def test_an_empty_log_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "broker.log").write_text("")
    _, report = imported(tmp_path)
    assert (report.not_recognised, report.recognised) == ([("broker.log", "it is empty")], [])


def test_a_process_that_was_killed_and_started_again_in_one_log(tmp_path: Path) -> None:
    """Its clients held nothing when the new process began, though no line says that they ended."""
    created = "Created a new client Instance, InstanceIndex:0, ClientID:c, ClientConfig:x"
    made = f"2026-11-21 02:40:0{{}},000 INFO RocketmqClient - {created}"
    queue = "MessageQueue [topic=t, brokerName=b, queueId=0]"
    taken = [
        f"2026-11-21 02:40:02,000 INFO RocketmqClient - doRebalance, g, add a new mq, {queue}",
        "2026-11-21 02:40:02,001 INFO RocketmqClient - rebalanced result changed. "
        "allocateMessageQueueStrategyName=AVG, group=g, "
        f"topic=t, clientId=c, mqAllSize=1, cidAllSize=1, rebalanceResultSize=1, rebalanceResultSet=[{queue}]",
    ]
    (tmp_path / "rocketmq_client.log").write_text("\n".join([made.format(1), *taken, made.format(9)]) + "\n")
    records, _ = imported(tmp_path)
    assert [(one["ts"] % 10_000, len(one["queues"])) for one in records["assignments"]] == [(2000, 1), (9000, 0)]


def test_two_clients_of_a_group_in_one_process_are_distinguished(tmp_path: Path) -> None:
    def queue(queue_id: int) -> str:
        return f"MessageQueue [topic=t, brokerName=b, queueId={queue_id}]"

    def result(client_id: str, queue_id: int) -> str:
        return (
            "rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, topic=t, "
            f"clientId={client_id}, mqAllSize=2, cidAllSize=2, rebalanceResultSize=1, "
            f"rebalanceResultSet=[{queue(queue_id)}]"
        )

    messages = [
        *(f"Created a new client Instance, InstanceIndex:{n}, ClientID:c{n}, ClientConfig:x" for n in range(2)),
        f"doRebalance, g, add a new mq, {queue(1)}",
        f"doRebalance, g, add a new mq, {queue(0)}",
        result("c0", 0),
        result("c1", 1),
    ]
    lines = [f"2026-11-21 02:40:01,{n:03d} INFO RocketmqClient - {message}\n" for n, message in enumerate(messages)]
    (tmp_path / "rocketmq_client.log").write_text("".join(lines))
    records, _ = imported(tmp_path)
    assert {one["client_id"]: held(one) for one in records["assignments"]} == {
        "c0": {("t", "b", 0)},
        "c1": {("t", "b", 1)},
    }


def test_a_torn_or_damaged_file_is_reported_and_the_rest_read(tmp_path: Path) -> None:
    data = (SAMPLE / ORDERS / "logs/client-h2/rocketmq_client.log.gz").read_bytes()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "rocketmq_client.log.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "rocketmq_client.log.gz").write_bytes(b"\x1f\x8b\x08" + b"\0" * 100)
    records, report = imported(tmp_path)
    assert records["rebalance_log"]
    assert any("cut short" in note for note in report.notes)
    assert [path for path, _ in report.not_recognised] == ["rocketmq_client.log.gz"]


def fuzzed(count: int, seed: int, folder: Path) -> None:
    """Write logs with ``count`` damaged lines of the sample's."""
    rng = random.Random(seed)
    for night in NIGHTS:
        for path in sorted((SAMPLE / night / "logs").rglob("*.log.gz")):
            if base_name(str(path)).partition(".")[0] not in LOGS:
                continue
            with gzip.open(path) as stream:
                # Most lines have no fact in them.
                lines = [line for line in stream if len(line) > 120 or rng.random() < 0.1] or [b"2026-11-21 "]
            into = folder / night / path.parent.name
            into.mkdir(parents=True, exist_ok=True)
            picked = [lines[rng.randrange(len(lines))] for _ in range(count // 24)]
            (into / path.name.removesuffix(".gz")).write_bytes(b"".join(mutated(line, rng) for line in picked))


def mutated(line: bytes, rng: random.Random) -> bytes:
    data = bytearray(line)
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at = rng.randrange(len(data)) if data else 0
        match rng.randrange(6):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at:]
            case 2:
                del data[at : at + rng.randrange(40)]
            case 3:
                data[at:at] = rng.choice(
                    [b"[", b"]", b"=", b", ", b"99999999999999999999", b"\xff", b"\0", b"-", b"\xd9\xa3"]
                )
            case 4:
                data[at:at] = line[rng.randrange(len(line)) :]
            case _:
                data[at : at + 4] = b"9999"
    return bytes(data)


def replayed_fuzz(count: int, seed: int, folder: Path) -> None:
    fuzzed(count, seed, folder)
    records, report = imported(folder)
    lines = report.lines
    assert lines.read == lines.used + sum(lines.left_out.values())
    assert sum(n for form, n in lines.left_out.items() if form != OTHER) > count // 100
    for stem, each in records.items():
        for record in each:
            KINDS[stem].decode(json.dumps(record).encode())


def test_damaged_logs_give_records_or_counts_and_never_fail(tmp_path: Path) -> None:
    replayed_fuzz(5_000, 22, tmp_path)


@pytest.mark.long
def test_many_damaged_logs_give_records_or_counts_and_never_fail(tmp_path: Path) -> None:
    for seed in range(10):
        replayed_fuzz(10_000, seed, tmp_path / str(seed))
