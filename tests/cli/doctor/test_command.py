"""`mqreplay doctor` as it is typed: its exit status, what goes where, and that it needs no Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqreplay.cli.command_line import main

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "data" / "sample" / "bulk-5.3.3"
WHOLE = b'{"offsetTable":{"orders@pay":{0:56}}}'


@pytest.fixture
def torn(tmp_path: Path) -> str:
    path = tmp_path / "consumerOffset.json"
    path.write_bytes(WHOLE[:20])
    return str(path)


def test_whole_files_of_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(path) for path in (SAMPLE / "snapshots").rglob("*.json*")] + [str(SAMPLE / "routes.jsonl.gz")]
    assert main(["doctor", *paths, str(SAMPLE / "brokers.json")]) == 0
    out, err = capsys.readouterr()
    assert out.count("\nok    ") + 1 == len(paths) + 1 > 100
    assert err == ""


def test_one_broken_file(torn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", torn, str(SAMPLE / "brokers.json")]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"WRONG {torn}"
    assert f"ok    {SAMPLE / 'brokers.json'}" in rest


def test_as_json(torn: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", torn]) == 1
    [file] = json.loads(capsys.readouterr().out)["files"]
    assert (file["path"], file["kind"], file["whole"]) == (torn, "consumer_offset", False)
    assert file["error"]["code"] == "torn"
    assert file["error"]["place"]["byte"] == 20


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is a folder; `mqreplay nightly"),
        ("nothing.json", "does not exist"),
        ("topics.json", "topics.json.bak is there: give that"),
        ("notes.txt", "neither its name nor its content"),
        ("x" * 300, "cannot be read: File name too long"),
        ("x" * 255, "cannot be read: File name too long"),  # its name with .bak is
    ],
)
def test_what_cannot_be_examined_does_not_keep_the_others_from_it(
    torn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    (tmp_path / "topics.json.bak").write_bytes(b"{}")
    (tmp_path / "notes.txt").write_bytes(b"hello")
    assert main(["doctor", str(tmp_path / name), torn]) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"WRONG {torn}\n")
    assert err.startswith("mqreplay: ")
    assert err.count("\n") == 1
    assert message in err


def test_many_that_cannot_be_examined_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *[f"nothing-{n}" for n in range(40)]]) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "mqreplay: nothing-0 does not exist"
    assert err[-1].strip() == "… and 35 files more"


def test_a_name_cannot_hide_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a\u202e\nok").mkdir()
    path = tmp_path / "a\u202e\nok" / "consumerOffset.json"
    path.write_bytes(b"{")
    assert main(["doctor", str(path)]) == 1
    assert f"WRONG {tmp_path}/a⟨U+202E⟩⟨LF⟩ok/consumerOffset.json\n" in capsys.readouterr().out


def test_neither_spark_nor_java_is_needed(torn: str) -> None:
    script = (
        "import sys; from mqreplay.cli.command_line import main; status = main(sys.argv[1:]); "
        "print([m for m in ('pyspark', 'delta', 'pandas', 'pyarrow', 'rich') if m in sys.modules]); sys.exit(status)"
    )
    env = {"PYTHONPATH": str(ROOT / "lib"), "PATH": "", "HOME": os.environ.get("HOME", "")}
    command = [sys.executable, "-c", script, "doctor", torn, str(SAMPLE / "routes.jsonl.gz")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1] == "[]"
