"""However a run ends: one line on stderr, a log with the rest, and the exit status that the documentation gives."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

import mqreplay.cli.command_line as cli
from made_warehouse import made_warehouse
from mqreplay.machine.crash import failure_of
from mqreplay.words.errors import ContractError, DecodeError, InputError, InputErrors, WarehouseLocked
from tests_shared import ROOT

# As in a shell: Python keeps results in a buffer and writes them at the end.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"} | {"PYTHONPATH": str(ROOT / "lib")}
UNEXPECTED = {
    "a defect": KeyError("kind"),
    "a defect without text": AssertionError(),
    "with lines": ValueError("first\n\tsecond\n" * 400),
    "full disk": OSError(errno.ENOSPC, "No space left on device", "/w/x"),
    "files": OSError(errno.EMFILE, "Too many open files"),
    "read-only": OSError(errno.EROFS, "Read-only file system"),
    "disk": OSError(errno.EIO, "Input/output error"),
    "memory": MemoryError(),
    "recursion": RecursionError("maximum recursion depth exceeded"),
    "pipe": BrokenPipeError(errno.EPIPE, "Broken pipe"),
    "java": ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    "threads": RuntimeError("can't start new thread"),
    "worker": RuntimeError("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"),
    "process": BrokenProcessPool("A process in the process pool was terminated abruptly"),
}
DO = {
    "full disk": "free some space in ",
    "files": "`ulimit -n 65536`",
    "memory": "driver_memory",
    "java": "Java ended",
    "pipe": "Java ended",
    "threads": "`ulimit -u`",
    "process": "a Python worker was killed",
    "a defect": "report it with the log",
}


def ends_with(error: BaseException, monkeypatch: pytest.MonkeyPatch, warehouse: Path) -> int:
    def fail(args: object) -> int:
        raise error

    monkeypatch.setitem(cli.BY_NAME, "sql", replace(cli.BY_NAME["sql"], run=fail))
    return cli.main(["sql", "SELECT 1", "--warehouse", str(warehouse)])


@pytest.mark.parametrize("kind", UNEXPECTED)
def test_what_nobody_expected(kind: str, monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "mqreplay.machine.crash.output_of_java", list
    )  # other tests of this process may have made Java log errors
    assert ends_with(UNEXPECTED[kind], monkeypatch, tmp_path) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("mqreplay: ")
    assert "run it again" in err
    assert DO.get(kind, "") in err
    log = Path(re.search(r"log: (\S+)$", err.strip())[1])
    assert log.parent == tmp_path / "logs"
    text = log.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in text
    assert "command: sql SELECT 1 --warehouse" in text
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (InputError("bad"), 2, ["mqreplay: bad"]),
        (ContractError("bad\nforged"), 2, ["mqreplay: bad\\nforged"]),
        (DecodeError("torn", "x\x1b"), 2, ["mqreplay: torn: x\\x1b"]),
        (InputErrors(["one", "two\n"]), 2, ["mqreplay: one", "          two\\n"]),
        (WarehouseLocked("in use"), 3, ["mqreplay: in use"]),
        (KeyboardInterrupt(), 130, ["mqreplay: interrupted; the next run continues where this one ended"]),
    ],
)
def test_what_is_expected(error, status, said, monkeypatch, capsys, tmp_path: Path) -> None:
    assert ends_with(error, monkeypatch, tmp_path) == status
    assert capsys.readouterr().err.splitlines() == said
    assert not (tmp_path / "logs").exists()


def test_the_innermost_cause_counts() -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as inner:
            raise RuntimeError("Job aborted due to stage failure") from inner
    except RuntimeError as error:
        failure, cause = failure_of(error)
    assert failure is not None
    assert (failure.happened, cause) == ("the disk is full", "OSError: [Errno 28] No space left on device")


def test_the_log_goes_elsewhere_where_the_warehouse_takes_none(monkeypatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    assert ends_with(KeyError("x"), monkeypatch, tmp_path) == 4
    assert f"log: {tmp_path}/temporary/mqreplay-logs-{os.getuid()}/mqreplay-" in capsys.readouterr().err
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert ends_with(KeyError("x"), monkeypatch, tmp_path) == 4
    assert capsys.readouterr().err.endswith("no log could be written\n")


def test_a_link_in_the_place_of_the_log_is_not_followed(monkeypatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"mqreplay-logs-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert ends_with(KeyError("x"), monkeypatch, tmp_path / "none") == 4
    assert capsys.readouterr().err.endswith("no log could be written\n")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_secret_reaches_the_log(monkeypatch, capsys, tmp_path: Path) -> None:
    ends_with(ValueError("fs.s3a.secret.key=hush, password: hush; https://me:hush@host/"), monkeypatch, tmp_path)
    [log] = (tmp_path / "logs").iterdir()
    assert "hush" not in log.read_text(encoding="utf-8")


# A command that waits in order, and at its end waits for a thread: both can be stopped.
WAITING = """
import signal, sys, threading, time
from dataclasses import replace
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a shell's foreground
import mqreplay.cli.command_line as cli

