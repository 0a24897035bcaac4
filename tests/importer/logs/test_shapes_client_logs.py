"""Logs of clients in the shapes that operators reported: of applications, of other clients, of consoles."""

from __future__ import annotations

import re

from import_shapes import Imported, ms, shape

FALSE_WORDS = ("has a message that import uses", "none of its lines is in a layout")


def commits(imported: Imported) -> list[tuple[str, str, int, int]]:
    """(topic, broker, queue, offset) of each commit, the earliest first."""
    found = sorted(imported.rows("offset_commits"), key=lambda row: row["ts"])
    return [(row["topic"], row["broker_name"], row["queue_id"], row["commit_offset"]) for row in found]


def held(imported: Imported) -> dict[tuple[str, str, str, int], tuple[str, int]]:
    """(client, since when) of each queue (group, topic, broker, queue) that a client is shown to hold."""
    found = {}
    for row in sorted(imported.rows("assignments"), key=lambda row: -row["ts"]):
        for topic, broker, queue, *_ in row["queues"]:
            found[row["consumer_group"], topic, broker, queue] = (row["client_id"], row["ts"])
    return found


def counted(imported: Imported, *words: str) -> int:
    """How many lines or facts with one of these words in their form were left out."""
    forms = [*imported.report["left_out"].items(), *imported.lines["left_out"].items()]
    return sum(number for form, number in forms if any(word in form.casefold() for word in words))


def whole(imported: Imported) -> bool:
    """Whether each line that was read is used or counted."""
    return imported.lines["read"] == imported.lines["used"] + sum(imported.lines["left_out"].values())


def refused_as(imported: Imported, word: str) -> bool:
    """Whether all files were refused, each with a reason that has this word (a regular expression)."""
    whys = [why for _, why in imported.refused]
    return imported.status == 2 and bool(whys) and all(re.search(word, why) for why in whys)


def no_false_word(imported: Imported) -> bool:
    """Whether no file with RocketMQ's messages was called one without them."""
    return not any(word in imported.words for word in FALSE_WORDS)


@shape("03-cpp-client-log")
def test_a_log_of_the_cpp_client(imported):
    """apache/rocketmq-client-cpp#318, #293: its own name, and renamed."""
    assert no_false_word(imported)
    if imported.status == 0:
        offsets = (19035, 19040, 19045, 19090)
        assert commits(imported) == [("note", "broker-c", 5, offset) for offset in offsets]
    else:
        assert refused_as(imported, r"C\+\+")
        assert len(imported.refused) + imported.report["repeated"] == 2
    assert whole(imported)


@shape("b16-cpp-client-log")
def test_one_line_of_the_cpp_client(imported):
    """rocketmq-client-cpp: the name of a rotated file has no .log at its end."""
    assert no_false_word(imported)
    assert re.search(r"C\+\+", str(imported.recognised) + imported.words), "it is reported by name"
    if imported.status == 0:
        assert commits(imported) == [("t", "broker-c", 6, 19034)]
    else:
        assert refused_as(imported, r"C\+\+")
        assert len(imported.refused) + imported.report["repeated"] == 2


@shape("04-cpp-spdlog", "--json")
def test_spdlog_of_the_cpp_client(imported):
    """apache/rocketmq-client-cpp#345: the messages of the Java client in the pattern of spdlog."""
    assert no_false_word(imported)
    assert whole(imported)
    assert imported.lines["read"] == 2
    in_records = ("orderly-cg", "t1", "broker-a", 0) in held(imported)
    as_read = imported.lines["used"] == 2 or counted(imported, "queue", "lock") == 2
    shown = any("[2026-02-01 14:24:22.570] [info]" in why for _, why in imported.refused)
    assert in_records or as_read or shown


@shape("05-seatunnel-log4j2", "--time-zone", "+08:00")
def test_a_pattern_of_log4j2_with_a_trace_id_first(imported):
    """apache/seatunnel#9959: the log of an application that uses the client."""
    assert no_false_word(imported)
    if imported.status == 0:
        assert commits(imported) == [("track", "broker-a", 3, 500)]
        [row] = imported.rows("offset_commits")
        assert (row["consumer_group"], row["client_id"]) == ("track-cg", "10.3.0.7@55")
        assert row["ts"] == ms("2026-10-16T20:40:56.001+08:00")
        queue = held(imported).get(("track-cg", "track", "broker-a", 3))
        assert queue == ("10.3.0.7@55", ms("2026-10-16T20:40:51.001+08:00")) or counted(imported, "queue") == 1
    else:
        assert refused_as(imported, "1031178795459018753|pattern")
    assert whole(imported)


