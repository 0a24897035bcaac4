"""What commands print about the sample with --lang zh: no English sentence is left, and columns are aligned."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest
from rich.cells import cell_len

from language.chinese import ZH
from mqreplay.cli.command_line import main
from mqreplay.findings.every import KINDS
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.evidence_rows import evidence_of
from mqreplay.terminal.console import padded
from mqreplay.terminal.outcome import print_outcome
from night.made_nights import judged_night

SENTENCE = re.compile(r"(?<![\w.#-])[a-z]+(?: [a-z]+){2,}(?![\w-])")
# Names, commands, and errors as programs wrote them.
RAW = re.compile(
    r"`[^`]*`|mqreplay \w.*|(?:错误|没有应答|被拒绝|响应码 \d+)：.*|mqadmin [^，。；]*|SELECT .*|应答 \d+：[^，]*"
    r"|\b(\w+)：\1: .*"  # why a file or line is in quarantine
)
CONFIDENT = "置信度"
RECORDINGS = ("polled-5.3.3", "outages-5.3.3", "resets-4.9.7")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
FOUND = re.compile(r"^(?:严重|警告|提示) ")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a terminal in which no text is wrapped."""
    monkeypatch.setenv("COLUMNS", "20000")
    monkeypatch.setenv("NO_COLOR", "1")


def english(text: str) -> list[str]:
    """Return the lines with three and more English words in a row that no program, file or recording has."""
    return [line for line in text.splitlines() if SENTENCE.search(RAW.sub("", line))]


def test_findings(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "--warehouse", night.root, "--lang", "zh"]) == 0
    out = capsys.readouterr().out
    assert english(out) == []
    heads = [line for line in out.splitlines() if FOUND.search(line)]
    assert len(heads) == sum(len(outcome.findings) for outcome in night.outcomes.values())
    kinds = [max(line.find(f" {kind} ") for kind in KINDS) for line in heads]
    assert {cell_len(line[:at]) for line, at in zip(heads, kinds, strict=True)} == {8}, "kinds begin in one column"


def test_explain_a_finding_of_each_kind(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = {str(f["kind"]): str(f["finding_id"]) for each in night.outcomes.values() for f in each.findings}
    assert len(found) > 20
    for finding_id in found.values():
        assert main(["explain", finding_id, "--warehouse", night.root, "--lang", "zh"]) == 0
        out = capsys.readouterr().out
        assert CONFIDENT in out
        assert english(out) == []


def test_the_outcome_of_each_cluster(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for outcome in night.outcomes.values():
        print_outcome([outcome], "nightly", night.root, ZH)
        out = capsys.readouterr().out
        assert english(out) == []
        assert "下次要判断更多：" in out
        assert "校验：" in out


def test_nothing_is_cut_in_a_narrow_terminal(
    night: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for outcome in night.outcomes.values():
        print_outcome([outcome], "nightly", night.root, ZH)
        for finding in outcome.findings[:5]:
            options = ["--cluster", outcome.cluster, "--warehouse", night.root, "--lang", "zh"]
            assert main(["explain", str(finding["finding_id"]), *options]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.endswith("\N{HORIZONTAL ELLIPSIS}")] == []


def test_the_outcome_of_several_clusters(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_outcome(list(night.outcomes.values()), "nightly", night.root, ZH)
    out = capsys.readouterr().out
    assert english(out) == []
    lines = [(line, name) for line in out.splitlines() for name in night.outcomes if f" {name} " in line]
    assert {cell_len(line[: line.index(name)]) for line, name in lines} == {9}, "names of clusters begin in one column"
    assert len(lines) == len(night.outcomes)


DAY = "2026-11-21"
ANSWERS = (
    ["at", "02:51:30"],
    ["at", "02:51:30", "--group", "order-group"],
    ["at", "02:48", "--to", "02:57"],
    ["ready", "broker-a"],
    ["ready", "broker-a", "--id", "1"],
    ["ready", "broker-a", "--at", "02:52"],
    ["compare", DAY, DAY],
    *(["advise", f"{name}-group"] for name in ("order", "stuck", "mixalg", "pay-room", "bulk", "refund")),
    ["whatif", "--consumers", "+2", "--group", "order-group"],
    ["whatif", "--queues", "3", "--topic", "order-topic"],
    ["whatif", "--set", "ratio=60", "--broker", "broker-a"],
    ["whatif", "--lose-master", "broker-a", "--at", "02:45"],
    ["whatif", "--reset-to", "02:45", "--group", "pay-group"],
    ["whatif", "--drain", "--group", "bulk-group", "--at", "02:44"],
)


@pytest.mark.parametrize("command", ANSWERS, ids=" ".join)
def test_answers(command: list[str], night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--cluster", "DefaultCluster", "--warehouse", night.root, "--lang", "zh"]
    assert main([*command, *options]) in (0, 1)
    out = capsys.readouterr().out
    assert CHINESE.search(out)
    assert english(out) == []
    assert main([*command, *options, "--json"]) in (0, 1)
    assert not CHINESE.search(capsys.readouterr().out), "tables are in English"


def test_findings_as_a_table_and_for_other_programs(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("md", "junit", "sarif"):
        assert main(["findings", "--warehouse", night.root, "--format", form, "--lang", "zh"]) == 0
        assert "严重" in (out := capsys.readouterr().out) or form != "md"
        assert "2026-11-21" in out
    for form in ("json", "csv"):
        assert main(["findings", "--warehouse", night.root, "--format", form]) == 0
        before = capsys.readouterr().out
        assert main(["findings", "--warehouse", night.root, "--format", form, "--lang", "zh"]) == 0
        assert capsys.readouterr().out == before, "tables are in English"


def test_explain_in_json_is_in_english(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    finding_id = next(str(f["finding_id"]) for f in next(iter(night.outcomes.values())).findings)
    texts = []
    for lang in ("en", "zh"):
        assert main(["explain", finding_id, "--warehouse", night.root, "--json", "--lang", lang]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def assert_translated(root: str) -> None:
    """Assert that the reasons of a warehouse and its rows of evidence are in Chinese."""
    warehouse = Warehouse(root)
    for name in warehouse.contracts:
        if not name.startswith("gold.") or not warehouse.exists(name):
            continue
        rows = warehouse.read(name)
        if "reason" in rows.collect_schema().names():
            reasons = rows.select(pl.col("reason").unique().drop_nulls()).collect()["reason"]
            assert [text for text in reasons if text and not ZH.knows(text)] == [], name
    findings = warehouse.read("gold.finding").collect().to_dicts()
    assert findings
    for cluster in {finding["cluster"] for finding in findings}:
        here = [finding for finding in findings if finding["cluster"] == cluster]
        shown = evidence_of(warehouse, cluster, here, 20, whole=True, words=ZH)
        texts = [row.what for each in shown.values() for row in each.rows]
        texts += [group.text for each in shown.values() for group in each.groups]
        assert texts
        assert [text for text in texts if SENTENCE.search(RAW.sub("", text))] == []


def test_rows_of_the_sample_are_translated(night: Any) -> None:
    assert_translated(night.root)


@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.first_case
def test_rows_of_a_recording_are_translated(recording: str) -> None:
    assert_translated(judged_night(recording).root)


def test_a_text_is_padded_to_cells_of_the_terminal() -> None:
    assert [cell_len(padded(text, 9)) for text in ("严重", "critical", "严重critical", "无法判断")] == [9, 9, 12, 9]
