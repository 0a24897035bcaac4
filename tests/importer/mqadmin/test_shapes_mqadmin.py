"""Outputs of mqadmin in the shapes that operators reported: pasted, redirected, marked, of all versions."""

from __future__ import annotations

import re

from import_shapes import Imported, ms, shape

Queue = tuple[str, str, int]


def progress(imported: Imported, group: str) -> dict[Queue, tuple[int, int]]:
    """The queue's end and the group's offset by (topic, broker, queue), of all answers for a group."""
    rows = [row for row in imported.rows("consume_stats") if row["consumer_group"] == group]
    return {tuple(of[:3]): (of[3], of[4]) for row in rows for of in row["offsets"]}


def ends(imported: Imported, topic: str) -> list[tuple[int, dict[int, tuple[int, int]]]]:
    """The time of each answer for a topic, and its (begin, end) by queue."""
    rows = [row for row in imported.rows("topic_stats") if row["topic"] == topic]
    return [(row["ts"], {of[2]: (of[3], of[4]) for of in row["offsets"]}) for row in rows]


def listed(imported: Imported) -> list[dict[str, dict[int, str]]]:
    """The addresses of the brokers by name and id, of each clusterList."""
    return [{name: addrs for name, _, addrs in row["brokers"]} for row in imported.rows("cluster_info")]


@shape("11-55-pop-retry-container-id")
def test_a_group_of_pop_on_a_broker_named_by_its_container(imported):
    """Notes on retries of 5.5: new columns, a comment after the command, a last column that is empty."""
    assert imported.status == 0
    found = progress(imported, "BadCG")
    assert len(found) == 5
    assert {broker for _, broker, _ in found} == {"873fe6a3414c"}
    assert found["%RETRY%BadCG_Test", "873fe6a3414c", 0] == (3, 3)
    assert {row["consumer_group"] for row in imported.rows("consume_stats")} == {"BadCG"}
    assert imported.rows("consume_stats")[0]["ts"] == ms("2026-06-07T02:50:00Z")
    assert ends(imported, "%DLQ%BadCG") == [(ms("2026-06-07T02:51:00Z"), {0: (0, 2), 1: (0, 0), 7: (0, 0)})]


@shape("12-lower-case-commands")
def test_commands_in_lower_case(imported):
    """alibaba/rocketmq#448: MQAdminStartup#findSubCommand compares names without regard to case."""
    assert imported.status == 0
    assert imported.refused == []
    assert listed(imported) == [{"broker-a": {0: "172.16.0.14:10911", 1: "172.16.0.15:11911"}}]
    assert [queues for _, queues in ends(imported, "orders")] == [{0: (0, 631), 1: (0, 640)}]
    assert progress(imported, "pay-cg") == {
        ("orders", "broker-a", 0): (631, 600),
        ("orders", "broker-a", 1): (640, 640),
    }


@shape("13-unquoted-semicolons")
def test_name_servers_that_the_shell_took_for_commands(imported):
    """apache/rocketmq#3275: only the first name server was asked."""
    assert imported.status == 0
    assert {row["brokers"][0][1] for row in imported.rows("cluster_info")} == {"DefaultCluster"}
    [brokers] = listed(imported)
    assert {name: sorted(addrs) for name, addrs in brokers.items()} == {"broker-a": [0, 1], "broker-b": [0]}
    assert imported.brokers()["name_servers"] == ["10.7.0.184:9876", "10.7.0.15:9876", "10.7.0.217:9876"]
    [row] = imported.rows("cluster_info")
    assert row["namesrv_addr"] in (None, "10.7.0.184:9876")


@shape("b03-clusterlist-4.9-prompt")
def test_complaints_of_the_shell_after_a_table(imported):
    assert imported.status == 0
    [brokers] = listed(imported)
    assert {name: sorted(addrs) for name, addrs in brokers.items()} == {"broker-a": [0, 1], "broker-b": [0, 1]}
    assert imported.brokers()["cluster"] == "DefaultCluster"
    assert "-bash" not in str(imported.records("cluster_info"))


