"""Lines of all forms, declared or reported, mixed, cut and joined: each is used, or counted by its form.

200,000 lines with the long tests, a tenth of them with the others.
"""

from __future__ import annotations

import io
import json
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from import_shapes import SHAPES
from mqreplay.decode.logs.form import Form
from mqreplay.decode.logs.log_line import LOGS as FORMS_OF_LOGS
from mqreplay.decode.logs.log_line import UnusableLine, read_log_line
from mqreplay.importer.import_command import import_evidence
from mqreplay.words.errors import InputError

FOLDERS, FILES = 5, 5
LINES = [pytest.param(800), pytest.param(8_000, marks=pytest.mark.long)]  # of each file

FOUND = [path for path in sorted(SHAPES.rglob("*")) if path.is_file()]
LOGS = [path.read_bytes() for path in FOUND if ".log" in path.name and b"\0" not in path.read_bytes()]
TEXTS = [path.read_bytes() for path in FOUND if path.suffix in (".txt", ".conf", ".yml") or path.name.startswith("run")]
# Values of each type of field, with which every declared message becomes a line.
VALUES = {
    "boolean": "true",
    "address": "10.1.0.7:10911",
    "object": '{"offsetTable":{}}',
    "ratio": "0.91",
    "queue": "MessageQueue [topic=pay, brokerName=broker-a, queueId=1]",
    "queues": "[MessageQueue [topic=pay, brokerName=broker-a, queueId=1]]",
    "channel": "ClientChannelInfo [channel=[id: 0x1, L:/10.1.0.7:10911 - R:/10.1.0.9:51024], clientId=10.1.0.9@7, "
    "language=JAVA, version=401, lastUpdateTimestamp=1795228807062]",
    **dict.fromkeys(("int", "long", "positive", "digits"), "17"),
}


def declared(form: Form) -> bytes:
    """Return a line with a declared message; fields of unknown values make it a damaged one."""
    message = re.sub(r"\{\?([^{}]*)\}", r"\1", form.text)
    message = re.sub(r"\{(\w*)(?::(\w+))?\}", lambda field: VALUES.get(field[2] or field[1], "pay"), message)
    return f"2026-03-09 08:12:05 INFO PullMessageThread_1 - {message}".encode()


DECLARED = [declared(form) for forms in FORMS_OF_LOGS.values() for form in forms]
MOST_FORMS = 40 + 3 * len(DECLARED)  # forms, not contents: each message may be cut, damaged or without a date
LOG_LINES = sorted({line for log in LOGS for line in log.splitlines() if line.strip()} | {*DECLARED})
OUTPUTS = [text for text in TEXTS if text and b"\0" not in text]
PLAIN = b"2026-03-09 08:12:05 INFO main - dispatch behind commit log 0 bytes"
PREFIXES = [
    b"rmqbroker    | ",
    b"\x1b[36mrmqbroker    |\x1b[0m ",
    b"2026-03-09T00:11:00.123456789Z ",
    b"Mar 09 00:11:00 node1 mqbroker[2211]: ",
    b"[pod/broker-0-master-0/broker] ",
    b"17:",
    b"logs/broker.log:17:",
    b"> ",
    b"\t",
    "\u4e2d\u6587 ".encode("gbk"),
    b"\xff\xfe",
    b"\x00",
]
NAMES = [
    *("broker.log", "rocketmq_client.log", "namesrv.log", "lock.log", "stats.log", "ons.log", "app.log", "LOG"),
    *(
        "4711_rocketmq-cpp.log.0",
        "000008.log",
        "output.txt",
        "notes",
        "broker-a-0.txt",
        "kubectl.out",
        "topicStatus.txt",
    ),
    *("2026-03-09.log", "broker.2.log", "messages", "docker-json.log", "journal"),
]


def broken(line: bytes, rng: random.Random) -> bytes:
    """Return a line as copying, containers and terminals leave it."""
    at = rng.randrange(len(line) + 1)
    match rng.randrange(14):
        case 0:
            return line[:at]
        case 1:
            return line[at:]
        case 2:
            return line + line
        case 3:
            return line[:at] + rng.choice(LOG_LINES)
        case 4:
            return rng.choice(PREFIXES) + line
        case 5:
            return rng.choice(PREFIXES) + rng.choice(PREFIXES) + line
        case 6:
            return json.dumps({"log": line.decode("utf-8", "replace") + "\n", "stream": "stdout"}).encode()
        case 7:
            return json.dumps({"message": line.decode("utf-8", "replace"), "level": "INFO"}).encode()
        case 8:
            return line.decode("utf-8", "replace").encode("utf-16-le")
        case 9:
            return line[:at] + "消费失败".encode("gbk") + line[at:]
        case 10:
            return line[:at] + bytes([rng.randrange(1, 256)]) + line[at + 1 :]
        case 11:
            return b"\x1b[31m" + line + b"\x1b[0m"
        case 12:
            return line.replace(b"1", b"99999999999999999999", 1)
        case _:
            return line.replace(b" ", b"", 1)


