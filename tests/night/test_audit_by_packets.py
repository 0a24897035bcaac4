"""The audit of a capture alone: against what the clients of a night counted, and against the logs of the sample."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from importer.captures.small_captures import CAPTURE, NIGHT, import_captures
from mqreplay.decode.kinds import KINDS
from mqreplay.evidence.messages.deliveries import DONE
from night.made_nights import JudgedNight, judge_folder, judged_night, truth_of

NIGHTS = ("refusals-4.9.7", "refusals-5.3.3", "consumers-4.9.7", "consumers-5.3.3")
Sums = dict[tuple[str, str], dict[str, int | None]]


def audit_of(night: JudgedNight) -> Sums:
    rows = night.table("gold.delivery_audit")
    assert set(rows["source"]) == {"packets"}
    return {(row["consumer_group"], row["topic"]): row for row in rows.to_dicts()}


def groups_of(name: str) -> dict[tuple[str, str], str]:
    """Return each group and topic of the night's consumers, and where the group started."""
    clients = [client for client in truth_of(name)["clients"] if client["consumer_group"] is not None]
    return {
        (client["consumer_group"], subscription.partition(":")[0]): client["start_from"]
        for client in clients
        for subscription in client["subscriptions"].split(",")
    }


@pytest.mark.parametrize("name", NIGHTS)
@pytest.mark.first_case
def test_a_capture_has_what_the_clients_of_the_night_counted(name: str) -> None:
    truth, audit = truth_of(name), audit_of(judged_night(name))
    stored = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
    sent = Counter[str]()
    for send in truth["sends"]:
        if send["status"] in stored:
            sent[send["topic"]] += send["count"]
    dead = {fault["consumer_group"]: fault["count"] for fault in truth["faults"] if fault["fault"] == "dead_letters"}
    assert audit.keys() == groups_of(name).keys()
    for (group, topic), start in groups_of(name).items():
        row = audit[group, topic]
        # A group that starts later need not begin with the first message.
        if start == "CONSUME_FROM_FIRST_OFFSET":
            assert row["acknowledged"] == sent[topic], (group, row)
        assert 0 < (row["acknowledged"] or 0) <= sent[topic], (group, row)
        assert row["failed"] == dead.get(group, 0), (group, row)
        assert row["delivered"] == (row["acknowledged"] or 0) - dead.get(group, 0), (group, row)
        assert (row["lost"], row["pending"], row["skipped"], row["filtered"]) == (0, 0, 0, 0), (group, row)


@pytest.mark.long
def test_a_capture_alone_and_the_logs_of_the_same_minutes_agree(tmp_path: Path) -> None:
    import_captures([CAPTURE], tmp_path / "recording")
    audit = audit_of(judge_folder(tmp_path))
    sent = logged(tmp_path / "recording", "sends").select("topic", "msg_id", "queue_offset")
    consumed = logged(NIGHT, "consume_log").filter(pl.col("status").is_in(DONE))
    assert len(audit) > 10
    for (group, topic), row in audit.items():
        mine = consumed.filter((pl.col("consumer_group") == group) & (pl.col("topic") == topic))
        known = sent.filter(pl.col("topic") == topic).join(mine, "msg_id", how="semi")
        # What the group had not committed when the capture ended was consumed later; and the capture lacks its start.
        counts = [row[name] for name in ("delivered", "pending", "acknowledged", "filtered")]
        delivered, pending, acknowledged, filtered = (count or 0 for count in counts)
        assert delivered + pending + filtered == acknowledged, (group, row)
        assert delivered <= len(known), (group, row)
        assert row["lost"] == 0, (group, row)
        of_group = mine.join(sent, "msg_id", how="semi")
        assert filtered == 0 or len(of_group) < len(sent.filter(pl.col("topic") == topic)), (group, row)


def logged(folder: Path, stem: str) -> pl.DataFrame:
    kind = KINDS[stem]
    text = gzip.decompress((folder / f"{stem}.jsonl.gz").read_bytes())
    return pl.DataFrame([kind.decode(line) for line in text.splitlines()], infer_schema_length=None)


@pytest.mark.long
def test_with_the_logs_a_group_is_audited_by_logs(tmp_path: Path) -> None:
    """The sample has the logs of all groups: sends of its capture change nothing."""
    shutil.copytree(NIGHT, tmp_path / "recording", ignore=shutil.ignore_patterns("logs", "mqadmin", "*.pcap.gz"))
    with_sends, without = tmp_path / "with", tmp_path / "without"
    without.mkdir()
    (tmp_path / "recording").rename(without / "recording")
    shutil.copytree(without / "recording", with_sends / "recording")
    import_captures([CAPTURE], tmp_path / "unpacked")
    shutil.copy(tmp_path / "unpacked" / "sends.jsonl.gz", with_sends / "recording")
    by = ["day", "consumer_group", "topic"]
    found, expected = (
        judge_folder(each).table("gold.delivery_audit").sort(by).rows(named=True) for each in (with_sends, without)
    )
    assert {row["source"] for row in found} == {"logs"}
    assert found == expected