@shape("14-53-clusterlist")
def test_columns_of_5_3(imported):
    """Scripts for docker, whose README has an output of 5.3."""
    assert imported.status == 0
    [brokers] = listed(imported)
    assert {name: sorted(addrs) for name, addrs in brokers.items()} == {"q1": [0, 1], "q3": [0]}
    assert imported.brokers()["cluster"] == "DefaultCluster"
    assert imported.brokers()["rocketmq_version"] == "5.3.0"


@shape("20-dashboard-running-info")
def test_running_info_as_the_dashboard_shows_it(imported):
    """apache/rocketmq-dashboard#297: the answer to GET_CONSUMER_RUNNING_INFO, its header first."""
    if imported.status == 0:
        queues = [tuple(queue[:3]) for row in imported.rows("assignments") for queue in row["queues"]]
        assert sorted(queues) == [("%RETRY%CG-F", "POC-a", 0), ("%RETRY%CG-F", "POC-b", 0)]
        assert {row["consumer_group"] for row in imported.rows("assignments")} == {"CG-F"}
    else:
        [(_, why)] = imported.refused
        assert "running info" in why or "GET_CONSUMER_RUNNING_INFO" in why
        assert "consumerStatus" in why
        assert "-i" in why


@shape("29-consumer-connection-long-id")
def test_client_ids_that_are_wider_than_their_column(imported):
    """A guide of commands for operators."""
    assert imported.status == 0
    [row] = imported.rows("consumer_connections")
    assert (row["consumer_group"], row["message_model"]) == ("res-cg", "CLUSTERING")
    assert [client for client, *_ in row["connections"]] == [
        "10.4.0.123@10.4.0.123:9876@20@1245146303493722",
        "10.4.0.124@10.4.0.123:9876@21@1245146303493733",
    ]
    assert ("restopicExchange", "TagA || TagB") in [of[:2] for of in row["subscriptions"]]


@shape("30-41-broker-status")
def test_status_of_a_cluster_of_4_1(imported):
    """Notes on the tools of 4.1: brokerStatus -c, with dots where lines were cut out."""
    assert imported.status == 0
    assert listed(imported) == [{"broker-a": {0: "localhost:10911", 1: "localhost:10912"}}]
    assert imported.brokers()["rocketmq_version"].startswith("4.1.0")
    figures = {(one["broker_name"], one["broker_id"]): one["table"] for one in imported.records("broker_runtime")}
    assert {broker: len(table) for broker, table in figures.items()} == {("broker-a", 0): 4, ("broker-a", 1): 2}
    assert figures["broker-a", 1]["bootTimestamp"] == "1520772974600"


@shape("31-script-markers")
def test_markers_of_a_script_between_outputs(imported):
    """A script for inspections: no command lines, the address of the broker is the folder."""
    assert imported.status == 0
    assert listed(imported) == [{"broker-a": {0: "172.31.0.11:10911", 1: "172.31.0.12:10911"}}]
    runtime = imported.rows("broker_runtime")
    if runtime:
        assert [(row["broker_name"], row["broker_id"]) for row in runtime] == [("broker-a", 0)]
        assert runtime[0]["broker_version_desc"] == "V4_9_7"
    else:
        assert any("broker" in why for _, why in imported.refused)
    assert "__IO_RMQ" not in str(imported.everything())


@shape("32-broker-consume-stats")
def test_broker_consume_stats(imported):
    """brokerConsumeStats, whose topics and groups are cut at 32 characters."""
    assert "is not used" not in imported.words
    if imported.status == 0:
        assert progress(imported, "tradeShipping") == {("topic-prod-trade", "broker-a", 0): (141, 120)}
        assert "umbrella-binlog-consumer-" not in [
            topic.removeprefix("%RETRY%") for row in imported.rows("consume_stats") for topic, *_ in row["offsets"]
        ]
        assert 1 in imported.report["left_out"].values() or re.search(r"\bcut\b", imported.words), "the cut row"
    else:
        assert "consumerProgress -g" in imported.words


@shape("37-prompt-after-table")
def test_a_prompt_after_a_table(imported):
    """Sessions with 4.x, which prints no blank line after the table of topicStatus."""
    assert imported.status == 0
    assert imported.refused == []
    assert ends(imported, "orders") == [
        (ms("2026-02-13T06:27:40Z"), {0: (0, 631), 1: (0, 640)}),
        (ms("2026-02-13T06:28:40Z"), {0: (0, 700)}),
    ]


