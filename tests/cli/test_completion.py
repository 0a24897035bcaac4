"""Words of a warehouse that a shell completes: findings, kinds, groups, topics, brokers, clusters and tables."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from argcomplete import CompletionFinder

from made_warehouse import made_warehouse
from mqreplay.cli import completion
from mqreplay.cli.command_line import parser
from mqreplay.cli.completion import COLUMNS, complete_names, names_of
from mqreplay.lake.contract import load_contracts
from tests_shared import ROOT

STUCK = {"finding_id": "701391d9aaaaaaaa", "kind": "stuck_queue", "severity": "warning", "consumer_group": "pay-group"}
DOWN = {"finding_id": "70aa00d9bbbbbbbb", "kind": "broker_down", "severity": "critical", "broker_name": "broker-a"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    findings = [
        {"topic": "pay-topic", **STUCK},
        {"topic": "pay-topic", **STUCK, "finding_id": "ee", "cluster": "second"},
        DOWN,
    ]
    made_warehouse(folder, {"gold.finding": findings, "silver.broker": [{"broker_name": "broker-b"}]})
    return folder


def completed(line: str, monkeypatch: pytest.MonkeyPatch, rest: str = "") -> list[str]:
    """Return the words that are offered for the last word of a line; ``rest`` is after the cursor."""
    monkeypatch.setattr(names_of, "__defaults__", (60.0,))  # a busy machine
    monkeypatch.setenv("COMP_LINE", line + rest)
    *words, last = line.split(" ")
    made = parser()
    complete_names(made)
    offered = CompletionFinder(made, always_complete_options=False)._get_completions(words, last, "", None)
    return sorted(word.strip() for word in offered)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mqreplay explain --warehouse W 70", ["701391d9", "70aa00d9"]),
        ("mqreplay explain --warehouse W 701391d9a", ["701391d9aaaaaaaa"]),
        ("mqreplay mute --warehouse W 7013", ["701391d9"]),
        ("mqreplay findings --warehouse W --kind s", ["stuck_queue"]),
        ("mqreplay mute --warehouse W --group ", ["pay-group"]),
        ("mqreplay findings --warehouse=W --topic pay", ["pay-topic"]),
        ("mqreplay ready --warehouse W b", ["broker-a", "broker-b"]),
        ("mqreplay whatif --warehouse W --lose-master broker-", ["broker-a", "broker-b"]),
        ("mqreplay advise --warehouse W p", ["pay-group"]),
        ("mqreplay at --warehouse W --cluster ", ["c", "second"]),
        ("mqreplay tables --warehouse W gold.", ["gold.finding"]),
    ],
)
def test_names_of_the_warehouse_are_offered(line: str, offered: list[str], root: Path, monkeypatch) -> None:
    assert completed(line.replace("W", str(root)), monkeypatch) == offered


def test_a_warehouse_of_the_environment_or_after_the_cursor(root: Path, monkeypatch) -> None:
    assert completed("mqreplay ready broker-b", monkeypatch) == []
    assert completed("mqreplay ready broker-b", monkeypatch, f" --warehouse {root}") == ["broker-b"]
    monkeypatch.setenv("MQREPLAY_WAREHOUSE", str(root))
    assert completed("mqreplay ready broker-b", monkeypatch) == ["broker-b"]
    assert completed("mqreplay ready broker-b", monkeypatch, " --warehouse nowhere") == []
    # It has no warehouse: brokers of a store need not be those of one.
    assert completed("mqreplay import --broker broker-b", monkeypatch) == []


def test_findings_have_a_description(root: Path) -> None:
    found = names_of(root, "finding", "", 60)
    assert found == {"701391d9": "warning stuck_queue", "70aa00d9": "critical broker_down", "ee": "warning stuck_queue"}


def test_a_broken_warehouse_offers_nothing(tmp_path: Path, monkeypatch, capfd) -> None:
    log = tmp_path / "gold" / "finding" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{", encoding="utf-8")
    for line in ("explain --warehouse W ", "findings --warehouse W --kind ", "advise --warehouse s3://nowhere/W "):
        assert completed(f"mqreplay {line.replace('W', str(tmp_path))}", monkeypatch) == []
    assert capfd.readouterr() == ("", "")


def test_a_slow_warehouse_does_not_hold_up_the_shell(tmp_path: Path, monkeypatch) -> None:
    def slowly(*_: object) -> Iterator[tuple[str, str]]:
        yield "one", ""
        time.sleep(30)
        yield "two", ""

    monkeypatch.setattr(completion, "_rows", slowly)
    began = time.monotonic()
    assert names_of(tmp_path, "kind", "", 0.2) == {"one": ""}
    assert time.monotonic() - began < 10


def test_columns_are_those_of_the_contracts() -> None:
    contracts = load_contracts()
    for column, tables in COLUMNS.values():
        for table in tables:
            assert column in {each.name for each in contracts[table].columns}


def test_little_is_loaded(root: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mqreplay.cli.completion import names_of; "
        f"print(len(names_of(Path({str(root)!r}), 'kind', '', 60)), "
        "sorted({'duckdb', 'polars', 'pyspark', 'pyarrow', 'rich', 'mqreplay.lake'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("2 []\n", "")
