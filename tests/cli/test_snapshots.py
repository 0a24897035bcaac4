"""What the commands print about the sample (tests/snapshots.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mqreplay.cli.command_line import main
from mqreplay.machine.places import conf_dir
from mqreplay.terminal.outcome import print_outcome
from snapshots import assert_is_snapshot
from tests_shared import SAMPLE

RECORDINGS = [str(SAMPLE / name) for name in ("orders-4.9.7", "bulk-5.3.3")]
SECONDS = re.compile(r"^ +\d+\.\d s  ", re.MULTILINE)
EXPLAINED = {"broker_down": "701391d9", "offset_reset": "13eb7a38", "consumer_lost": "e1e4b04f"}


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a terminal of 100 columns without colours."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


def masked(text: str, root: str) -> str:
    """Return the text without the warehouse of this run and the seconds of its progress lines."""
    return SECONDS.sub("    0.0 s  ", text.replace(str(Path(root)), "WAREHOUSE"))


def test_night_of_one_cluster(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_outcome([night.outcomes["DefaultCluster"]], "nightly", night.root)
    assert_is_snapshot("nightly", masked(capsys.readouterr().out, night.root))


def test_same_night_again(night: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "one.toml"  # a pool of processes costs more than this run
    conf.write_text(f"{(conf_dir() / 'sample.toml').read_text(encoding='utf-8')}\n[local]\nprocesses = 1\n")
    assert main(["nightly", *RECORDINGS, "--warehouse", night.root, "--conf", str(conf)]) == 0
    out, err = capsys.readouterr()
    assert_is_snapshot("nightly_again", masked(f"{err}{out}", night.root))


def test_findings(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "--warehouse", night.root]) == 0
    assert_is_snapshot("findings", masked(capsys.readouterr().out, night.root))


@pytest.mark.parametrize("kind", EXPLAINED)
def test_explain(kind: str, night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", EXPLAINED[kind], "--warehouse", night.root]) == 0
    assert_is_snapshot(f"explain_{kind}", masked(capsys.readouterr().out, night.root))
