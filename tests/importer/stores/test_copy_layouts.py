"""Copies of brokers' files in each layout of folders and names give the same snapshots."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from collections import Counter

import pytest

from importer.copied_files import (
    NIGHT,
    WANTED,
    copies,
    epoch_names,
    iso,
    iso_folders,
    last_changes,
    put,
    run,
    snapshots_of,
    tarball,
    zipped,
)
from mqreplay.decode.kinds import KINDS
from mqreplay.importer.staging import STAGING


def seconds_suffix(root):
    for broker, ms, file in copies():
        put(root / f"{broker}_{file.name}-{ms // 1000}", file)


def date_in_name(root):
    for broker, ms, file in copies():
        stem, _, bak = file.name.partition(".json")
        put(root / broker / f"{stem}-{iso(ms):%Y%m%d%H%M%S}.json{bak}", file)


def day_and_clock(root):
    for broker, ms, file in copies():
        name, _, number = broker.rpartition("-")
        put(root / iso(ms).strftime("%Y-%m-%d") / iso(ms).strftime("%H:%M:%S") / name / number / file.name, file)


def gzipped(root):
    for broker, ms, file in copies():
        to = root / broker / f"{file.name}.{ms}.gz"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(gzip.compress(file.read_bytes()))


def tar_in_zip(root):
    tarball(root)
    with zipfile.ZipFile(root / "all.zip", "w") as archive:
        archive.write(root / "night.tar.gz", "backup/night.tar.gz")
    (root / "night.tar.gz").unlink()


LAYOUTS = (
    epoch_names,
    seconds_suffix,
    iso_folders,
    date_in_name,
    day_and_clock,
    last_changes,
    gzipped,
    tarball,
    zipped,
    tar_in_zip,
)


@pytest.mark.parametrize("build", LAYOUTS)
def test_each_layout_gives_the_snapshots_back(build, tmp_path, capsys):
    root = tmp_path / "source"
    root.mkdir()
    build(root)
    shutil.copytree(NIGHT / "mqadmin", root / "mqadmin")
    report = run([root], tmp_path / "out", capsys)
    assert snapshots_of(tmp_path / "out") == WANTED
    assert Counter(one["why"] for one in report["not_recognised"]) == {}
    assert report["records"]["consume_stats.jsonl.gz"] == 3
    brokers = json.loads((tmp_path / "out/brokers.json").read_bytes())
    assert (brokers["cluster"], brokers["rocketmq_version"]) == ("DefaultCluster", "4.9.7")
    assert not list(tmp_path.glob(f"*{STAGING}"))
    for file in (tmp_path / "out").glob("*.jsonl.gz"):
        kind = KINDS[file.name.partition(".")[0]]
        assert all(kind.decode(line) for line in gzip.decompress(file.read_bytes()).splitlines())


def test_a_zone_is_taken_and_a_wrong_one_is_reported(tmp_path, capsys):
    for broker, ms, file in copies():
        put(tmp_path / "source" / broker / iso(ms, 8).strftime("%Y%m%d_%H%M%S") / file.name, file)
    shutil.copytree(NIGHT / "mqadmin", tmp_path / "source/mqadmin")
    report = run([tmp_path / "source"], tmp_path / "out", capsys, "--time-zone", "Asia/Shanghai")
    assert snapshots_of(tmp_path / "out") == WANTED
    assert not [note for note in report["notes"] if "times in names" in note]
    report = run([tmp_path / "source"], tmp_path / "utc", capsys)
    assert [note for note in report["notes"] if "8 hours later" in note]
    assert run([tmp_path / "source"], tmp_path / "no", capsys, "--time-zone", "Mars/Base", status=2).startswith(
        "mqreplay: "
    )


def test_a_broker_is_never_guessed(tmp_path, capsys):
    _, ms, file = next(c for c in copies() if c[2].name == "consumerOffset.json")
    put(tmp_path / "source" / "node-1" / f"consumerOffset.json.{ms}", file)
    assert "holds" not in run([tmp_path / "source"], tmp_path / "out", capsys, status=2)
    assert not (tmp_path / "out").exists()
    run([tmp_path / "source"], tmp_path / "out", capsys, "--broker", "die-1-0")
    assert list(snapshots_of(tmp_path / "out")) == [("die-1-0", ms // 1000, "consumerOffset.json")]
    assert "NAME-ID" in run([tmp_path / "source"], tmp_path / "no", capsys, "--broker", "die", status=2)


def test_a_folder_of_a_broker_is_confirmed_by_its_own_topic(tmp_path, capsys):
    topics = next(c for c in copies() if c[2].name == "topics.json" and c[0] == "broker-a-0")
    named = topics[2].read_bytes().replace(b'"broker-a"', b'"die-1"')
    for number in ("0", "1"):
        folder = tmp_path / "source" / f"die-1-{number}" / str(topics[1])
        folder.mkdir(parents=True)
        (folder / "topics.json").write_bytes(named)
    report = run([tmp_path / "source"], tmp_path / "out", capsys)
    assert set(report["copies"]) == {"die-1-0", "die-1-1"}


def test_a_bak_beside_its_file_is_of_the_same_time_and_the_same_content_counts_once(tmp_path, capsys):
    broker, ms, file = next(c for c in copies() if c[2].name == "consumerOffset.json")
    put(tmp_path / "source" / broker / "consumerOffset.json", file, ms)
    put(tmp_path / "source" / broker / "consumerOffset.json.bak", file, ms - 5000)
    put(tmp_path / "again" / broker / "consumerOffset.json", file, ms)
    report = run([tmp_path / "source", tmp_path / "again"], tmp_path / "out", capsys)
    found = snapshots_of(tmp_path / "out", by_second=False)
    assert set(found) == {(broker, ms, "consumerOffset.json"), (broker, ms, "consumerOffset.json.bak")}
    assert report["repeated"] == 1


def test_a_day_in_the_name_is_made_exact_by_the_last_change(tmp_path, capsys):
    broker, ms, file = next(c for c in copies() if c[2].name == "consumerOffset.json")
    put(tmp_path / "source" / broker / "consumerOffset.json.20261121", file, ms)
    put(tmp_path / "source" / broker / "consumerOffset.json.20261120", file, ms)
    report = run([tmp_path / "source"], tmp_path / "out", capsys)
    assert {at for _, at, _ in snapshots_of(tmp_path / "out", by_second=False)} == {ms, 1795132800000}
    assert len(report["copies"][broker]["dated_by"]) == 2
