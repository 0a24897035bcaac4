"""The examples in conf/examples that run a night: systemd reads them, and the command line accepts their command."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from mqreplay.cli.command_line import parser
from tests_shared import ROOT

EXAMPLES = ROOT / "conf/examples"
MQREPLAY = "/opt/mqreplay/.venv/bin/mqreplay"
UNITS = ("nightly.service", "nightly.timer")

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string((EXAMPLES / name).read_text())
    return read


def test_service_reads_what_the_recorder_writes() -> None:
    service = unit("nightly.service")["Service"]
    program, *words = shlex.split(service["ExecStart"].replace("${STATE_DIRECTORY}", "/var/lib/mqreplay"))
    args = parser().parse_args(words)
    assert (program, args.command) == (MQREPLAY, "nightly")
    assert args.recordings == ["/var/lib/mqreplay/recording"]
    recorder = (EXAMPLES / "record.service").read_text()
    for line in ("--out ${STATE_DIRECTORY}/recording", "StateDirectory=mqreplay", "User=mqreplay"):
        assert line in recorder
    assert (service["StateDirectory"], service["User"]) == ("mqreplay", "mqreplay")


def test_timer_starts_the_service() -> None:
    head = (EXAMPLES / "nightly.service").read_text()
    assert f"/etc/systemd/system/{unit('nightly.timer')['Timer']['Unit']}" in head


@needs_systemd
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name in UNITS:
        text = (EXAMPLES / name).read_text().replace(MQREPLAY, "/bin/true").replace("User=mqreplay", "User=root")
        (tmp_path / f"mqreplay-{name}").write_text(text)
    files = [str(tmp_path / f"mqreplay-{name}") for name in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "mqreplay-nightly" in line] == []


@needs_systemd
def test_systemd_accepts_the_time() -> None:
    time = unit("nightly.timer")["Timer"]["OnCalendar"]
    done = subprocess.run(["systemd-analyze", "calendar", time], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
