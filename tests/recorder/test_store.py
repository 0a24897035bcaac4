"""Copies of a broker's files on its host: whole, of every last state, and of the right broker."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.recorder_events import KIND
from mqreplay.ingest.listing import find_recordings
from mqreplay.recorder.record_files import RESERVED, RecordFiles
from mqreplay.recorder.store import StoreRecorder, record_store
from mqreplay.recorder.store_folder import broker_store
from mqreplay.words.errors import InputError, RecordingFull
from recorder.store_broker import FILE, content
from tests_shared import ROOT, SAMPLE

PATHS = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), str(ROOT / "tests")])}
CONFIG_5 = SAMPLE / "bulk-5.3.3/snapshots/rmq-north-0"
CONFIG_4 = SAMPLE / "orders-4.9.7/snapshots/broker-a-1"


@contextmanager
def recording(stores: list[str], out: Path, every_s: float = 0.05, **more: Any) -> Iterator[list[str]]:
    """Record while the block runs, and yield the messages."""
    messages: list[str] = []
    found = [broker_store(store, broker) for store, broker in zip(stores, more["brokers"], strict=True)]
    stop = threading.Event()
    with RecordFiles(out, more.get("max_bytes")) as files:
        recorder = StoreRecorder(files, found, every_s, messages.append)
        thread = threading.Thread(target=recorder.run, args=(stop, None))
        thread.start()
        try:
            yield messages
            time.sleep(4 * every_s)
        finally:
            stop.set()
            thread.join()


def copies(out: Path, name: str, source: str = "broker-a-0") -> list[bytes]:
    found = (out / "snapshots" / source).glob(f"*/{name}")
    return [path.read_bytes() for path in sorted(found, key=lambda path: int(path.parent.name))]


def events(out: Path) -> list[dict[str, Any]]:
    lines = [
        line
        for path in sorted(out.glob("recorder_events.*"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    assert all(KIND.decode(line) for line in lines)
    return [json.loads(line) for line in lines]


@pytest.mark.first_case
@pytest.mark.parametrize("how", ["4.9", "5.x"])
def test_broker_that_rewrites_all_the_time(tmp_path: Path, how: str) -> None:
    config, out = tmp_path / "store/config", tmp_path / "r"
    config.mkdir(parents=True)
    (config / FILE).write_bytes(content(0))
    command = [sys.executable, str(ROOT / "tests/recorder/store_broker.py"), str(config), how, "3"]
    with recording([str(tmp_path / "store")], out, brokers=["broker-a-0"]):
        done = subprocess.run(command, env=PATHS, capture_output=True, text=True, check=True)
    last = int(done.stdout)
    numbers = []
    for name in (FILE, f"{FILE}.bak"):
        for copy in copies(out, name):
            [number] = set(decode_consumer_offset(copy).offset)
            assert copy == content(number)
            numbers.append(number)
    mains = [set(decode_consumer_offset(copy).offset).pop() for copy in copies(out, FILE)]
    assert mains == sorted(set(mains))
    assert mains[-1] == last
    assert len(mains) > 15
    assert not list(out.rglob("*.unfinished"))
    print(f"{how}: {last} rewrites, {len(numbers)} copies, {len(events(out))} events")


def test_every_state_that_lasts_is_copied(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / FILE).write_bytes(content(0))
    with recording([str(config)], tmp_path / "r", brokers=["broker-a-0"]):
        for number in range(
            8
        ):  # all of them within two seconds, as long as the clock of the file system is not trusted
            (config / "new").write_bytes(content(number))
            (config / "new").replace(config / FILE)
            time.sleep(0.2)
    assert copies(tmp_path / "r", FILE) == [content(number) for number in range(8)]


def test_file_that_stays_torn(tmp_path: Path) -> None:
    config, out = tmp_path / "config", tmp_path / "r"
    config.mkdir()
    (config / FILE).write_bytes(content(2)[:-10])
    (config / f"{FILE}.bak").write_bytes(content(1))
    with recording([str(config)], out, brokers=["broker-a-0"]) as messages:
        time.sleep(0.3)
        (config / FILE).write_bytes(content(2))
        time.sleep(0.2)
        (config / FILE).unlink()
        time.sleep(0.3)
        (config / FILE).write_bytes(content(3))
    assert copies(out, f"{FILE}.bak") == [content(1)]
    assert copies(out, FILE) == [content(2), content(3)]
    skipped = [event for event in events(out) if event["kind"] == "skipped"]
    assert [event["detail"] for event in skipped] == [
        f"{FILE}: it is not complete (torn); {FILE}.bak is copied instead",
        f"{FILE}: it can be read again",
        f"{FILE}: there is no file; {FILE}.bak is copied instead",
        f"{FILE}: it can be read again",
    ]
    assert {(event["broker_name"], event["broker_id"], event["request"]) for event in skipped} == {
        ("broker-a", 0, FILE)
    }
    assert [line.split(": ", 1)[1] for line in messages] == [event["detail"].split(": ", 1)[1] for event in skipped]
    for begin, end in (skipped[:2], skipped[2:]):
        assert begin["from_ts"] == begin["to_ts"] == end["from_ts"] < end["to_ts"]


def test_rerun_copies_only_what_changed(tmp_path: Path) -> None:
    config, out = tmp_path / "store/config", tmp_path / "r"
    last = max(CONFIG_5.glob("*/topics.json"), key=lambda path: path.parent.name).parent
    shutil.copytree(last, config)
    (config / FILE).write_bytes(content(1))
    names = sorted(path.name for path in config.iterdir() if not path.name.endswith(".bak"))
    for run in range(2):
        (config / FILE).write_bytes(content(run))
        messages: list[str] = []
        record_store([str(tmp_path / "store")], str(out), 0.05, 0.2, messages.append, brokers=["rmq-north-0"])
        assert messages[-1] == f"{1 if run else len(names)} {'copy' if run else 'copies'} written to {out}"
    assert copies(out, FILE, "rmq-north-0") == [content(0), content(1)]
    assert [event["kind"] for event in events(out)] == ["start", "stop"] * 2
    for name in names:
        assert copies(out, name, "rmq-north-0")[-1] == (config / name).read_bytes()
    (files,) = find_recordings([str(out)]).values()
    kinds = {file.kind for file, _ in files}
    assert {"recorder_events", "consumer_offset", "topics"} <= kinds
    assert not kinds & {"other", "no_source", "bad_time"}


def test_two_stores(tmp_path: Path) -> None:
    for number, name in enumerate("ab"):
        config = tmp_path / name
        config.mkdir()
        (config / FILE).write_bytes(content(number))
    (tmp_path / "b/broker.properties").write_text("brokerName=broker-b\nbrokerId=1\n")
    stores, messages = [str(tmp_path / "a"), str(tmp_path / "b")], []
    with pytest.raises(InputError, match="2 --store need as many --broker"):
        record_store(stores, str(tmp_path / "r"), 0.05, 0.1, messages.append, brokers=["broker-a-0"])
    with pytest.raises(InputError, match="two stores are of the same broker"):
        record_store(stores, str(tmp_path / "r"), 0.05, 0.1, messages.append, brokers=["broker-a-0"] * 2)
    with pytest.raises(InputError, match="overlap"):
        record_store(stores[1:], str(tmp_path), 0.05, 0.1, messages.append)
    brokers = ["broker-a-0", str(tmp_path / "b/broker.properties")]
    record_store(stores, str(tmp_path / "r"), 0.05, 0.1, messages.append, brokers=brokers)
    assert copies(tmp_path / "r", FILE, "broker-a-0") == [content(0)]
    assert copies(tmp_path / "r", FILE, "broker-b-1") == [content(1)]


@pytest.mark.parametrize(("source", "name"), [(CONFIG_4, "broker-a"), (CONFIG_5, "rmq-north")])
def test_id_of_the_broker_is_asked_for(tmp_path: Path, source: Path, name: str) -> None:
    shutil.copy(next(iter(sorted(source.glob("*/topics.json")))), tmp_path)
    with pytest.raises(InputError) as error:
        broker_store(str(tmp_path), None)
    assert str(error.value) == (
        f"--store {tmp_path}: the files of a store do not hold its id; add --broker {name}-0 "
        "(brokerName and brokerId, 0 for a master), or --broker with the path of its broker.conf"
    )


def test_broker_conf(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / FILE).write_bytes(content(0))
    conf = tmp_path / "broker.conf"
    conf.write_text("# the slave\nbrokerClusterName = C\nbrokerName: broker-a\nbrokerId = 1 \n")
    for option in (str(conf), "broker-a-1"):
        assert broker_store(str(tmp_path), option)[1:] == ("broker-a", 1)
    (config / "broker.properties").write_bytes(conf.read_bytes())
    assert broker_store(str(config), None) == (config.resolve(), "broker-a", 1)
    for text, why in (
        ("brokerId=0\n", "it has no brokerName"),
        ("brokerName=a\nbrokerId=-1\n", "its brokerId is -1"),
        ("brokerName=a\nbrokerId=0\nenableControllerMode=true\n", "a controller gives its brokerId"),
    ):
        conf.write_text(text)
        with pytest.raises(InputError, match=why):
            broker_store(str(tmp_path), str(conf))
    for option, why in (("broker", "neither NAME-ID"), ("no/such.conf", "cannot be read")):
        with pytest.raises(InputError, match=why):
            broker_store(str(tmp_path), option)


def test_stores_that_cannot_be_recorded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        broker_store(str(tmp_path / "none"), "a-0")
    with pytest.raises(InputError, match=r"holds none of consumerOffset\.json"):
        broker_store(str(tmp_path), "a-0")


@pytest.mark.parametrize(
    ("folder", "setting"),
    [("consumerOffsets", "defaultRocksDB"), ("metadata", "in one database"), ("rdb", "configManagerVersion=v2")],
)
def test_store_with_offsets_in_rocksdb(tmp_path: Path, folder: str, setting: str) -> None:
    rocks = tmp_path / "config" / folder
    rocks.mkdir(parents=True)
    (rocks / "CURRENT").write_text("MANIFEST-000004\n")
    for store in (tmp_path, tmp_path / "config"):
        with pytest.raises(InputError, match=rf"in RocksDB \(.*/{folder}: .*{setting}\).*; record it over the network"):
            broker_store(str(store), "a-0")
    offsets = tmp_path / "config" / FILE
    offsets.write_bytes(content(0))  # written since: the broker went back to files
    assert broker_store(str(tmp_path), "a-0").name == "a-0"
    os.utime(offsets, (1, 1))
    with pytest.raises(InputError, match="in RocksDB"):
        broker_store(str(tmp_path), "a-0")


def test_default_store_of_5_5_has_its_offsets_in_files(tmp_path: Path) -> None:
    for folder in ("rocksdbstore", "config/kvStore"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "CURRENT").write_text("MANIFEST-000004\n")
    (tmp_path / "config" / FILE).write_bytes(content(0))
    os.utime(tmp_path / "config" / FILE, (1, 1))
    assert broker_store(str(tmp_path), "a-0").config == tmp_path / "config"


def test_modes_of_groups_are_copied(tmp_path: Path) -> None:
    config, out = tmp_path / "config", tmp_path / "r"
    config.mkdir()
    (config / FILE).write_bytes(content(0))
    modes = b'{"messageRequestModeMap":{"t":{"g":{"mode":"POP","popShareQueueNum":0}}}}'
    (config / "messageRequestMode.json").write_bytes(modes)
    with recording([str(config)], out, brokers=["broker-a-0"]):
        time.sleep(0.3)
    (copy,) = out.glob("snapshots/broker-a-0/*/messageRequestMode.json")
    assert copy.read_bytes() == modes


def test_orders_of_pop_are_copied(tmp_path: Path) -> None:
    config, out = tmp_path / "config", tmp_path / "r"
    config.mkdir()
    (config / FILE).write_bytes(content(0))
    orders = b'{"table":{"t@g":{0:{"cm":0,"i":30000,"l":1,"o":[5],"popTime":1}}}}'
    (config / "consumerOrderInfo.json").write_bytes(orders)
    with recording([str(config)], out, brokers=["broker-a-0"]):
        time.sleep(0.3)
    (copy,) = out.glob("snapshots/broker-a-0/*/consumerOrderInfo.json")
    assert copy.read_bytes() == orders


def test_bound_of_the_recording(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / FILE).write_bytes(content(0))
    messages: list[str] = []
    with pytest.raises(RecordingFull, match="has reached its bound of 1,058,576 bytes"):
        record_store([str(config)], str(tmp_path / "r"), 0.05, 5, messages.append, ["a-0"], RESERVED + 10_000)
    assert [event["kind"] for event in events(tmp_path / "r")] == ["start", "stop"]


def test_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    config, out = tmp_path / "config", tmp_path / "r"
    config.mkdir()
    (config / FILE).write_bytes(content(0))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with recording([str(config)], out, brokers=["broker-a-0"]) as messages:
            time.sleep(0.3)
            (config / "new").write_bytes(content(1))
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # less than a copy
            (config / "new").replace(config / FILE)
            time.sleep(0.3)
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            time.sleep(0.2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert copies(out, FILE) == [content(0), content(1)]
    assert messages == [
        f"recording {out}: the limit of a file's size is reached (ulimit -f) (File too large); earlier files are "
        "complete; copies wait until there is space",
        "the disk has space again; recording continues",
    ]
    [skipped] = [event for event in events(out) if event["kind"] == "skipped"]
    assert skipped["detail"] == "the disk was full: nothing was copied"
    assert skipped["from_ts"] + 200 < skipped["to_ts"]
    assert not list(out.rglob("*.unfinished"))


def test_command(tmp_path: Path) -> None:
    config, out = tmp_path / "config", tmp_path / "r"
    config.mkdir()
    (config / FILE).write_bytes(content(0))
    arguments = ["record", "--store", str(tmp_path), "--broker", "broker-a-0", "--out", str(out), "--every", "1s"]
    command = [sys.executable, "-m", "mqreplay.cli", *arguments]
    recorder = subprocess.Popen(command, env=PATHS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not copies(out, FILE) and time.monotonic() < deadline:
        time.sleep(0.05)
    recorder.send_signal(signal.SIGTERM)
    printed, messages = recorder.communicate(timeout=30)
    assert (recorder.returncode, printed) == (143, "")
    assert "1 copy written to" in messages
    assert messages.splitlines()[-1] == "mqreplay: terminated; the next run continues where this one ended"
    assert copies(out, FILE) == [content(0)]
    assert [event["kind"] for event in events(out)] == ["start", "stop"]


LMQ = "lmqConsumerOffset.json"


@pytest.mark.parametrize("is_in_use", [True, False])
def test_of_two_files_of_offsets_the_one_in_use_is_copied(tmp_path: Path, is_in_use: bool) -> None:
    config, out = tmp_path / "store/config", tmp_path / "r"
    config.mkdir(parents=True)
    lmq = b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":42},"offsetTable":{"t@g":{0:9}}}'
    for name, data in ((FILE, content(1)), (LMQ, lmq)):
        (config / name).write_bytes(data)
    os.utime(config / (FILE if is_in_use else LMQ), (1_700_000_000, 1_700_000_000))
    messages: list[str] = []
    record_store([str(tmp_path / "store")], str(out), 0.05, 0.2, messages.append, ["broker-a-0"])
    assert copies(out, LMQ) == ([lmq] if is_in_use else [])
    assert copies(out, FILE) == ([] if is_in_use else [content(1)])
    assert f"{FILE if is_in_use else LMQ} is not copied" in messages[1]


def test_a_store_of_an_lmq_broker(tmp_path: Path) -> None:
    (tmp_path / LMQ).write_bytes(b'{"lmqOffsetTable":{},"offsetTable":{"t@g":{0:9}}}')
    with recording([str(tmp_path)], tmp_path / "r", brokers=["broker-a-0"]):
        time.sleep(0.1)
        (tmp_path / LMQ).write_bytes(b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":1},"offsetTable":{"t@g":{0:9}}}')
    assert len(copies(tmp_path / "r", LMQ)) == 2
