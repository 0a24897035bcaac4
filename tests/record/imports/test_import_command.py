"""Common layouts of copies, made from the sample: each gives the snapshots of the recording."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter

import pytest

from mqreplay.cli.command_line import main
from mqreplay.decode.kinds import KINDS
from mqreplay.record.imports.files import archives
from mqreplay.record.imports.files.sources import source_of
from mqreplay.record.imports.import_command import import_evidence
from mqreplay.record.imports.staging import STAGING, staging_of
from tests_shared import ROOT

NIGHT = ROOT / "data/sample/orders-4.9.7"
EACH = 12  # copies of a broker, of those with several in a second the first


def copies():
    """(broker, epoch ms, file), no two of a second."""
    found = []
    for broker in sorted((NIGHT / "snapshots").iterdir()):
        if broker.name.startswith("broker"):
            folders = sorted(broker.iterdir())[:EACH]
            found += [(broker.name, int(folder.name), file) for folder in folders for file in sorted(folder.iterdir())]
    return found


def iso(ms, hours=0):
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC) + dt.timedelta(hours=hours)


def put(to, file, ms=None):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
    if ms is not None:
        os.utime(to, ns=(ms * 10**6, ms * 10**6))


def epoch_names(root):
    for broker, ms, file in copies():
        put(root / broker / f"{file.name}.{ms}", file)


def seconds_suffix(root):
    for broker, ms, file in copies():
        put(root / f"{broker}_{file.name}-{ms // 1000}", file)


def iso_folders(root):
    for broker, ms, file in copies():
        put(root / iso(ms).strftime("%Y-%m-%dT%H-%M-%SZ") / broker / file.name, file)


def date_in_name(root):
    for broker, ms, file in copies():
        stem, _, bak = file.name.partition(".json")
        put(root / broker / f"{stem}-{iso(ms):%Y%m%d%H%M%S}.json{bak}", file)


def day_and_clock(root):
    for broker, ms, file in copies():
        name, _, number = broker.rpartition("-")
        put(root / iso(ms).strftime("%Y-%m-%d") / iso(ms).strftime("%H:%M:%S") / name / number / file.name, file)


def last_changes(root):
    for at, (broker, ms, file) in enumerate(copies()):
        put(root / broker / str(at % 7) / str(at) / file.name, file, ms)


def gzipped(root):
    for broker, ms, file in copies():
        to = root / broker / f"{file.name}.{ms}.gz"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(gzip.compress(file.read_bytes()))


def tarball(root):
    last_changes(root / "in")
    with tarfile.open(root / "night.tar.gz", "w:gz") as tar:
        tar.add(root / "in", "config")
    shutil.rmtree(root / "in")


def zipped(root):
    iso_folders(root / "in")
    with zipfile.ZipFile(root / "night.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in (root / "in").rglob("*") if p.is_file()):
            archive.write(file, file.relative_to(root))
    shutil.rmtree(root / "in")


def tar_in_zip(root):
    tarball(root)
    with zipfile.ZipFile(root / "all.zip", "w") as archive:
        archive.write(root / "night.tar.gz", "backup/night.tar.gz")
    (root / "night.tar.gz").unlink()


def run(paths, out, capsys, *options, status=0):
    """The report of an import."""
    assert main(["import", *map(str, paths), "--out", str(out), "--json", *options]) == status
    captured = capsys.readouterr()
    return json.loads(captured.out) if captured.out else captured.err


def snapshots_of(recording, by_second=True):
    """Contents by broker, time and name. A name with seconds has lost the milliseconds."""
    found = {}
    for file in sorted((recording / "snapshots").rglob("*")):
        if file.is_file():
            ms = int(file.parent.name)
            found[file.parent.parent.name, ms // 1000 if by_second else ms, file.name] = file.read_bytes()
    return found


WANTED = {(broker, ms // 1000, file.name): file.read_bytes() for broker, ms, file in copies()}
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


def test_another_file_of_that_name_and_an_unfinished_one_are_reported(tmp_path, capsys):
    folder = tmp_path / "source/broker-a-0"
    folder.mkdir(parents=True)
    (folder / "topics.json").write_text('{"name": "something else"}')
    (folder / "consumerOffset.json.tmp").write_text("{")
    (folder / "consumerOffset.json.1795228794").write_text('{"offsetTable":{"t@g":{0:1')
    report = run([tmp_path / "source"], tmp_path / "out", capsys)
    assert list(snapshots_of(tmp_path / "out")) == [("broker-a-0", 1795228794, "consumerOffset.json")], (
        "torn is evidence"
    )
    assert len(report["not_recognised"]) == 2
    assert [note for note in report["notes"] if "named only by the folder" in note]


def test_recordings_are_taken_over_and_captures_add_no_second_record(tmp_path, capsys):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("brokers.json", "pull_log.jsonl.gz", "rebalance_log.jsonl.gz", "wire.pcap.gz"):
        shutil.copyfile(NIGHT / name, source / name)
    report = run([source], tmp_path / "out", capsys)
    assert report["taken_over"] == ["pull_log.jsonl.gz", "rebalance_log.jsonl.gz"]
    assert (tmp_path / "out/pull_log.jsonl.gz").read_bytes() == (NIGHT / "pull_log.jsonl.gz").read_bytes()
    assert "pull_log.0001.jsonl.gz" not in report["records"]
    assert report["records"]["heartbeats.jsonl.gz"] == 852
    assert report["left_out"]["records of pull_log: the copied recording has its own"] == 2172


def test_an_empty_folder_gives_one_line(tmp_path, capsys):
    (tmp_path / "source").mkdir()
    assert main(["import", str(tmp_path / "source"), "--out", str(tmp_path / "out")]) == 2
    reported = capsys.readouterr()
    assert (reported.out, reported.err) == ("", f"mqreplay: no file in {tmp_path / 'source'}; no recording was made\n")


def test_a_recording_needs_no_import(tmp_path, capsys):
    source = tmp_path / "source"
    source.mkdir()
    shutil.copyfile(NIGHT / "routes.jsonl.gz", source / "routes.jsonl.gz")
    report = run([source], tmp_path / "out", capsys)
    assert report["notes"] == [f"{source} is a recording already: nightly reads it without an import"]


def test_text_without_evidence_is_reported_with_the_three_best_helps(tmp_path, capsys):
    (tmp_path / "source.txt").write_text("nothing")
    assert main(["import", str(tmp_path / "source.txt"), "--out", str(tmp_path / "out")]) == 2
    reported = capsys.readouterr()
    assert reported.err.count("\n") == 1
    assert "  it is neither a file that import knows" in reported.out
    assert "  3. " in reported.out
    assert "  4. " not in reported.out


def test_nightly_on_a_file_names_the_import(tmp_path, capsys):
    capture = tmp_path / "night 1.pcap"
    capture.write_bytes(b"")
    assert main(["nightly", str(capture), "--warehouse", str(tmp_path / "w"), "--engine", "local"]) == 2
    assert f"mqreplay import '{capture}' --out RECORDING" in capsys.readouterr().err


def test_a_capture_names_the_cluster(tmp_path, capsys):
    report = run([NIGHT / "wire.pcap.gz"], tmp_path / "out", capsys)
    brokers = json.loads((tmp_path / "out/brokers.json").read_bytes())
    assert brokers["cluster"] == "DefaultCluster"
    assert sorted(brokers["name_servers"]) == ["127.0.0.1:9876", "127.0.0.1:9877"]
    assert report["records"]["pull_log.jsonl.gz"] == 2172


def test_an_archive_leads_nowhere_else(tmp_path, capsys):
    file = next(c[2] for c in copies() if c[2].name == "consumerOffset.json")
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        for name in ("../outside/consumerOffset.json.1795228794", "/etc/broker-a-0/consumerOffset.json.1795228795"):
            info = tarfile.TarInfo(name)
            info.size = file.stat().st_size
            tar.addfile(info, file.open("rb"))
        link = tarfile.TarInfo("broker-a-0/topics.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    report = run([tmp_path / "bad.tar"], tmp_path / "out", capsys)
    whys = " ".join(one["why"] for one in report["not_recognised"])
    assert "leads out" in whys
    assert "link or a device" in whys
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.tar", "out"]
    assert list(snapshots_of(tmp_path / "out")) == [("broker-a-0", 1795228795, "consumerOffset.json")]


@pytest.mark.parametrize("bound", [{"bytes_left": 1 << 20}, {"members_left": 3}])
@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz"])
def test_a_bomb_is_reported_and_leaves_nothing(name, bound, tmp_path):
    sizes = [4 << 20] if "bytes_left" in bound else [9] * 5
    if name.endswith("zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for at, size in enumerate(sizes):
                archive.writestr(f"broker-a-0/consumerOffset.json.{1795228794 + at}", b"0" * size)
    else:
        with tarfile.open(tmp_path / name, "w:gz") as tar:
            for at, size in enumerate(sizes):
                info = tarfile.TarInfo(f"broker-a-0/consumerOffset.json.{1795228794 + at}")
                info.size = size
                tar.addfile(info, io.BytesIO(b"0" * size))
    (tmp_path / "spool").mkdir()
    spool = archives.Spool(tmp_path / "spool", dt.UTC, lambda member: True, **bound)
    assert archives.members_of(source_of(name, tmp_path / name, name), spool) == []
    [(path, why)] = spool.refused
    assert path == name
    assert "unpack it yourself" in why
    assert sum(file.stat().st_size for file in (tmp_path / "spool").iterdir()) <= 1 << 20


@pytest.mark.parametrize("name", ["night.tar.gz", "night.zip", "night.tgz", "a.tar"])
def test_a_torn_archive_is_reported(name, tmp_path, capsys):
    build = zipped if name.endswith("zip") else tarball
    build(tmp_path)
    whole = next(tmp_path.glob("night.*")).read_bytes()
    for cut in (0, 1, 100, len(whole) // 2):
        source = tmp_path / str(cut) / name
        source.parent.mkdir()
        source.write_bytes(whole[:cut])
        assert main(["import", str(source), "--out", str(tmp_path / f"out{cut}"), "--json"]) in (0, 2)
        report = json.loads(capsys.readouterr().out)
        assert "torn or damaged" in report["not_recognised"][0]["why"]


def test_nothing_is_written_over(tmp_path, capsys):
    epoch_names(tmp_path / "source")
    run([tmp_path / "source"], tmp_path / "out", capsys)
    before = snapshots_of(tmp_path / "out")
    assert "not empty" in run([tmp_path / "source"], tmp_path / "out", capsys, status=2)
    assert snapshots_of(tmp_path / "out") == before
    (tmp_path / "empty").mkdir()
    run([tmp_path / "source"], tmp_path / "empty", capsys)
    assert snapshots_of(tmp_path / "empty") == before
    run([tmp_path / "out"], tmp_path / "again", capsys)
    assert snapshots_of(tmp_path / "again", by_second=False) == snapshots_of(tmp_path / "out", by_second=False)


def test_out_may_lie_in_what_is_imported(tmp_path, capsys):
    epoch_names(tmp_path / "broker")
    run([tmp_path], tmp_path / "recording", capsys)
    assert snapshots_of(tmp_path / "recording") == WANTED


def test_a_killed_run_leaves_no_recording_and_the_next_completes(tmp_path, capsys):
    source, out = tmp_path / "source", tmp_path / "out"
    epoch_names(source)
    for at in range(3000):
        put(source / "broker-a-0" / f"delayOffset.json.{1795228000000 + at}", NIGHT / "brokers.json")
        (source / "broker-a-0" / f"delayOffset.json.{1795228000000 + at}").write_bytes(b'{"offsetTable":{1:%d}}' % at)
    command = [sys.executable, "-m", "mqreplay.cli", "import", str(source), "--out", str(out)]
    started = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT / "lib")}, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (staging_of(out) / "snapshots").exists() and started.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    started.send_signal(signal.SIGKILL)
    started.wait()
    assert not out.exists()
    assert staging_of(out).exists()
    run([source], out, capsys)
    assert len(snapshots_of(out, by_second=False)) == len(WANTED) + 3000
    assert not staging_of(out).exists()


def test_nothing_usable_is_reported_file_by_file(tmp_path, capsys):
    (tmp_path / "source").mkdir()
    (tmp_path / "source/notes.txt").write_text("nothing to see")
    assert main(["import", str(tmp_path / "source"), "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert "notes.txt" in captured.out
    assert "copies of consumerOffset.json" in captured.out
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert run([tmp_path / "gone"], tmp_path / "out", capsys, status=2).startswith("mqreplay: ")


def test_the_same_input_gives_the_same_bytes(tmp_path, capsys):
    epoch_names(tmp_path / "source")
    shutil.copytree(NIGHT / "mqadmin", tmp_path / "source/mqadmin")
    for name in ("a", "b"):
        run([tmp_path / "source"], tmp_path / name, capsys)
    files = [
        sorted((p.relative_to(root), p.read_bytes()) for p in root.rglob("*") if p.is_file())
        for root in (tmp_path / "a", tmp_path / "b")
    ]
    assert files[0] == files[1]


def test_the_terminal_shows_no_control_characters(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "x\x1b[31m.txt").write_text("no")
    epoch_names(tmp_path / "source")
    out = io.StringIO()
    import_evidence([str(tmp_path / "source")], str(tmp_path / "out"), out)
    assert "\x1b" not in out.getvalue()


def test_a_day_in_the_name_is_made_exact_by_the_last_change(tmp_path, capsys):
    broker, ms, file = next(c for c in copies() if c[2].name == "consumerOffset.json")
    put(tmp_path / "source" / broker / "consumerOffset.json.20261121", file, ms)
    put(tmp_path / "source" / broker / "consumerOffset.json.20261120", file, ms)
    report = run([tmp_path / "source"], tmp_path / "out", capsys)
    assert {at for _, at, _ in snapshots_of(tmp_path / "out", by_second=False)} == {ms, 1795132800000}
    assert len(report["copies"][broker]["dated_by"]) == 2
