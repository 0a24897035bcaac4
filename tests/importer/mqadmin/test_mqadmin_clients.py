"""consumerStatus, brokerConsumeStats and consumerConnection of several versions."""

from __future__ import annotations

import pytest

from importer.mqadmin.mqadmin_texts import STORED, Read, group_row

PROPERTIES = "#Consumer Properties#\nconsumerGroup                           : g_ios\nmessageModel : CLUSTERING\n\n\n"
STATE = (
    "ProcessQueueInfo [commitOffset={0}, cachedMsgMinOffset={0}, cachedMsgMaxOffset=1097, cachedMsgCount={1}, "
    "newField=1, locked=false, tryUnlockTimes=0, lastLockTimestamp=20160511180314044, droped=false, "
    "lastPullTimestamp=20160511180514044, lastConsumeTimestamp=20160511180514044]"
)
DETAIL = "#Consumer MQ Detail#\n" + "{:<32}  {:<32}  {:<4}  {:<20}\n".format(
    "#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo"
)


def detail(topic, queue_id, state):
    return f"{topic:<32}  {'broker-1':<32}  {queue_id:<4}  {state}\n"


STATUS = PROPERTIES + DETAIL + detail("t_ios", 0, STATE.format(5103, 0)) + detail("t_ios", 1, STATE.format(98, 1000))


def test_the_queues_of_a_client_of_3_2():
    found = Read(f"ops@vlnx bin]$ ./mqadmin consumerStatus -g g_ios -i 10.0.0.14@cd21\n{STATUS}\n\n#Consumer RT&TPS#\n")
    [(stem, record)] = found.records
    assert (stem, record["client_id"], record["consumer_group"]) == ("assignments", "10.0.0.14@cd21", "g_ios")
    held = [(queue[2], queue[6], queue[7]) for queue in record["queues"]]
    assert held == [(0, 5103, 0), (1, 98, 1000)], "queue, commit, cached messages"


def test_names_here_are_never_cut():
    topic = "%RETRY%" + "g" * 57
    found = Read(f"mqadmin consumerStatus -g g -i a@1\n{PROPERTIES}{DETAIL}{detail(topic, 0, STATE.format(1, 0))}")
    assert [queue[0] for _, record in found.records for queue in record["queues"]] == [topic]


def test_a_queue_that_is_cut_refuses_the_client():
    found = Read(f"mqadmin consumerStatus -g g -i a@1\n{STATUS[:-60]}")
    assert found.records == []
    assert "is cut or broken" in found.refused[0], "without it the client would seem not to hold the queue"


def test_queues_that_a_client_shares_by_pop():
    pop = "#Consumer Pop Detail#\n" + DETAIL.partition("\n")[2]
    shared = "PopProcessQueueInfo [waitAckCount:2, droped:false, lastPopTimestamp:1770963000000]"
    found = Read(f"mqadmin consumerStatus -g g -i a@1\n{PROPERTIES}{DETAIL}\n\n{pop}{detail('t', 3, shared)}\n")
    [(_, record)] = found.records
    assert record["queues"] is None
    assert [queue[:5] for queue in record["pop_queues"]] == [("t", "broker-1", 3, False, 2)]


def test_the_client_by_its_properties():
    more = "clientIP : 10.0.0.1\ninstanceName : 7#9\nunitName : u\n"
    found = Read(PROPERTIES.replace("messageModel", f"{more}messageModel") + STATUS.removeprefix(PROPERTIES))
    assert [record["client_id"] for _, record in found.records] == ["10.0.0.1@7#9@u"]


@pytest.mark.parametrize(
    "rows",
    [
        "001  10.0.39.88@SYNC_TOOL                     V3_2_1               1483105100092/10.0.39.88@SYNC_TOOL\n",
        "#Index     #ClientId                                #Version             #ConsumerRunningInfoFile\n"
        "1          10.0.39.88@SYNC_TOOL                     V4_9_7               1483105100092/10.0.39.88@SYNC_TOOL\n",
    ],
    ids=["3.x", "4.x"],
)
@pytest.mark.parametrize("command", ["sh mqadmin consumerStatus -g SYNC\n", ""])
def test_a_list_of_clients(command, rows):
    blocked = "10.0.39.88@SYNC_TOOL MessageQueue [topic=%RETRY%t, brokerName=b, queueId=0] can't consume for a while, "
    found = Read(f"{command}{rows}\n\nSame subscription\n\nRebalance OK\n{blocked}maybe blocked, 597688ms\n")
    [refused] = found.refused
    assert "it only lists 1 client" in refused
    assert "10.0.39.88@SYNC_TOOL" in refused
    assert "1483105100092/10.0.39.88@SYNC_TOOL" in refused
    [remark] = found.admin.context.remarks
    assert blocked in remark


def test_a_list_that_failed():
    found = Read(
        "mqadmin consumerStatus -g g_grey -s\n#Index     #ClientId     #Version     #ConsumerRunningInfoFile\n"
        "com.alibaba.fastjson.JSONException: parseLong error, field : commitOffset\n\tat x.y(Z.java:86)\n"
    )
    assert found.refused == [
        "mqadmin consumerStatus -g g_grey failed: JSONException: parseLong error, field : commitOffset"
    ]


