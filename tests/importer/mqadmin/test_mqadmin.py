"""mqadmin's outputs of real clusters of 4.9.7 and 5.3.3, as records."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from importer.mqadmin.mqadmin_texts import Read
from mqreplay.decode.kinds import KINDS
from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.mqadmin.admin import Admin
from mqreplay.importer.mqadmin.output_files import times_of
from mqreplay.importer.mqadmin.outputs import outputs_of
from mqreplay.importer.staging import line_of
from mqreplay.importer.times.name_times import NameTime, time_of_path
from mqreplay.words.errors import DecodeError

DATA = Path(__file__).parent / "data"
CLIENTS = {"4.9.7": "10.7.0.1@10054#37260145834052", "5.3.3": "10.7.0.1@5862#37053687689008"}


class Outputs:
    """All outputs of a version: what they give, and why some give nothing."""

    def __init__(self, version):
        self.admin = Admin(dt.UTC, BrokerNames())
        self.records, self.refused = {}, {}
        found = []
        for path in sorted(p for p in (DATA / f"mqadmin-{version}").rglob("*") if p.is_file()):
            ms = time_of_path(path.parts[-2:], dt.UTC).ms
            for output in outputs_of(path.read_text(), dt.UTC):
                found.append((path.name, ms, output))
                self.admin.learn(output, ms)
        for name, ms, output in found:
            try:
                records = self.admin.records_of(output, ms, [name])
                self.records[name.partition("_")[2] or name] = [
                    (stem, KINDS[stem].decode(line_of(record))) for stem, record in records
                ]
            except DecodeError as error:
                self.refused[name.partition("_")[2]] = error.detail


@pytest.fixture(scope="module", params=["4.9.7", "5.3.3"])
def outputs(request):
    return request.param, Outputs(request.param)


def only(records, stem):
    [(found, record)] = records
    assert found == stem
    return record


def test_brokers(outputs):
    version, found = outputs
    info = only(found.records["clusterList.txt"], "cluster_info")
    assert info["brokers"] == [("die-1", "mint-cluster", {0: "127.0.0.1:60911", 1: "127.0.0.1:60921"})]
    facts = found.admin.facts
    assert sorted(facts) == ["die-1-0", "die-1-1"]
    assert {fact.version for fact in facts.values()} == {version}
    ratios = [facts[key].properties["accessMessageInMemoryMaxRatio"] for key in sorted(facts)]
    assert ratios == ["40", "40" if version == "4.9.7" else "30"], "a running slave of 5.x answers what is in effect"
    assert [facts[key].properties["brokerRole"] for key in sorted(facts)] == ["ASYNC_MASTER", "SLAVE"]
    assert found.admin.name_servers == ["127.0.0.1:19876", "127.0.0.1:19877"]


def test_offsets(outputs):
    _, found = outputs
    stats = only(found.records["consumerProgress_counters.txt"], "consume_stats")
    assert (stats["consumer_group"], stats["broker_name"], stats["broker_id"]) == ("counters", "die-1", 0)
    assert [offset[:3] for offset in stats["offsets"]] == [
        ("%RETRY%counters", "die-1", 0),
        *[("coin-struck", "die-1", queue) for queue in range(4)],
    ]
    assert all(0 <= offset[3] - offset[4] <= 1 for offset in stats["offsets"])
    assert stats["consume_tps"] > 0
    with_client = only(found.records["consumerProgress_s.txt"], "consume_stats")
    assert [offset[:3] for offset in with_client["offsets"]] == [offset[:3] for offset in stats["offsets"]]
    topic = only(found.records["topicStatus.txt"], "topic_stats")
    assert (topic["topic"], topic["broker_id"], len(topic["offsets"])) == ("coin-struck", 0, 4)
    assert all(abs(offset[5] - topic["ts"].__int__()) < 5000 for offset in topic["offsets"]), (
        "its host's clock was in UTC"
    )


def connections(*reported):
    admin = Admin(dt.UTC, BrokerNames())
    admin.names.add("die-1", 0, "10.0.0.1:10911")
    path = next((DATA / "mqadmin-5.3.3").glob("*_consumerConnection.txt"))
    text = path.read_text().replace("-g counters", "-g counters -b 10.0.0.1:10911")
    for old, new in reported:
        text = text.replace(old, new)
    [output] = outputs_of(text, dt.UTC)
    return {stem: KINDS[stem].decode(line_of(record)) for stem, record in admin.records_of(output, 1795471750541)}


def test_the_connections_of_a_known_broker_are_its_list_of_members():
    found = connections()
    members, answer = found["consumer_lists"], found["consumer_connections"]
    assert sorted(members["cid_all"]) == sorted(each[0] for each in answer["connections"])
    assert (members["consumer_group"], members["broker_name"], members["broker_id"]) == ("counters", "die-1", 0)
    assert (answer["broker_name"], answer["broker_id"]) == ("die-1", 0)


@pytest.mark.parametrize(
    "reported",
    [
        ("10.0.0.1:10911", "10.0.0.2:10911"),
        (" -b 10.0.0.1:10911", ""),
        ("127.0.0.1:46360        JAVA", "127.0.0.1:46360"),
        ("127.0.0.1:46360 ", "of"),
        ("\n\nBelow", "\nBelow"),
    ],
    ids=["broker unknown", "no broker", "no version", "no address", "no end"],
)
def test_connections_that_are_not_surely_all_of_one_broker_are_no_list_of_members(reported):
    assert list(connections(reported)) == ["consumer_connections"]


def test_clients(outputs):
    version, found = outputs
    answer = only(found.records["consumerConnection.txt"], "consumer_connections")
    number = 407 if version == "4.9.7" else 479
    assert sorted((c[0].partition("@")[0], c[2], c[3]) for c in answer["connections"]) == [
        ("10.7.0.1", "JAVA", number),
        ("10.7.0.2", "JAVA", number),
    ]
    assert {s[0] for s in answer["subscriptions"]} == {"coin-struck", "%RETRY%counters"}
    assert answer["message_model"] == "CLUSTERING"
    held = only(found.records["consumerStatus_i.txt"], "assignments")
    assert (held["client_id"], held["consumer_group"], held["source"]) == (CLIENTS[version], "counters", "running_info")
    assert held["strategy"] == "AVG"
    assert [queue[:3] for queue in held["queues"]] == [
        ("%RETRY%counters", "die-1", 0),
        ("coin-struck", "die-1", 0),
        ("coin-struck", "die-1", 1),
    ]
    if version == "5.3.3":
        of_file = only(found.records[CLIENTS[version]], "assignments")
        assert of_file["client_id"] == CLIENTS[version], "the file's name tells it"
        assert of_file["queues"][0][:3] == held["queues"][0][:3]


def test_figures_routes_and_resets(outputs):
    version, found = outputs
    both = [record for _, record in found.records["brokerStatus_c.txt"]]
    assert [(r["broker_name"], r["broker_id"]) for r in both] == [("die-1", 0), ("die-1", 1)]
    assert both[0]["broker_version_desc"] == f"V{version.replace('.', '_')}"
    assert both[0]["commit_log_max_offset"] == both[1]["commit_log_max_offset"] > 0
    assert only(found.records["brokerStatus_b.txt"], "broker_runtime")["broker_id"] == 0
    route, listed = (only(found.records[name], "routes") for name in ("topicRoute.txt", "topicRoute_l.txt"))
    assert route["queue_datas"] == listed["queue_datas"] == [("die-1", 4, 4, 6, 0)]
    assert route["broker_datas"] == listed["broker_datas"]
    reset = only(found.records["resetOffsetByTime.txt"], "server_requests")
    assert (reset["consumer_group"], reset["topic"]) == ("counters", "coin-struck")
    assert sorted(offset[2] for offset in reset["reset_offsets"]) == [0, 1, 2, 3]


def test_what_gives_nothing_says_why(outputs):
    _, found = outputs
    assert "code 17: No topic route info" in found.refused["consumerProgress_none.txt"]
    assert "code 17: No topic route info" in found.refused["topicStatus_none.txt"]
    assert "consumerProgress -g GROUP" in found.refused["consumerProgress.txt"]
    assert "without -m" in found.refused["clusterList_m.txt"]
    assert "-i CLIENT" in found.refused["consumerStatus.txt"]


def test_without_command_lines_the_headings_tell():
    lines = []
    for name in ("clusterList", "consumerProgress_counters", "topicRoute", "consumerConnection"):
        [path] = (DATA / "mqadmin-4.9.7").glob(f"*_{name}.txt")
        lines += path.read_text().splitlines()[1:]
    found = outputs_of("\n".join(lines), dt.UTC)
    assert [output.command for output in found] == [
        "clusterList",
        "consumerProgress",
        "topicRoute",
        "consumerConnection",
    ]
    admin = Admin(dt.UTC, BrokerNames())
    [(_, stats)] = admin.records_of(found[1], 1795471911100)
    assert stats["consumer_group"] == "counters", "its retry topic tells the group"
    assert stats["broker_id"] == 0, "mqadmin asks the master"
    with pytest.raises(DecodeError, match="names no topic"):
        admin.records_of(found[2], 1795471911100)


def test_times_of_a_loop():
    text = (DATA / "mqadmin-4.9.7" / "1795471911100_consumerProgress_counters.txt").read_text()
    dated = "".join(f"Sat Nov 21 02:39:{second} UTC 2026\n{text}" for second in (10, 20, 30))
    found = outputs_of(dated, dt.UTC)
    assert [output.ts_ms for output in found] == [1795228750000, 1795228760000, 1795228770000]
    undated = outputs_of(text * 3, dt.UTC)
    at = 1795228750000
    of_change = [time.ms for _, time in times_of(undated, None, at, dt.UTC, False)]
    assert of_change == [None, None, at], "the file ends with the last"
    named = NameTime(at, 1000, True, 0, 0)
    of_name = [time.ms for _, time in times_of(undated, named, None, dt.UTC, False)]
    assert of_name == [at, None, None], "its name is of its begin"


def test_a_zone_that_does_not_fit():
    path = DATA / "mqadmin-4.9.7" / "1795471925109_topicStatus.txt"
    [output] = outputs_of(path.read_text(), dt.UTC)
    west = Admin(dt.timezone(dt.timedelta(hours=-8)), BrokerNames())
    [(_, record)] = west.records_of(output, 1795471925109)
    assert all(offset[5] == 0 for offset in KINDS["topic_stats"].decode(line_of(record))["offsets"])
    assert round(west.context.times.latest_ahead_ms / 3_600_000) == 8


def test_names_that_may_be_cut_are_left_out():
    path = DATA / "mqadmin-4.9.7" / "1795471911100_consumerProgress_counters.txt"
    text = path.read_text().replace("coin-struck".ljust(64), "c" * 64)
    [output] = outputs_of(text, dt.UTC)
    admin = Admin(dt.UTC, BrokerNames())
    [(_, record)] = admin.records_of(output, 1)
    assert record["body"].count("brokerOffset") == 1
    assert sum(admin.left_out.values()) == 4


def test_a_queue_without_a_client() -> None:
    form = "{:<64}  {:<32}  {:<4}  {:<20}  {:<20}  {:<20} {:<20}  {}\n"
    names = ("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Client IP", "#Diff", "#LastTime")
    head = form.format(*names)
    table = form.format("T", "b", 0, 9, 4, "10.0.0.7", 5, "2020-11-12 08:40:02")
    table += form.format("T", "b", 1, 9, 2, "N/A", 7, "2020-11-12 07:12:40")
    command = "$ mqadmin consumerProgress -g g -s true\n"
    [(_, stats)] = Read(command + head + table).records
    assert stats["unheld"] == [("T", "b", 1)]
    [(_, stats)] = Read(command + head + table.replace("10.0.0.7", "N/A     ")).records
    assert stats["unheld"] is None, "no client answered"
