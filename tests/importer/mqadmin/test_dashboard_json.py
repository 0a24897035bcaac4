"""Answers of RocketMQ Dashboard and of clients, saved as JSON."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.importer.mqadmin.dashboard_json import json_answer_of, records_of_json
from mqreplay.importer.staging import line_of
from mqreplay.importer.times.printed_times import PrintedTimes
from mqreplay.words.errors import DecodeError

HEADER = '{"code": 0, "flag": 1, "language": "JAVA", "remark": "not set any response code", "version": 477}'
STATE = '{"cachedMsgCount": 0, "commitOffset": 72, "droped": false, "lastPullTimestamp": 1745305619173, "locked": true}'
PROPERTIES = {"PROP_CLIENT_VERSION": "V5_3_2", "consumerGroup": "CG-F"}

CONTEXT = AdminContext(BrokerNames(), PrintedTimes(dt.UTC))


def running_info(key, properties=PROPERTIES):
    return f'{{"mqPopTable": {{}}, "mqTable": {{{key}: {STATE}}}, "properties": {json.dumps(properties)}}}'


OBJECT_KEY = '{"brokerName": "POC-a", "queueId": 0, "topic": "%RETRY%CG-F"}'
JACKSON_KEY = '"MessageQueue [topic=%RETRY%CG-F, brokerName=POC-a, queueId=0]"'


def decoded(text, *names):
    records = records_of_json(json_answer_of(text), 1770964060000, names, CONTEXT)
    return [(stem, KINDS[stem].decode(line_of(record))) for stem, record in records]


@pytest.mark.parametrize("key", [OBJECT_KEY, JACKSON_KEY])
@pytest.mark.parametrize("form", ["INFO", HEADER + "INFO", '{"status": 0, "data": INFO, "errMsg": null}'])
def test_running_info_of_a_named_client(form, key):
    text = form.replace("INFO", running_info(key))
    [(stem, record)] = decoded(text, "10.0.0.1@7#9")
    assert (stem, record["client_id"], record["consumer_group"]) == ("assignments", "10.0.0.1@7#9", "CG-F")
    assert [(*queue[:3], queue[6]) for queue in record["queues"]] == [("%RETRY%CG-F", "POC-a", 0, 72)]
    named = running_info(key, {**PROPERTIES, "clientIP": "10.0.0.2", "instanceName": "5#6"})
    assert [record["client_id"] for _, record in decoded(form.replace("INFO", named))] == ["10.0.0.2@5#6"]


def test_running_info_of_an_unknown_client_says_what_to_give():
    with pytest.raises(DecodeError) as error:
        decoded(HEADER + running_info(OBJECT_KEY), "running_info.json")
    assert "a client's running info (GET_CONSUMER_RUNNING_INFO)" in error.value.detail
    assert (
        "does not name its client; give the output of mqadmin consumerStatus -g GROUP -i CLIENT" in error.value.detail
    )


def wrapped(data):
    return json.dumps({"status": 0, "data": data, "errMsg": None})


def test_progress_and_offsets():  # of the masters: no list shows that there is none
    row = {
        "brokerName": "b",
        "queueId": 1,
        "brokerOffset": 9,
        "consumerOffset": 7,
        "clientInfo": "c",
        "lastTimestamp": 5,
    }
    topics = [
        {"topic": "t", "diffTotal": 2, "lastTimestamp": 5, "queueStatInfoList": [row]},
        {"topic": "%RETRY%g", "diffTotal": 0, "lastTimestamp": 0, "queueStatInfoList": [row]},
    ]
    [(stem, record)] = decoded(wrapped(topics))
    assert (stem, record["consumer_group"], record["broker_id"]) == ("consume_stats", "g", 0)
    assert [offset[:5] for offset in record["offsets"]] == [("t", "b", 1, 9, 7), ("%RETRY%g", "b", 1, 9, 7)]
    offsets = {"minOffset": 0, "maxOffset": 9, "lastUpdateTimestamp": 5}
    text = wrapped({"offsetTable": {"MessageQueue [topic=t, brokerName=b, queueId=1]": offsets}})
    [(stem, record)] = decoded(text)
    assert (stem, record["topic"], record["offsets"]) == ("topic_stats", "t", [("t", "b", 1, 0, 9, 5)])
    with pytest.raises(DecodeError, match="it names no group; give the output of mqadmin consumerProgress -g GROUP"):
        decoded(wrapped(topics[:1]))


def test_connections():
    one = {"clientId": "c@1", "clientAddr": "10.0.0.1:4", "language": "JAVA", "version": 407, "versionDesc": "V4_9_7"}
    table = {"%RETRY%g": {"topic": "%RETRY%g", "subString": "*"}}
    [(stem, record)] = decoded(wrapped({"connectionSet": [one], "subscriptionTable": table}))
    assert (stem, record["consumer_group"]) == ("consumer_connections", "g")
    assert record["connections"] == [("c@1", "10.0.0.1:4", "JAVA", 407)]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"clusterInfo": {"brokerAddrTable": {}, "clusterAddrTable": {}}, "brokerServer": {}}, "mqadmin clusterList"),
        ({"brokerDatas": [], "queueDatas": []}, "mqadmin topicRoute -t TOPIC"),
        ([{"group": "g", "count": 1, "consumeTps": 0, "diffTotal": 5}], "mqadmin consumerProgress -g GROUP"),
        ({"mqTable": 5}, "mqadmin consumerStatus -g GROUP -i CLIENT"),
        ({"connectionSet": 5, "subscriptionTable": []}, "mqadmin consumerConnection -g GROUP -b ADDR"),
        ({"offsetTable": [], "minOffset": 1}, "mqadmin topicStatus -t TOPIC"),
        ([{"queueStatInfoList": 5}], "mqadmin consumerProgress -g GROUP"),
        ([5, {"queueStatInfoList": []}], "mqadmin consumerProgress -g GROUP"),
    ],
)
def test_other_answers_get_a_word(data, word):
    with pytest.raises(DecodeError) as error:
        decoded(wrapped(data))
    assert error.value.detail.endswith(f"give the output of {word}")


@pytest.mark.parametrize("text", ["", "{", "[]", "notes", '{"mqTable": ', '{"a": {"b": 1}}', "{" * 100])
def test_other_texts(text):
    assert json_answer_of(text) is None
