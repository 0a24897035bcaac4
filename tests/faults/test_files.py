"""Unreadable files and names: each is reported, the rest is read, and repaired files are read by the next run."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from dataclasses import replace

import pytest

from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.steps import Span, days_of, gapless_starts, reach_of, spans
from mqreplay.settings import load_settings
from tests_shared import SAMPLE, rows_at, run, table_at

BROKER, MOMENT = "rmq-north-0", "1795229406000"
MEMORY = "/proc/self/mem"  # a regular file whose first byte no process may read
DEEP = b'"new": ' + b"[" * 100_000 + b"]" * 100_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    recording, source = folder / "recording", SAMPLE / "bulk-5.3.3"
    recording.mkdir()
    shutil.copytree(source / "snapshots", folder / "elsewhere")
    (recording / "snapshots").symlink_to(folder / "elsewhere")
    shutil.copy(source / "brokers.json", recording / "brokers.json")
    pull = b'{"request_ts":1795229406000,"client_id":"c","consumer_group":"g","topic":"t","queue_id":0,'
    pull += b'"broker_name":"rmq-north","queue_offset":7}'
    long_ago = pull.replace(b"1795229406000", b"978307200000")  # a clock that was never set
    (recording / "pull_log.1.jsonl").write_bytes(long_ago + b"\n" + pull + b"\n" + pull[:-1] + b"," + DEEP + b"}\n")
    (recording / "pull_log.2.jsonl").symlink_to(MEMORY)
    for name in (b"rmq-\xe9-0", "rmq-²".encode(), b"rmq-99999999999999999999"):
        os.makedirs(os.fsencode(folder / "elsewhere") + b"/" + name + b"/" + MOMENT.encode())
        with open(
            os.fsencode(folder / "elsewhere") + b"/" + name + b"/1795229406000/consumerOffset.json", "wb"
        ) as file:
            file.write(b'{"offsetTable":{"t@g":{0:1}}}')
    (folder / "elsewhere" / BROKER / MOMENT).mkdir()
    (folder / "elsewhere" / BROKER / MOMENT / "consumerOffset.json").symlink_to(MEMORY)
    return recording, str(folder / "warehouse")


def ingested(hostile):
    """Of files not read as usual status and reason, what is in quarantine, how many pulls, whose snapshots."""
    recording, root = hostile
    settings = load_settings()
    settings = replace(settings, ingest=replace(settings.ingest, follow_links=True))
    run("ingest", root, settings, lambda what: None, recordings=[str(recording)])

    codes = {(row["path"], row["line_number"]): row for row in rows_at(root, "bronze.quarantine")}
    listed = rows_at(root, "bronze.source_file")
    files = {row["path"]: (row["status"], row["reason"]) for row in listed if row["reason"] is not None}
    return files, codes, table_at(root, "silver.pull").height, set(table_at(root, "silver.snapshot")["source_name"])


def test_each_is_told_of_and_the_rest_is_read(hostile):
    files, codes, pulls, sources = ingested(hostile)
    snapshot = f"snapshots/{BROKER}/{MOMENT}/consumerOffset.json"
    for path in (snapshot, "pull_log.2.jsonl"):
        assert files[path] == ("refused", "it cannot be read: Input/output error")
        assert (codes[path, 0]["code"], codes[path, 0]["reason"]) == ("unreadable", files[path][1])
        assert codes[path, 0]["advice"].startswith("make it readable for the user of mqreplay")
    assert codes["pull_log.1.jsonl", 3]["code"] == "too_deep"
    assert pulls == 2
    assert files[f"snapshots/rmq-\\xe9-0/{MOMENT}/consumerOffset.json"][0] == "not_read"
    assert "not UTF-8" in files[f"snapshots/rmq-\\xe9-0/{MOMENT}/consumerOffset.json"][1]
    for name in ("rmq-²", "rmq-99999999999999999999"):
        assert "is neither snapshots/" in files[f"snapshots/{name}/{MOMENT}/consumerOffset.json"][1]
    assert sources == {"rmq-north-0", "rmq-north-1", "rmq-south-0", "rmq-south-1"}


def test_what_is_mended_is_read_next_time(hostile):
    recording, _ = hostile
    before = ingested(hostile)
    assert ingested(hostile)[0] == before[0]
    broker = recording / "snapshots" / BROKER
    for path, text in (
        (broker / MOMENT / "consumerOffset.json", (broker / "1795229405230" / "consumerOffset.json").read_bytes()),
        (recording / "pull_log.2.jsonl", (recording / "pull_log.1.jsonl").read_bytes().replace(b'"c"', b'"d"')),
    ):
        path.unlink()
        path.write_bytes(text)
    files, codes, pulls, _ = ingested(hostile)
    assert not {path for path, (status, _) in files.items() if status == "refused"}
    assert {code["code"] for code in codes.values()} == {"too_deep"}
    assert pulls == 4


def test_a_clock_that_was_never_set_makes_one_day_more_and_not_ten_thousand(hostile):
    ingested(hostile)
    _, root = hostile
    tables = {"pull_log": ("silver.pull", "request_ts")}
    found = [Span(*row) for row in spans("grid-cluster", 60, tables).read(Warehouse(root))]
    (night,) = {span.first_ts.date() for span in found if span.kind == "consumer_offset" and span.first_ts}
    assert days_of(found) == [dt.date(2001, 1, 1), night]
    assert gapless_starts(found)[0] == dt.datetime(2001, 1, 1, tzinfo=dt.UTC)
    first, _ = reach_of(found, night)
    assert first == min(span.first_ts for span in found if span.first_ts and span.first_ts.date() == night)
