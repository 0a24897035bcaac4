"""Common layouts of copies, made from the sample: each gives the snapshots of the recording."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from importer.copied_files import NIGHT, WANTED, epoch_names, put, run, snapshots_of
from mqreplay.cli.command_line import main
from mqreplay.importer.import_command import import_evidence
from mqreplay.importer.staging import staging_of
from tests_shared import ROOT


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


@pytest.mark.long
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


def test_text_without_evidence_is_reported_with_the_symptoms(tmp_path, capsys):
    (tmp_path / "source.txt").write_text("nothing")
    assert main(["import", str(tmp_path / "source.txt"), "--out", str(tmp_path / "out")]) == 2
    reported = capsys.readouterr()
    assert reported.err.count("\n") == 1
    assert "  it is neither a file that import knows" in reported.out
    assert "  1. docs/symptoms.md says what to collect in two minutes, by what you see: Consum" in reported.out


def test_nightly_on_a_file_names_the_import(tmp_path, capsys):
    capture = tmp_path / "night 1.pcap"
    capture.write_bytes(b"")
    assert main(["nightly", str(capture), "--warehouse", str(tmp_path / "w"), "--engine", "local"]) == 2
    assert f"mqreplay import '{capture}' --out RECORDING" in capsys.readouterr().err


@pytest.mark.long
def test_a_capture_names_the_cluster(tmp_path, capsys):
    report = run([NIGHT / "wire.pcap.gz"], tmp_path / "out", capsys)
    brokers = json.loads((tmp_path / "out/brokers.json").read_bytes())
    assert brokers["cluster"] == "DefaultCluster"
    assert sorted(brokers["name_servers"]) == ["127.0.0.1:9876", "127.0.0.1:9877"]
    assert report["records"]["pull_log.jsonl.gz"] == 2172


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
    assert "neither a file that import knows" in captured.out
    assert "docs/symptoms.md says what to collect" in captured.out
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
