"""Which process wrote each line: rotated files, several pods in a file, consoles, two layouts, encodings."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pytest

from mqreplay.importer.brokers.broker_names import LogBroker
from mqreplay.importer.files.sources import source_of
from mqreplay.importer.logs.import_logs import LogReport, import_logs
from mqreplay.importer.logs.line_count import why_no_log
from mqreplay.importer.logs.log_files import LogScan, scan_logs
from mqreplay.importer.logs.log_identity import brokers_in_logs

QUEUE = "MessageQueue [topic=t, brokerName=b, queueId=3]"


def commit(second: int, offset: int, client: str = "c", mark: str = ",000") -> str:
    message = f"[persistAll] Group: g ClientId: {client} updateConsumeOffsetToBroker {QUEUE} {offset}"
    return f"2026-03-09 08:11:{second:02d}{mark} INFO RocketmqClient - {message}\n"


def broker_lines(name: str, broker_id: int = 0) -> str:
    return "".join(
        f"2026-03-09 08:11:0{at} INFO main - {text}\n"
        for at, text in enumerate(
            [
                f"brokerName={name}",
                f"brokerId={broker_id}",
                f"The broker[{name}, 10.0.0.9:1091{broker_id}] boot success. x",
            ]
        )
    )


def scanned(folder: Path) -> LogScan:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return scan_logs([source_of(str(path.relative_to(folder)), path, "") for path in files])


def imported(folder: Path) -> tuple[list[tuple[str, dict[str, Any]]], LogReport]:
    records: list[tuple[str, dict[str, Any]]] = []

    class Kept:
        def append(self, stem: str, record: Any) -> None:
            records.append((stem, dict(record)))

    report = import_logs(scanned(folder), Kept(), None, {})
    lines = report.lines
    assert lines.read == lines.used + sum(lines.left_out.values())
    return records, report


def offsets(records: list[tuple[str, dict[str, Any]]]) -> list[int]:
    return [record["commit_offset"] for stem, record in records if stem == "offset_commits"]


@pytest.mark.parametrize("name", ["orders-service.log", "stdout", "console.txt", "catalina.out"])
def test_the_name_of_a_file_decides_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(commit(0, 5))
    assert offsets(imported(tmp_path)[0]) == [5]


def test_two_pods_in_one_file_are_two_brokers(tmp_path: Path) -> None:
    both = zip(broker_lines("broker-a").splitlines(), broker_lines("broker-b").splitlines(), strict=True)
    text = "".join(f"[pod/a-0/broker] {one}\n[pod/b-0/broker] {other}\n" for one, other in both)
    (tmp_path / "all.log").write_text(text)
    records, report = imported(tmp_path)
    assert {record["broker_name"] for _, record in records} == {"broker-a", "broker-b"}
    assert set(report.found_brokers) == {"broker-a-0", "broker-b-0"}


@pytest.mark.parametrize("names", [("broker.log", "broker.2026-03-09.1.log"), ("broker.log", "broker.log")])
def test_broker_that_registered_with_two_ids_has_no_certain_id(tmp_path: Path, names: tuple[str, str]) -> None:
    # DLedger and a controller elect the id, so that it may change.
    (tmp_path / "home").mkdir()
    lines = [f"2026-03-09 08:11:0{at} INFO main - {{}}\n" for at in range(3)]
    lines = [lines[0].format("brokerName=b"), *(lines[1 + at].format(registered(at)) for at in (0, 1))]
    (tmp_path / "home" / names[0]).write_text("".join(lines[:2]))
    with (tmp_path / "home" / names[1]).open("a") as file:
        file.write(lines[2])
    scan = scanned(tmp_path)
    assert [process.registered_id for process in scan.processes] == [None]
    assert brokers_in_logs(scan.processes, dt.UTC) == {"home": LogBroker("b", None, None)}
    records, report = imported(tmp_path)
    assert records == []
    assert report.not_recognised[0][1] == "nothing shows which broker wrote it; give --broker NAME-ID"


def registered(broker_id: int) -> str:
    return f"register broker[{broker_id}]to name server 10.0.0.1:9876 OK"


def test_a_log_and_the_console_of_the_same_process_count_once(tmp_path: Path) -> None:
    (tmp_path / "rocketmq_client.log").write_text(commit(0, 5) + commit(5, 6))
    (tmp_path / "console.log").write_text("banner\n" + commit(0, 5) + commit(5, 6) + commit(9, 7))
    records, report = imported(tmp_path)
    assert sorted(offsets(records)) == [5, 6, 7]
    assert report.lines.left_out["lines that are in two files of a folder"] == 2


def test_two_processes_whose_files_look_rotated_are_distinguished_by_time(tmp_path: Path) -> None:
    (tmp_path / "app-1.log").write_text(commit(0, 5, "one") + commit(30, 6, "one"))
    (tmp_path / "app-2.log").write_text(commit(10, 7, "two") + commit(40, 8, "two"))
    assert len(scanned(tmp_path).processes) == 2
    (tmp_path / "app-2.log").write_text(commit(31, 7, "one") + commit(40, 8, "one"))
    (process,) = scanned(tmp_path).processes
    assert [part.source.path for part in process.parts] == ["app-1.log", "app-2.log"]


def test_two_layouts_in_one_file_have_each_its_own_zone(tmp_path: Path) -> None:
    """A client of 4.9 logs in its host's zone; after an upgrade to 5.x the lines are in +08:00."""
    old = (
        commit(0, 5)
        + "2026-03-09 00:11:01,000 INFO RocketmqClient - t Rebalance changed, also update version: 1, 1773015061000\n"
    )
    new = commit(5, 6).replace(",000 INFO RocketmqClient", ".000 INFO  [1] [main] [o.a.r.Store#?:?]")
    (tmp_path / "rocketmq_client.log").write_text(old.replace("08:11:00", "00:11:00") + new)
    records, _ = imported(tmp_path)
    assert [record["ts"] for stem, record in records if stem == "offset_commits"] == [1773015060000, 1773015065000]


