"""The additions to an estate: all lines are read, all kinds agree, and answers.json says what is there."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from bench.estate.sizes import SIZES
from bench.estate.write import write_estate
from estate_records import decoded_lines
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.kinds import KINDS

WRITTEN_MS = 1_000  # after this a commit is in the broker's file
Queue = tuple[str, str, str, int]  # group, topic, broker, queue


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full") / "XS"
    write_estate("XS", 7, folder, full=True)
    return folder


@pytest.fixture(scope="module")
def answers(estate: Path) -> dict:
    return json.loads((estate / "answers.json").read_text())


@pytest.fixture(scope="module")
def records(estate: Path) -> dict[str, list[dict]]:
    return decoded_lines(estate, hours=("0000", "1200", "2100"))


@pytest.fixture(scope="module")
def offsets(estate: Path) -> dict[str, list[tuple[int, dict[tuple, int]]]]:
    """Of each source its snapshots in order of time: their instant, and the offset of (topic, group, queue)."""
    found: dict = defaultdict(list)
    for moment in sorted((estate / "snapshots").glob("*/*"), key=lambda folder: int(folder.name)):
        got = decode_consumer_offset((moment / "consumerOffset.json").read_bytes())
        now = dict(zip(zip(got.topic, got.consumer_group, got.queue_id, strict=True), got.offset, strict=True))
        found[moment.parent.name].append((int(moment.name), now))
    return found


def queue_of(row: dict) -> Queue:
    return row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]


@pytest.mark.long
def test_the_answers_count_what_is_there(records: dict, offsets: dict, answers: dict) -> None:
    for stem in ("offset_commits", "produce_log", "consume_log", "lock_requests", "server_requests"):
        assert len(records[stem]) == answers[stem] > 0, stem
    assert len(records["pull_log"]) == answers["pulls"]
    assert len(records["rebalance_log"]) == answers["rebalances"]
    assert sum(row["broker_id"] != 0 for row in records["pull_log"]) == answers["pulls_of_slaves"]
    entries = changes = 0
    rewinds = set()
    for source, snapshots in offsets.items():
        name, _, broker_id = source.rpartition("-")
        before: dict = {}
        for ts, now in snapshots:
            entries += len(now)
            changes += sum(before.get(key) != now.get(key) for key in before.keys() | now.keys())
            fell = [key for key, offset in now.items() if before.get(key, 0) > offset]
            rewinds |= {(name, int(broker_id), *key, before[key], now[key], ts) for key in fell}
            before = now
    assert (entries, changes) == (answers["entries"], answers["offset_changes"])
    names = ("topic", "consumer_group", "queue_id", "previous_offset", "new_offset", "to_ts")
    told = {(row["broker_name"], row["broker_id"], *[row[n] for n in names]) for row in answers["rewinds"]}
    assert rewinds == told


def test_one_queue_has_a_fifth_of_all_pulls_and_one_group_half(records: dict, answers: dict) -> None:
    groups = Counter(row["consumer_group"] for row in records["pull_log"])
    queues = Counter((row["topic"], row["broker_name"], row["queue_id"]) for row in records["pull_log"])
    (queue, pulls_of_queue), (group, pulls_of_group) = queues.most_common(1)[0], groups.most_common(1)[0]
    assert group == answers["giant_group"]["consumer_group"]
    assert queue == tuple(answers["giant_queue"][name] for name in ("topic", "broker_name", "queue_id"))
    assert pulls_of_group == answers["giant_group"]["pulls"]
    assert pulls_of_queue == answers["giant_queue"]["pulls"]
    assert pulls_of_queue / answers["pulls"] == pytest.approx(0.2, abs=0.005)
    assert pulls_of_group / answers["pulls"] == pytest.approx(0.5, abs=0.01)
    assert sum(count <= 20 for count in groups.values()) == answers["small_groups"] == 1_000
    assert {SIZES[name].small_groups for name in ("S", "M", "L")} == {10_000}


def test_pulls_are_in_the_order_of_their_times_and_a_queue_is_pulled_once_at_a_time(records: dict) -> None:
    times = [row["request_ts"] for row in records["pull_log"]]
    assert times == sorted(times)
    answered: dict = {}
    for row in records["pull_log"]:
        place = (row["client_id"], *queue_of(row))
        assert answered.get(place, 0) <= row["request_ts"]
        answered[place] = row["response_ts"]


def test_each_snapshot_shows_what_was_committed_last_by_true_clocks(
    records: dict, offsets: dict, answers: dict
) -> None:
    skews = {row["client_id"]: row["skew_ms"] for row in answers["clock_skews"]}
    assert len(skews) == 3
    commits: dict[Queue, list[tuple[int, int]]] = defaultdict(list)
    for row in records["offset_commits"]:
        if row["kind"] == "UPDATE":
            commits[queue_of(row)].append((row["ts"] - skews.get(row["client_id"], 0), row["commit_offset"]))
    for said in commits.values():
        said.sort()
    held = {(row["consumer_group"], row["broker_name"]) for row in records["pull_log"] if row["broker_id"] != 0}
    compared: Counter = Counter()
    for source, snapshots in offsets.items():
        name, _, broker_id = source.rpartition("-")
        if broker_id != "0":
            continue
        for ts, now in snapshots:
            for (topic, group, queue), offset in now.items():
                said = commits.get((group, topic, name, queue), [])
                last = bisect_right(said, (ts - WRITTEN_MS, 2**63)) - 1
                if last >= 0 and (group, name) not in held:  # without its master a broker takes no commits
                    assert offset == said[last][1], (source, ts, topic, group, queue)
                    compared[group.split("-group")[0]] += 1
    assert compared["giant"] > 500
    assert compared["steady"] > 300
    assert compared["job"] > 10_000
    assert len(compared) > 4


def test_messages_are_given_again_by_resets_alone(records: dict, answers: dict) -> None:
    given = Counter((*queue_of(row), row["queue_offset"]) for row in records["consume_log"])
    again = {key: count - 1 for key, count in given.items() if count > 1}
    assert sum(again.values()) == answers["delivered_again"] > 0
    assert {key[0] for key in again} == {row["consumer_group"] for row in answers["resets"]}
    sent = {row["msg_id"]: row for row in records["produce_log"]}
    assert len(sent) == len(records["produce_log"])
    for row in records["consume_log"]:
        message = sent[row["msg_id"]]
        assert (message["queue_offset"], message["ts"]) == (row["queue_offset"], row["born_ts"])
        assert int(message["offset_msg_id"][16:], 16) == row["commitlog_offset"]


def test_a_reset_is_pushed_to_the_client_and_shows_in_the_next_snapshot(
    records: dict, offsets: dict, answers: dict
) -> None:
    pushed = []
    for row in records["server_requests"]:
        ((topic, broker, queue, offset),) = row["reset_offsets"]
        pushed.append((row["ts"], row["client_id"], row["consumer_group"], topic, broker, queue, offset))
        ts, now = next((ts, now) for ts, now in offsets[f"{broker}-0"] if ts > row["ts"])
        assert now[topic, row["consumer_group"], queue] == offset
        assert ts - row["ts"] < 60_000
    names = ("ts", "client_id", "consumer_group", "topic", "broker_name", "queue_id", "offset")
    assert sorted(pushed) == sorted(tuple(row[name] for name in names) for row in answers["resets"])


def test_orderly_groups_hold_their_locks_while_they_consume(records: dict, answers: dict) -> None:
    locks: dict = defaultdict(list)
    for row in records["lock_requests"]:
        assert row["lock_ok_mq_set"] == row["mq_set"]
        locks[row["consumer_group"]].append(row["ts"])
    assert sorted(locks) == sorted(answers["orderly_groups"])
    for row in records["consume_log"]:
        assert row["orderly"] == (row["consumer_group"] in locks)
        if row["orderly"]:
            times = locks[row["consumer_group"]]
            assert 0 <= row["ts"] - times[bisect_right(times, row["ts"]) - 1] < 60_000


def test_they_leave_the_estate_as_it_is(estate: Path, records: dict, tmp_path: Path) -> None:
    """Its own pulls are the same, but for what was committed before them, which then is told by commits."""
    write_estate("XS", 7, tmp_path / "XS")
    plain = [
        KINDS["pull_log"].decode(line)
        for path in sorted((tmp_path / "XS").glob("pull_log.*"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    groups = {row["consumer_group"] for row in plain}
    own = [row | {"commit_offset": 0} for row in records["pull_log"] if row["consumer_group"] in groups]
    assert own == [row | {"commit_offset": 0} for row in plain]