def broker_row(topic, group, *cells):
    return f"{topic:<32}  {group:<32}  " + group_row("", *cells)[66:]


def test_progress_of_all_groups_of_a_broker():
    heads = ("#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#LastTime")
    text = (
        "[root@x-5 bin]# sh mqadmin brokerConsumeStats -b  10.2.0.165:10911 -n 10.2.0.158:9876 -t 1000\n"
        + broker_row("#Topic", "#Group", *heads)
        + broker_row(
            "%RETRY%umbrella-binlog-consumer-", "umbrella-binlog-consumer-group", "broker-a", 0, 19, 19, 0, STORED
        )
        + broker_row("trade", "ship", "broker-a", 0, 141, 120, 21, STORED)
        + broker_row("trade", "ship", "broker-a", 1, 141, 141, 0, STORED)
        + broker_row("trade", "audit", "broker-a", 1, 141, -1, 142, STORED)
        + broker_row("trade", "audit", "broker-a", 2, 141, "", "", "")
        + "\nDiff Total: 163\n[root@x-5 bin]# ls\n"
    )
    found = Read(text)
    offsets_by_group = {record["consumer_group"]: [row[:5] for row in record["offsets"]] for _, record in found.records}
    assert offsets_by_group == {
        "ship": [("trade", "broker-a", 0, 141, 120), ("trade", "broker-a", 1, 141, 141)],
        "audit": [("trade", "broker-a", 1, 141, -1)],
    }
    assert sorted(found.admin.left_out.values()) == [1, 1], "a name that may be cut, and a cut row"


def test_offsets_past_the_end_and_times_of_zero():
    head = "#Topic #Broker Name #QID #Broker Offset #Consumer Offset #Client IP #Diff #Inflight #LastTime\n"
    found = Read(
        f"mqadmin consumerProgress -g g -s true\n{head}"
        "t b 0 352739517 1000000000 10.0.0.8 -647260483 0 1970-01-01 08:00:00\n"
        "t b 1 120 -1 N/A 121 0 -\nt b 2 7 7 10.0.0.8 0 0 N/A\n\nConsume TPS: 0.7166666666666666\n"
    )
    [(_, record)] = found.records
    rows = [row[2:] for row in record["offsets"]]
    assert rows == [(0, 352739517, 1000000000, None), (1, 120, -1, None), (2, 7, 7, None)]
    assert record["consume_tps"] == 0.7166666666666666
    assert found.admin.context.times.notes("UTC", False) == [
        "mqadmin printed the time 0 as that of a zone of +08:00; give --time-zone +08:00"
    ]
    assert found.admin.context.times.notes("Asia/Shanghai", True) == []


CLUSTER = (
    "$ mqadmin clusterList -n h:9876\n"
    "#Cluster Name           #Broker Name            #BID  #Addr                  #Version\n"
    "DefaultCluster          q1                      0     10.8.0.123:11911       V5_3_0               0.00(0,0ms)     "
    "0.00(0,0ms)  0-0(0.0w, 0.0, 0.0)               0  480097.14     0.0100          true\n"
)


def test_a_cluster_list_with_a_row_that_is_cut():
    cut = "DefaultCluster          q1                      1     10.8.0.12"
    for rest, broken in ((cut, 1), ("-bash: 10.0.2.15:9876: command not found\n", 0), ("[root@h bin]# ls\n", 0)):
        found = Read(CLUSTER + rest)
        [(_, record)] = found.records
        assert record["brokers"] == [("q1", "DefaultCluster", {0: "10.8.0.123:11911"})]
        assert found.broken == broken
        is_complete = found.admin.names.find(["q1"]) is not None
        assert is_complete is not bool(broken), "a broker may be missing"


@pytest.mark.parametrize("width", [80, 100, 120, 132, 150])
def test_a_cluster_list_that_a_terminal_broke(width):
    text = (
        "".join(line[at : at + width] + "\n" for line in CLUSTER.splitlines() for at in range(0, len(line), width))
        + "DefaultCluster          q2                      0     10.8.0.124:11911       V5_3_0          0.00(0,0ms)\n"
    )
    found = Read(text)
    assert [broker[0] for _, record in found.records for broker in record["brokers"]] == ["q1", "q2"]
    assert found.broken == 0


def test_a_connection_without_address_is_counted():
    text = (
        "mqadmin consumerConnection -g res-cg\n#ClientId                            #ClientAddr            #Language  "
        "#Version\n10.4.0.123@1                         10.4.0.123:43588       JAVA       V4_9_7\n10.4.0.124@1\n\n"
        "Below is subscription:\n#Topic               #SubExpression\nx     TagA || TagB\n\n"
        "ConsumeType: CONSUME_PASSIVELY\n"
    )
    found = Read(text)
    [(_, record)] = found.records
    assert [c[0] for c in record["connections"]] == ["10.4.0.123@1"]
    assert record["subscriptions"][0][1] == "TagA || TagB"
    assert found.broken == 1