def test_the_time_of_a_container_shows_the_zone_of_an_application(tmp_path: Path) -> None:
    (tmp_path / "pod.log").write_text(f"2026-03-09T06:11:00.001Z {commit(0, 5)}")
    records, report = imported(tmp_path)
    assert [record["ts"] for stem, record in records if stem == "offset_commits"] == [1773036660000]
    assert "+02:00 by the times in its lines" in report.recognised[0][1]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-8"])
def test_each_encoding_is_read(tmp_path: Path, codec: str) -> None:
    (tmp_path / "a.log").write_bytes(("first\r\n" + commit(0, 5).replace("\n", "\r\n") + commit(5, 6)).encode(codec))
    records, report = imported(tmp_path)
    assert offsets(records) == [5, 6]
    assert report.lines.read == 3


def test_a_line_in_gbk_is_read_if_it_is_a_fact_and_counted_if_not(tmp_path: Path) -> None:
    other = "2026-03-09 08:11:02,000 INFO x - 消费失败\n".encode("gbk")
    (tmp_path / "a.log").write_bytes(commit(0, 5).encode() + other + commit(5, 6, "队列").encode("gbk"))
    records, report = imported(tmp_path)
    assert offsets(records) == [5, 6]
    assert report.lines.left_out["damaged lines (not_utf8)"] == 1


def test_a_file_whose_lines_cannot_be_used_says_why_with_an_example(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("hello\n" + commit(0, 5)[11:])
    ((source, count),) = scanned(tmp_path).without
    why = why_no_log(source.path, count)
    assert why is not None
    assert "without a date" in why
    assert "such as line 2: '08:11:00,000" in why


def test_lines_of_an_unknown_broker_are_counted(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("2026-03-09 08:11:00 INFO t - register broker[2]to name server 10.0.0.1:9876 OK\n")
    records, report = imported(tmp_path)
    assert records == []
    assert report.lines.left_out["lines of a broker.log, of an unknown broker"] == 1
    assert "--broker" in report.not_recognised[0][1]


def test_lines_of_two_brokers_without_a_name_are_of_none(tmp_path: Path) -> None:
    both = zip(broker_lines("broker-a").splitlines(), broker_lines("broker-b").splitlines(), strict=True)
    (tmp_path / "x.log").write_text("".join(f"{one}\n{other}\n" for one, other in both))
    records, report = imported(tmp_path)
    assert records == []
    assert "several brokers (broker-a, broker-b)" in report.not_recognised[0][1]


def test_a_file_that_is_no_text_is_not_read_to_its_end(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(1 << 20)
    (tmp_path / "core.1").write_bytes(noise + b"\n" + commit(0, 5).encode())
    ((_, count),) = scanned(tmp_path).without
    assert (count.read, count.trouble) == (0, "it is no text")
    (tmp_path / "core.1").write_bytes(noise[:10_000] + b"\n" + commit(0, 5).encode())
    assert scanned(tmp_path).lines.used == 1


def test_a_log_that_was_truncated_while_it_was_open_is_read(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(b"\0" * 5_000 + (commit(0, 5) + commit(5, 6)).encode())
    records, report = imported(tmp_path)
    assert offsets(records) == [6]
    assert report.lines.left_out["damaged lines (nul_bytes)"] == 1