@shape("34-powershell-utf16")
def test_what_powershell_writes(imported):
    """As apache/rocketmq#3401: UTF-16 with a BOM, UTF-8 with a BOM, and CRLF."""
    assert imported.status == 0
    found = ends(imported, "orders")
    seconds = [0, 1, 2]
    if imported.refused:
        assert [path for path, _ in imported.refused] == ["20260213T062800Z/utf16.txt"]
        assert "UTF-16" in imported.words
        seconds = [1, 2]
    assert sorted(found) == [(ms(f"2026-02-13T06:28:0{second}Z"), {0: (0, 631)}) for second in seconds]


@shape("b22-utf8-bom-mqadmin")
def test_a_bom_with_and_without_a_command(imported):
    assert imported.status == 0
    assert imported.refused == []
    assert listed(imported) == [{"broker-a": {0: "10.0.2.184:10911"}}] * 3
    assert [row["ts"] // 1000 for row in imported.rows("cluster_info")] == [1616407920, 1616407980, 1616408040]


@shape("b04-consumerstatus-3.2.6")
def test_a_running_client_of_3_2_6(imported):
    """Queue 1 holds 1,000 messages and was not consumed for 25 minutes."""
    assert imported.status == 0
    [row] = imported.rows("assignments")
    assert row["consumer_group"] == "g_ios"
    assert row["client_id"] == "10.0.0.14@cd21e6f5-648f-4f5a-9af2-cab2c5c194db"
    assert [queue[:3] for queue in row["queues"]] == [("t_ios", "broker-1", 0), ("t_ios", "broker-1", 1)]
    [record] = imported.records("assignments")
    first, second = re.findall(r'"commitOffset":(\d+).*?"cachedMsgCount":(\d+)', record["body"])
    assert (first, second) == (("5103", "0"), ("98", "1000"))


@shape("b05-consumerstatus-failed")
def test_a_command_that_failed_and_a_list_of_clients(imported):
    whys = dict(imported.refused)
    assert re.search("fail|JSONException|error", whys["ops/a.txt"]), "the command failed"
    assert "ops/b.txt" in whys or "block" in imported.words
    if "ops/b.txt" in whys:
        assert re.search("list", whys["ops/b.txt"])
    assert imported.status == 2 or all("g_grey" not in str(one) for one in imported.everything())


@shape("b15-consumerprogress-negative")
def test_offsets_past_the_end(imported):
    """consumerProgress of 4.8 with a negative Diff, and of 3.x without #Client IP."""
    assert imported.status == 0
    new, old = progress(imported, "g_canal"), progress(imported, "g_old")
    assert new["t_bin", "broker-0", 0] == (352739517, 1000000000)
    assert new["t_bin", "broker-0", 1] == (352739000, 352739000)
    assert new["%RETRY%g_canal", "broker-0", 0] == (0, 0)
    assert old == {("t_old", "broker-x", 0): (120, -1), ("t_old", "broker-x", 1): (120, 130)}


@shape("b18-date-cst-progress")
def test_a_zone_of_date_that_is_ambiguous(imported):
    """CST is China's time and Central Standard Time; without --time-zone it is named."""
    assert "CST" in imported.words
    assert "--time-zone" in imported.words


@shape("b18-date-cst-progress", "--time-zone", "+08:00")
def test_a_zone_of_date_that_the_user_gives(imported):
    assert imported.status == 0
    times = [(row["ts"], row["offsets"][0][4], row["offsets"][0][5]) for row in imported.rows("consume_stats")]
    consumed = ms("2021-03-22T10:11:12+08:00")
    assert times == [
        (ms("2021-03-22T10:12:00+08:00"), 100, consumed),
        (ms("2021-03-22T10:13:00+08:00"), 90, consumed),
    ]


@shape("b21-date-only-folder-progress", "--time-zone", "Asia/Shanghai")
def test_a_folder_of_a_date_makes_no_time(imported):
    assert imported.status == 0
    assert "ahead" not in imported.words
    [row] = imported.rows("consume_stats")
    consumed = ms("2021-03-22T10:11:12+08:00")
    assert row["offsets"] == [("t_bin", "broker-0", 1, 352739000, 352739000, consumed)]
    assert consumed <= row["ts"] < ms("2021-03-23T00:00:00+08:00")
