"""The made-up estate: the same bytes each time, RocketMQ's own text, and answers that a plain reading finds too."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from bench.estate.flow import PHYSICAL_MEMORY, Flow, make_events
from bench.estate.parts import first_hours, snapshots_of
from bench.estate.shape import make_shape
from bench.estate.sizes import HOUR_MS, SIZES, START_MS
from bench.estate.write import write_estate
from estate_records import decoded_lines
from mqreplay.core.allocation import allocate
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.pull_node import find_broker_address_in_subscribe
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.recording.files import classify
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics
from mqreplay.ingest.recording import NOT_READ


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estate") / "XS"
    write_estate("XS", 7, folder)
    return folder


@pytest.fixture(scope="module")
def answers(estate: Path) -> dict:
    return json.loads((estate / "answers.json").read_text())


@pytest.fixture(scope="module")
def records(estate: Path) -> dict[str, list[dict]]:
    return decoded_lines(estate, hours=("0000", "2300"))


def digest(folder: Path) -> dict[str, str]:
    files = (p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(estate: Path, tmp_path: Path) -> None:
    again, other = tmp_path / "again", tmp_path / "other"
    write_estate("XS", 7, again)
    write_estate("XS", 8, other)
    assert digest(again) == digest(estate)
    assert digest(other) != digest(estate)


def test_every_file_but_the_answers_is_a_part_of_a_recording(estate: Path) -> None:
    kinds = Counter(classify(str(p.relative_to(estate)))[0] for p in estate.rglob("*") if p.is_file())
    assert kinds.pop("other") == 1
    assert not kinds.keys() & NOT_READ.keys()
    assert {"consumer_offset", "pull_log", "heartbeats", "routes", "rebalance_log", "brokers"} <= kinds.keys()


def test_the_offsets_of_the_snapshots_break_where_the_answers_say(estate: Path, answers: dict) -> None:
    entries = changes = snapshots = 0
    rewinds, vanished = set(), set()
    for source in sorted((estate / "snapshots").iterdir()):
        name, broker_id = source.name.rsplit("-", 1)
        before: dict = {}
        for moment in sorted(source.iterdir(), key=lambda p: int(p.name)):
            got = decode_consumer_offset((moment / "consumerOffset.json").read_bytes())
            now = dict(zip(zip(got.topic, got.consumer_group, got.queue_id, strict=True), got.offset, strict=True))
            snapshots, entries = snapshots + 1, entries + len(now)
            gone = before.keys() - now.keys()
            changes += len(gone) + sum(before.get(key) != new for key, new in now.items())
            for key in gone:
                vanished.add((name, int(broker_id), *key, before[key], None, int(moment.name)))
            for key in [key for key, new in now.items() if new < before.get(key, 0)]:
                rewinds.add((name, int(broker_id), *key, before[key], now[key], int(moment.name)))
            before = now
        assert (got.data_version_counter is not None) == (int(name[-2:]) % 2 == 1)
    assert (snapshots, entries, changes) == (answers["snapshots"], answers["entries"], answers["offset_changes"])
    assert rewinds == {spot(row) for row in answers["rewinds"]}
    assert vanished == {spot(row) for row in answers["vanished"]}


def spot(row: dict) -> tuple:
    names = ("broker_name", "broker_id", "topic", "consumer_group", "queue_id", "previous_offset", "new_offset")
    return tuple(row[name] for name in (*names, "to_ts"))


def test_pulls_begin_where_the_last_one_ended_but_after_rewinds_and_jumps(records: dict, answers: dict) -> None:
    reached: dict = {}
    ends: dict = {}
    skips, backs = set(), set()
    for pull in sorted(records["pull_log"], key=lambda p: (p["request_ts"], p["opaque"])):
        queue = (pull["broker_name"], pull["topic"], pull["consumer_group"], pull["queue_id"])
        begins = pull["queue_offset"]
        if begins > reached.get(queue, begins):
            skips.add((*queue, begins))
        if begins < reached.get(queue, begins):
            backs.add((*queue, begins))
        reached[queue] = pull["next_begin_offset"]
        assert begins <= pull["next_begin_offset"] <= pull["max_offset"]
        end = (pull["broker_name"], pull["topic"], pull["queue_id"])
        assert pull["max_offset"] >= ends.get(end, 0)
        ends[end] = pull["max_offset"]
    assert len(records["pull_log"]) == answers["pulls"]

    def told(kind: str) -> set:
        names = ("broker_name", "topic", "consumer_group", "queue_id", "new_offset")
        return {tuple(row[n] for n in names) for row in answers[kind] if row["broker_id"] == 0}

    assert skips == told("jumps")
    assert skips
    assert backs <= told("rewinds")
    assert backs


def test_a_stalled_offset_stands_while_its_pulls_go_on(records: dict, answers: dict) -> None:
    assert answers["stalls"]
    for stall in answers["stalls"]:
        names = ("broker_name", "topic", "consumer_group", "queue_id")
        inside = [
            pull
            for pull in records["pull_log"]
            if all(pull[n] == stall[n] for n in names) and stall["from_ts"] <= pull["request_ts"] < stall["to_ts"]
        ]
        assert {pull["commit_offset"] for pull in inside} == {stall["offset"]}
        assert inside[-1]["queue_offset"] > stall["offset"]
        assert inside[-1]["max_offset"] > stall["offset"]


def test_each_pull_goes_where_the_rule_sends_it_but_those_told(records: dict, answers: dict) -> None:
    routes = sorted(records["routes"], key=lambda r: r["response_ts"])
    addrs: dict = defaultdict(dict)
    last_text: dict = {}
    suggested: dict = {}
    counts, older, of_slaves = Counter(), set(), 0
    for pull in sorted(records["pull_log"], key=lambda p: (p["request_ts"], p["opaque"])):
        while routes and routes[0]["response_ts"] <= pull["request_ts"]:
            route = routes.pop(0)
            about = (route["client_id"], route["topic"])
            if last_text.get(about) != str(route["broker_datas"]):
                last_text[about] = str(route["broker_datas"])
                addrs[route["client_id"]].update(dict(route["broker_datas"]))
        queue = (pull["client_id"], pull["consumer_group"], pull["topic"], pull["broker_name"], pull["queue_id"])
        of_slaves += pull["broker_id"] != 0
        if queue not in suggested and pull["sub_version"] < 1_795_132_800_000:
            counts["undetermined"] += 1
            older.add(pull["client_id"])
        else:
            node = suggested.get(queue, 0)
            found = find_broker_address_in_subscribe(addrs[pull["client_id"]], pull["broker_name"], node, False)
            counts["agree" if found and found.broker_addr == pull["broker_addr"] else "differ"] += 1
        suggested[queue] = pull["suggest_which_broker_id"]
    assert dict(counts) == {k: n for k, n in answers["pull_route"].items() if n}
    assert of_slaves == answers["pulls_of_slaves"]
    assert older
    assert answers["pull_route"]["differ"] == len(answers["pull_route_differ"]) > 0


def test_brokers_suggest_what_their_commit_logs_say(records: dict) -> None:
    polls: dict = defaultdict(list)
    for row in records["broker_runtime"]:
        polls[row["broker_name"], row["broker_id"]].append((row["ts"], row["commit_log_max_offset"]))
    places: dict = defaultdict(dict)
    suggested = Counter()
    for pull in records["pull_log"]:
        if pull["response_code"] != 0:
            continue
        queue = places[pull["broker_name"], pull["topic"], pull["queue_id"]]
        for which in ("first", "last"):  # every group sees a message at the same place
            place = pull[f"{which}_commitlog_offset"]
            assert queue.setdefault(pull[f"{which}_queue_offset"], place) == place
        told = polls[pull["broker_name"], pull["broker_id"]]
        at = bisect_right(told, (pull["request_ts"], 0)) - 1
        if told[at][0] + 120_000 < pull["request_ts"]:
            continue  # an hour whose polls were not read
        ratio = 30 if pull["broker_name"] == "broker-01" and pull["broker_id"] else 40
        behind = told[at][1] - pull["last_commitlog_offset"]
        assert pull["suggest_which_broker_id"] == suggest(behind, ratio)
        suggested[pull["suggest_which_broker_id"]] += 1
    assert all(sorted(queue.values()) == [queue[at] for at in sorted(queue)] for queue in places.values())
    assert min(suggested[0], suggested[1]) > 100


def test_brokers_give_small_batches_from_disk(records: dict) -> None:
    """A broker suggests its slave for what it reads from disk, and gives 8 messages of it at most."""
    assert max(pull["msg_count"] for pull in records["pull_log"] if pull["suggest_which_broker_id"] == 1) == 8


def test_more_is_sent_to_queues_that_are_read_from_memory_alone() -> None:
    rng = np.random.default_rng(1)
    shape = make_shape(SIZES["S"], rng)
    flow = Flow(shape, make_events(shape, rng), rng)
    from_disk = np.isin(flow.queue_of, flow.queue_of[flow.slow])
    busy = np.array([shape.busy(shape.keys[j]) for j in shape.entry_key])
    assert {int(flow.first[flow.queue_of[from_disk]].max())} == {8}
    assert {int(flow.first[flow.queue_of[busy & ~from_disk]].max())} == {32}


def suggest(behind: int, ratio: int) -> int:
    return int(behind > int(PHYSICAL_MEMORY * (ratio / 100.0)))


def test_each_rebalance_is_what_the_strategy_gives_but_those_told(records: dict, answers: dict) -> None:
    counts = Counter()
    for row in records["rebalance_log"]:
        mq_all = [MessageQueue(row["topic"], *queue) for queue in row["mq_all"]]
        given = allocate(row["strategy"], row["consumer_group"], row["client_id"], mq_all, row["cid_all"])
        same = [(mq.broker_name, mq.queue_id) for mq in given] == row["mq_divided"]
        counts["agree" if same else "differ"] += 1
    assert {"undetermined": 0, **counts} == answers["allocation"]
    assert {row["strategy"] for row in records["rebalance_log"]} == {"AVG", "AVG_BY_CIRCLE"}
    assert counts["differ"] == len(answers["allocation_differ"]) > 0


def test_two_clients_hold_a_queue_at_once_where_the_answers_say(records: dict, answers: dict) -> None:
    looks: dict = defaultdict(list)
    for row in records["rebalance_log"]:
        for broker, queue in row["mq_divided"]:
            looks[row["consumer_group"], row["topic"], broker, queue].append((row["ts"], row["client_id"]))
    found = set()
    for queue, seen in looks.items():
        for client in {client for _, client in seen}:
            held = [ts for ts, by in seen if by == client]
            if len(held) < 20:  # a guest: it held the queue for a while, and its owner all day
                found.add((*queue, client, min(held)))
    names = ("consumer_group", "topic", "broker_name", "queue_id")
    told = {(*[row[n] for n in names], row["clients"][1], row["from_ts"]) for row in answers["double_owners"]}
    assert found == told
    assert told


def test_the_settings_decode(estate: Path, records: dict) -> None:
    brokers = decode_brokers((estate / "brokers.json").read_bytes())
    assert [b.effective_access_message_in_memory_max_ratio for b in brokers.brokers] == [40, 40, 40, 30]
    (topics,) = (estate / "snapshots" / "broker-00-0").glob("*/topics.json")
    (groups,) = (estate / "snapshots" / "broker-00-1").glob("*/subscriptionGroup.json")
    assert len(decode_topics(topics.read_bytes()).rows) == 50
    assert len(decode_subscription_group(groups.read_bytes()).rows) == 20
    assert {len(records[stem]) > 100 for stem in ("heartbeats", "broker_runtime")} == {True}


def test_parts_are_its_own_files(estate: Path) -> None:
    whole = digest(estate)
    part = digest(first_hours(estate, 5))
    assert part.items() < whole.items()
    left_out = set(whole) - set(part) - {"answers.json"}
    assert {Path(path).parts[-1].split(".")[1][:2] for path in left_out if path.endswith(".gz")} == {
        f"{hour:02d}" for hour in range(5, 24)
    }
    moments = {path: int(Path(path).parts[2]) for path in whole if path.startswith("snapshots/")}
    assert {path for path in moments if path in part} == {
        path for path, at in moments.items() if at < START_MS + 5 * HOUR_MS
    }
    alone = digest(snapshots_of(estate))
    assert set(alone) == {*moments, "brokers.json"}
