"""Files with outputs of mqadmin: their encodings, their times, and what the report says of each."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os

import pytest

from importer.mqadmin.mqadmin_texts import GROUP, STORED, TOPIC, TOPIC_COMMAND, topic_row
from importer.mqadmin.test_mqadmin_terminals import ERROR
from mqreplay.importer.import_command import import_evidence
from mqreplay.words.errors import InputError

SESSION = f"$ {TOPIC_COMMAND}{TOPIC}"
AT = "20260213T062800Z/a.txt"
MOMENT = 1770964080000


class Imported:
    """The report of an import of files, and its records."""

    def __init__(self, folder, files, time_zone=None):
        for name, content in files.items():
            path = folder / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            os.utime(path, (MOMENT // 1000 + 86_400 * 9,) * 2)
        out = io.StringIO()
        with contextlib.suppress(InputError):  # nothing could be used: the report says so
            import_evidence([str(folder / "in")], str(folder / "out"), out, time_zone=time_zone, as_json=True)
        self.report = json.loads(out.getvalue())
        self.records = [
            (path.name.partition(".")[0], json.loads(line))
            for path in sorted((folder / "out").glob("*.jsonl.gz"))
            for line in gzip.decompress(path.read_bytes()).splitlines()
        ]
        self.refused = [each["why"] for each in self.report["not_recognised"]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"])
def test_encodings(tmp_path, encoding):
    found = Imported(tmp_path, {AT: f"\r\n输出\r\n{SESSION}".replace("\n", "\r\n").encode(encoding)})
    assert [(stem, record["topic"]) for stem, record in found.records] == [("topic_stats", "orders")]
    assert found.refused == []


def test_rows_before_an_error_are_kept(tmp_path):
    found = Imported(tmp_path, {AT: SESSION + ERROR})
    assert len(found.records) == 1
    [why] = found.refused
    assert why.startswith("mqadmin topicStatus -t orders failed: code 17: No topic route info")
    assert why.endswith("(what it printed before is used)")


def test_left_out_rows_are_in_the_report_with_an_example(tmp_path):
    broken = topic_row("broker-a", "x", 0, 640, "N/A")
    found = Imported(tmp_path, {AT: SESSION + broken, "1770964140/b.txt": SESSION + broken})
    [(reason, count)] = found.report["left_out"].items()
    assert count == 2
    assert "mqadmin topicStatus" in reason
    assert "'broker-a x 0 640 N/A'" in reason


def test_the_last_change_is_never_taken_without_a_word(tmp_path):
    found = Imported(tmp_path, {"a.txt": SESSION})
    assert len(found.records) == 1
    assert any("time of 1 output of mqadmin: the time of its last change" in note for note in found.report["notes"])
    assert any("a copy may have changed that" in note for note in found.report["notes"]), "nine days after its rows"


def test_a_day_as_folder(tmp_path):
    found = Imported(tmp_path, {"2026-02-13/a.txt": SESSION}, "Asia/Shanghai")
    [(_, record)] = found.records
    assert record["ts"] == 1770935250408
    assert '"lastUpdateTimestamp":1770935250408' in record["body"]
    assert not any("ahead" in note or "later than" in note for note in found.report["notes"])


def test_a_wrong_zone_is_named_as_such_if_the_user_gave_it(tmp_path):
    for zone_option, word in (
        (None, "8 hours ahead of UTC; give --time-zone"),
        ("+00:00", "its host is not in +00:00"),
    ):
        text = f"Fri Feb 12 22:27:40 UTC 2026\n{SESSION}"
        found = Imported(tmp_path / str(zone_option), {"a.txt": text}, zone_option)
        assert any(word in note for note in found.report["notes"]), found.report["notes"]


def test_a_failure_says_more_than_a_missing_date(tmp_path):
    found = Imported(tmp_path, {"a.txt": f"$ mqadmin consumerProgress -g g\n{ERROR}" * 2 + f"$ {TOPIC_COMMAND}" * 2})
    failed, empty = "mqadmin consumerProgress -g g failed", "mqadmin topicStatus has no output in it"
    assert sorted(why.partition(":")[0] for why in found.refused) == [failed, failed, empty, empty]


def test_json_of_a_client(tmp_path):
    text = '{"mqTable":{},"properties":{"consumerGroup":"g"},"subscriptionSet":[]}'
    found = Imported(tmp_path, {"1770964080/10.0.0.1@7#9": text, AT: text})
    assert [(stem, record["client_id"]) for stem, record in found.records] == [("assignments", "10.0.0.1@7#9")]
    [why] = found.refused
    assert "consumerStatus -g GROUP -i CLIENT" in why


@pytest.mark.long
def test_a_large_log_is_not_refused_as_too_large_for_mqadmin(tmp_path):
    line = "2026-02-13 14:27:40 INFO ClientManageThread_1 - new consumer connected, group: pay CONSUME_PASSIVELY x\n"
    found = Imported(tmp_path, {"logs/broker.log": line * 180_000})
    assert not any("MiB" in why or "bytes" in why for why in found.refused)


def test_other_texts_are_no_outputs(tmp_path):
    found = Imported(
        tmp_path, {"notes.txt": "notes of the night\n{\n}\n", AT: f"mqadmin consumerProgress -g pay\n{GROUP}"}
    )
    assert found.refused == ["it is neither a file that import knows nor an output of mqadmin"]
    assert len(found.records) == 1


@pytest.mark.parametrize(
    ("times", "stored", "notes"),
    [
        (
            ("04:10",),
            "2026-02-13 02:42:10",
            ["31 messages of g on orders in broker-a/0, which waits at 600"],
        ),
        (("04:10", "04:14"), "2026-02-13 02:42:10", []),
        (("04:10",), "2026-02-13 04:09:40", []),
    ],
    ids=["one", "two", "fresh"],
)
def test_one_output_alone_shows_no_offset_that_stands_still(tmp_path, times, stored, notes):
    """apache/rocketmq#2422: 912 messages wait in one output, and nothing shows since when."""
    outputs = [
        f"$ date -u\nFri Feb 13 {at}:00 UTC 2026\n$ sh mqadmin consumerProgress -g g\n{GROUP.replace(STORED, stored)}"
        for at in times
    ]
    report = Imported(tmp_path, {"a.txt": "".join(outputs)}).report
    again = "one output shows a lag, and not whether it grows: give mqadmin consumerProgress -g GROUP again"
    assert [note.partition("The largest is ")[2] for note in report["notes"] if note.startswith(again)] == notes