@shape("b06-applog-seatunnel")
def test_a_pattern_of_log4j2_without_a_client(imported):
    """The same pattern, and no line that names the client."""
    assert no_false_word(imported)
    assert len(imported.recognised) + len(imported.refused) + imported.report["repeated"] == 2
    if ("g_track", "t_track", "broker-a", 0) not in held(imported):
        assert counted(imported, "queue") == 4 or refused_as(imported, "1031178795459018753|pattern|form")
    assert whole(imported)


@shape("b07-applog-eventmesh-slf4j")
def test_a_client_log_through_slf4j(imported):
    """EventMesh: the class of the logger and its line before the message."""
    assert imported.status == 0
    assert no_false_word(imported)
    topic = "FT0-e-80010001-01-1"
    assert commits(imported) == [("%RETRY%ConsumerGroup-g1-FT0", "broker-a", 0, 0), (topic, "broker-a", 3, 42)]
    assert {row["client_id"] for row in imported.rows("offset_commits")} == {"10.0.17.1@g1-FT0-region1(COMMON)-3.0.0-0"}
    assert whole(imported)


@shape("07-console-without-date")
def test_lines_with_a_time_and_no_date(imported):
    """A quick start of 3.x with its console log."""
    assert imported.status == 2
    assert refused_as(imported, r"\bdate\b")
    assert no_false_word(imported)


@shape("21-5x-client-masked-addresses")
def test_a_client_whose_addresses_are_masked(imported):
    """apache/rocketmq#7570: a commit names the client of a queue that was added before."""
    assert imported.status == 0
    assert commits(imported) == [("TJ", "broker-a", 1, 77)]
    queue = held(imported).get(("CID_J", "TJ", "broker-a", 1))
    assert queue == ("x.x.x.x@46212#1", ms("2026-11-17T10:20:30.890+08:00"))
    assert "+08:00" in imported.recognised["rocketmq_client.log"], "the time zone is stated"


@shape("35-44-client-log", "--time-zone", "+08:00")
def test_ons_log_is_known_by_its_lines(imported):
    """apache/rocketmq#1959 and the log of the Aliyun ONS client, which is the same under another name."""
    assert no_false_word(imported)
    assert "client" in imported.recognised["rocketmq_client.log"]
    if any(path == "ons/ons.log" for path, _ in imported.refused):
        assert "rocketmq_client.log" in dict(imported.refused)["ons/ons.log"]
        return
    assert "client" in imported.recognised["ons/ons.log"]
    queue = ("GID_x", "MQ_INST_1111_DOxxxx%t", "qdinternet-02", 3)
    if queue in held(imported):
        assert held(imported)[queue] == ("10.0.31.163@1587712890005", ms("2026-04-24T15:21:31.030+08:00"))
    else:
        assert counted(imported, "queue") == 1
    assert whole(imported)


@shape("b08-client5-crlf-gbk-ons")
def test_crlf_and_one_line_of_gbk(imported):
    """A client of 5.x on Windows: one line in another encoding costs no other line."""
    assert no_false_word(imported)
    assert set(imported.recognised) | {path for path, _ in imported.refused} == {
        "client-ali/ons.log",
        "client-win/rocketmq_client.log",
    }
    queues = [("CID_JODIE_1", "TopicTest", "broker-a", queue) for queue in (0, 1)]
    assert all(queue in held(imported) for queue in queues) or counted(imported, "queue") >= 2
    assert whole(imported)
    assert sum(imported.lines["left_out"].values()) >= 1, "the line of GBK is no fact"


@shape("49-go-client-log")
def test_a_log_of_the_go_client(imported):
    """apache/rocketmq-client-go#510, #491: logrus in two forms, one without a time."""
    assert imported.status == 2
    assert refused_as(imported, r"\bGo\b")
    assert no_false_word(imported)
