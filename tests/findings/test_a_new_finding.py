"""docs/development/a-new-finding.md: its package is installed, tested, and reports in a night."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from page_files import files_of, install, run
from tests_shared import ROOT

FILES = files_of("docs/development/a-new-finding.md")
TS = 1795507200000  # 2026-11-24 08:00 UTC
GROUP = {"groupName": "pay", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
GROUP |= {"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": []}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    install(tmp_path / "site", FILES)
    return tmp_path / "site"


def heartbeats() -> str:
    """Three consumers that each live for 15 s."""
    lines = []
    for number in range(3):
        since, client = TS + 20_000 * number, f"10.0.0.1@{number}"
        common = {"client_id": client, "broker_name": "broker-a", "broker_id": 0, "response_code": 0}
        body = {"clientID": client, "consumerDataSet": [GROUP], "producerDataSet": []}
        header = {"clientID": client, "consumerGroup": "pay"}
        lines.append({"ts": since, "kind": "HEART_BEAT", "body": body} | common)
        lines.append({"ts": since + 15_000, "kind": "UNREGISTER_CLIENT", "header": header} | common)
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.long
def test_a_night_reports_the_finding_of_a_package(site: Path, tmp_path: Path) -> None:
    recording, warehouse = tmp_path / "recording", tmp_path / "warehouse"
    recording.mkdir()
    (recording / "heartbeats.jsonl").write_text(heartbeats(), encoding="utf-8")
    command = ["-m", "mqreplay.cli.command_line"]
    where = ["--warehouse", str(warehouse)]
    options = [*where, "--cluster", "c", "--engine", "local"]
    night = run([*command, "nightly", str(recording), *options], ROOT / "lib", site)
    assert night.returncode == 0, night.stderr
    listed = run([*command, "findings", *where, "--json"], ROOT / "lib", site)
    (found,) = [row for row in json.loads(listed.stdout)["findings"] if row["kind"] == "consumer_restart"]
    assert found["summary"] == "Group pay: 3 consumers stopped within 60 s of their start."
    assert found["advice"].startswith("Read the log of the application")
    chinese = run(["-X", "utf8", *command, "findings", *where, "--lang", "zh"], ROOT / "lib", site)
    assert "消费者分组 pay：3 个消费者在启动后 60 秒内停止。" in chinese.stdout
    explained = run([*command, "explain", found["finding_id"], *where], ROOT / "lib", site)
    assert "At least 3 consumers of one group unregistered" in explained.stdout
    assert any("consumer_restart" in page.read_text(encoding="utf-8") for page in warehouse.rglob("*.html"))


def test_the_test_of_the_package_passes(site: Path) -> None:
    done = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", str(site)], ROOT / "lib", site)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_page_of_findings_has_it(site: Path) -> None:
    done = run([str(ROOT / "tools/docs/findings.py")], ROOT / "lib", ROOT / "tools", site)
    assert "### consumer_restart\n\nThe application of a group starts and stops again and again." in done.stdout
    assert "- heartbeats and unregistrations: run `mqreplay record`" in done.stdout
    broker_down = done.stdout.split("### broker_down\n")[1].split("\n### ")[0]
    assert "[consumer_restart](#consumer_restart)" in broker_down


def test_the_same_module_in_the_folder_of_findings_is_a_kind_of_mqreplay(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("consumer_restarts.py", "consumer_restart.toml"):  # nothing else is needed
        (tmp_path / "lib/mqreplay/findings" / name).write_text(FILES[name], encoding="utf-8")
    script = "from mqreplay.findings.registry import SHIPPED; print(SHIPPED['consumer_restart'].text('rule', 'zh'))"
    done = run(["-X", "utf8", "-c", script], tmp_path / "lib")
    assert done.stdout == "同一分组至少有 3 个消费者在首次出现后 60 秒内注销。\n", done.stderr