def wait(args):
    threading.Thread(target=time.sleep, args=(float(sys.argv[1]),)).start()
    try:
        print("waiting", flush=True)
        time.sleep(60)
    finally:
        print("cleaning", flush=True)
        time.sleep(float(sys.argv[2]))

cli.BY_NAME["doctor"] = replace(cli.BY_NAME["doctor"], run=wait)
sys.exit(cli.main(["doctor"], own_process=True))
"""


@pytest.fixture
def waiting() -> Iterator[object]:
    started = []

    def start(at_exit: int, cleaning: int = 0) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WAITING, str(at_exit), str(cleaning)]
        run = subprocess.Popen(command, env=ENVIRONMENT, stdout=-1, stderr=-1, text=True)
        started.append(run)
        assert run.stdout is not None
        assert run.stdout.readline() == "waiting\n"
        return run

    yield start
    for run in started:
        run.kill()
        run.communicate()


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_stopped(waiting, number, status, said) -> None:
    run = waiting(0)
    run.send_signal(number)
    _, err = run.communicate(timeout=20)
    assert (run.returncode, err) == (status, f"mqreplay: {said}; the next run continues where this one ended\n")


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_stopped_twice(waiting, second) -> None:
    run = waiting(60)
    run.send_signal(signal.SIGINT)
    line = run.stderr.readline()
    assert line == "mqreplay: interrupted; the next run continues where this one ended\n"
    time.sleep(0.3)  # it waits for the thread now
    assert run.poll() is None
    run.send_signal(second)
    _, err = run.communicate(timeout=20)
    assert (run.returncode, err) == (128 + second, "")


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_stopped_again_while_it_cleans_up(waiting, second) -> None:
    run = waiting(0, 60)
    run.send_signal(signal.SIGTERM)
    assert run.stdout.readline() == "cleaning\n"
    run.send_signal(second)
    _, err = run.communicate(timeout=20)
    said = "mqreplay: stopped at once; the next run continues where this one ended\n"
    assert (run.returncode, err) == (128 + second, said)


def command_line(arguments: str) -> subprocess.CompletedProcess[str]:
    script = f'"{sys.executable}" -m mqreplay.cli {arguments}'
    return subprocess.run(["bash", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False)


def test_results_that_nobody_reads(tmp_path: Path) -> None:
    lines = tmp_path / "pull_log.jsonl"
    lines.write_text("{}\n" * 10)
    done = command_line(f"doctor {' '.join([str(lines)] * 500)} | true; exit ${{PIPESTATUS[0]}}")
    assert done.stderr == ""
    assert done.returncode in (0, 1)


def test_results_that_no_disk_takes() -> None:
    done = command_line("doctor --json > /dev/full")
    assert done.returncode == 4
    assert done.stderr.startswith("mqreplay: the disk is full (OSError: [Errno 28] No space left on device)")
    assert done.stderr.count("\n") == 1


def test_help_gives_every_status() -> None:
    done = command_line("--help")
    assert [int(n) for n in re.findall(r"^  (\d+)  ", done.stdout, re.MULTILINE)] == [0, 1, 2, 3, 4, 130]


@pytest.mark.parametrize("command", ["sql", "explain", "replay", "validate", "report", "maintain"])
def test_a_warehouse_that_is_not_there(command: str, tmp_path: Path, capsys) -> None:
    """It is found before Spark starts, which takes seconds, and no folder is made."""
    more = {"sql": ["SELECT 1"], "explain": ["f"]}.get(command, [])
    for folder, said in (("none", "does not exist"), ("", "is not a warehouse")):
        began = time.process_time()
        assert cli.main([command, *more, "--warehouse", str(tmp_path / folder)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), said in err) == ("", 1, True)
        assert "starting Spark" not in err
        assert time.process_time() - began < 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [["sql", "SELECT 1"], ["explain", "f"], ["replay"], ["nightly", str(ROOT / "data")], ["sql", "SELECT"]]
)
def test_a_name_that_is_too_long(command: list[str], capsys) -> None:
    assert cli.main([*command, "--warehouse", "x" * 300]) == 2
    out, err = capsys.readouterr()
    said = [line for line in err.splitlines() if "starting Spark" not in line]
    assert (out, len(said)) == ("", 1)
    assert said[0].startswith("mqreplay: warehouse ")
    assert said[0].endswith("is too long for the file system; choose another name")


def test_a_log_is_written_though_the_warehouse_has_a_name_that_is_too_long(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ends_with(KeyError("x"), monkeypatch, Path("x" * 300)) == 4
    assert f"log: {tmp_path}/mqreplay-logs-" in capsys.readouterr().err


def java_of(process: int) -> int:
    """The Java that the process started."""
    for _ in range(600):
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = entry.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name == "java" and int(rest.split()[1]) == process:
                return int(entry.parent.name)
        time.sleep(0.1)
    raise AssertionError("no Java")


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "java", "status", "said"),
    [
        (signal.SIGKILL, True, 4, r"mqreplay: Java ended \(.*\); .* log: \S+"),
        pytest.param(signal.SIGTERM, False, 143, "mqreplay: terminated; .*", marks=pytest.mark.long),
        pytest.param(signal.SIGINT, False, 130, "mqreplay: interrupted; .*", marks=pytest.mark.long),
    ],
)
def test_a_query_of_spark_that_is_stopped(tmp_path: Path, number, java, status, said) -> None:
    (tmp_path / "gold").mkdir()
    query = "SELECT count(*) FROM range(100000000000000)"
    foreground = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [
        sys.executable,
        "-c",
        f"{foreground}; from mqreplay.cli.command_line import main; raise SystemExit(main())",
    ]
    run = subprocess.Popen(
        [*command, "sql", query, "--engine", "spark", "--warehouse", str(tmp_path)],
        env=ENVIRONMENT,
        stdout=-1,
        stderr=-1,
        text=True,
    )
    try:
        process = java_of(run.pid)
        time.sleep(12)  # the query runs, or Java still starts: both may be stopped
        os.kill(process if java else run.pid, number)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert (run.returncode, out) == (status, ""), err
    assert re.fullmatch(said + "\n", err), err


@pytest.mark.first_case
@pytest.mark.parametrize(("number", "said"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
def test_a_query_of_duckdb_that_is_stopped(tmp_path: Path, number: int, said: str) -> None:
    made_warehouse(tmp_path, {"gold.judgement": [{"decision": "x", "decisions": 1}]})
    query = (
        "SELECT count(*) FROM range(100000000000000) a, range(1000) b, gold.judgement WHERE a.range * b.range % 7 = 1"
    )
    foreground = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{foreground}; from mqreplay.cli.command_line import main; raise SystemExit(main())"
    run = subprocess.Popen(
        [sys.executable, "-c", program, "sql", query, "--warehouse", str(tmp_path)],
        env=ENVIRONMENT | {"TMPDIR": str(tmp_path)},
        stdout=-1,
        stderr=-1,
        text=True,
    )
    try:
        for _ in range(600):
            if run.poll() is not None or any(tmp_path.glob("mqreplay-*/tmp*")):  # the database is open
                break
            time.sleep(0.05)
        time.sleep(0.5)
        run.send_signal(number)
        out, err = run.communicate(timeout=30)
    finally:
        run.kill()
    assert (run.returncode, out) == (128 + number, ""), err
    assert err == f"mqreplay: {said}; the next run continues where this one ended\n"