def log_text(rng: random.Random, number: int) -> bytes:
    """Return so many lines of logs, the first as RocketMQ writes it, with one of the ends of lines."""
    lines = [PLAIN]
    while len(lines) < number:
        line = rng.choice(LOG_LINES)
        line = broken(line, rng) if rng.random() < 0.4 else line
        lines.append(line.replace(b"\n", b" ").replace(b"\r", b" "))
    return rng.choice([b"\n", b"\r\n"]).join([*lines, b""])


def mixed_text(rng: random.Random, number: int) -> bytes:
    """Return about so many lines of logs and outputs of mqadmin, in one of the encodings that shells write."""
    lines: list[bytes] = []
    while len(lines) < number:
        if rng.random() < 0.05:
            lines += rng.choice(OUTPUTS).splitlines()
        else:
            line = rng.choice(LOG_LINES)
            lines.append(broken(line, rng) if rng.random() < 0.4 else line)
    data = rng.choice([b"\n", b"\r\n"]).join(lines)
    encoding = rng.choice(["", "", "utf-8-sig", "utf-16", "gb18030"])
    return data.decode("utf-8", "replace").encode(encoding) if encoding else data


def report_of(source: Path, rng: random.Random, recording: Path) -> dict[str, Any] | None:
    """Import a folder; the report as JSON, None after an error of our own that has none."""
    out = io.StringIO()
    options = {"broker": rng.choice([None, "broker-a-0"]), "time_zone": rng.choice([None, "+08:00", "UTC"])}
    with suppress(InputError):
        import_evidence([str(source)], str(recording), out, **options, as_json=True)
    return json.loads(out.getvalue()) if out.getvalue() else None


def files(folder: Path, rng: random.Random, text: Any, lines: int) -> dict[str, int]:
    """Write FILES files of any name; return the number of lines by path."""
    made = {}
    for number, name in enumerate(rng.sample(NAMES, FILES)):
        path = folder / rng.choice(["broker-a-0", "pod", "client-1", "2026-03-09"]) / str(number) / name
        path.parent.mkdir(parents=True)
        path.write_bytes(text(rng, lines))
        made[str(path)] = path.read_bytes().count(b"\n")
    return made


def check_lines(report: dict[str, Any]) -> None:
    lines = report["lines"]
    assert lines["read"] == lines["used"] + sum(lines["left_out"].values())
    assert all(number > 0 for number in lines["left_out"].values())
    assert len(lines["left_out"]) <= MOST_FORMS, "a form is no line"


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("seed", range(FOLDERS - 2))
def test_each_line_of_logs_is_used_or_counted(seed, lines, tmp_path):
    rng = random.Random(seed)
    made = files(tmp_path / "in", rng, log_text, lines)
    report = report_of(tmp_path / "in", rng, tmp_path / "recording")
    assert report is not None
    check_lines(report)
    assert report["lines"]["read"] == sum(made.values()) == FILES * lines, "the name of a file decides nothing"
    assert report["lines"]["used"] > 0
    reported = {path for one in report["recognised"] for path in one["path"].split(", ")}
    reported |= {one["path"] for one in report["not_recognised"]}
    assert set(made) <= reported


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("seed", range(FOLDERS - 2, FOLDERS))
def test_logs_and_outputs_in_one_file(seed, lines, tmp_path):
    rng = random.Random(seed)
    files(tmp_path / "in", rng, mixed_text, lines)
    report = report_of(tmp_path / "in", rng, tmp_path / "recording")
    if report is not None:
        check_lines(report)


def is_read(line: bytes) -> bool:
    with suppress(UnusableLine):
        read = read_log_line(line.decode())
        return read is not None and read.fact is not None
    return False


def test_there_is_something_to_mix():
    assert len(LOG_LINES) > 250
    assert sum(map(is_read, DECLARED)) > 0.7 * len(DECLARED)
    assert len(OUTPUTS) > 15
    assert FOLDERS * FILES * LINES[-1].values[0] == 200_000
