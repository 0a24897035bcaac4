"""The explanation of a finding: every kind has a rule, every finding has evidence that is there, and it can be told."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from deltalake import DeltaTable

from mqreplay.answers.explanation import explain
from mqreplay.answers.whole_evidence import with_whole_evidence
from mqreplay.cli.findings_command import print_explanation
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError


def findings_of(root: str) -> list[dict]:
    return DeltaTable(f"{root}/gold/finding").to_pyarrow_table().to_pylist()


def test_every_finding_rests_on_rows_that_are_there(night):
    named: dict[tuple[str, tuple[str, ...]], dict[tuple[object, ...], str]] = {}
    for finding in findings_of(night.root):
        assert finding["evidence"], finding["summary"]
        for each in finding["evidence"]:
            key = {name: value for name, value in each.items() if name != "table_name" and value is not None}
            row = (finding["cluster"], *key.values())
            named.setdefault((each["table_name"], ("cluster", *key)), {})[row] = finding["summary"]
    for (table, columns), rows in named.items():
        held = DeltaTable(f"{night.root}/{table.replace('.', '/')}").to_pyarrow_table(columns=list(columns))
        there = {tuple(row.values()) for row in held.to_pylist()}
        assert {rows[row] for row in rows.keys() - there} == set(), (table, columns)


def test_rows_that_a_finding_counts_alone_are_selected_again(night):
    warehouse = Warehouse(night.root)
    kinds = set()
    for finding in findings_of(night.root):
        if finding["evidence_count"] > len([each for each in finding["evidence"] if each["finding_id"] is None]):
            whole = with_whole_evidence(warehouse, finding)
            assert whole["evidence_count"] == finding["evidence_count"], finding["summary"]
            assert (
                len({(each["table_name"], each["record_id"]) for each in whole["evidence"]}) >= whole["evidence_count"]
            )
            kinds.add(finding["kind"])
    assert kinds >= {"slave_pull", "broker_down", "disk_bound_catchup", "duplicate_delivery", "pull_refused"}


@pytest.mark.long
def test_every_finding_of_both_nights_can_be_told(night, capsys):
    for finding in findings_of(night.root):
        print_explanation(night.root, finding["finding_id"], finding["cluster"], as_json=True)
        explanation = json.loads(capsys.readouterr().out)
        assert explanation["finding"]["summary"] == finding["summary"]
        assert explanation["rule"]
        assert explanation["evidence"], finding["summary"]
        assert all(row["what"] for row in explanation["evidence"]), finding["summary"]
        assert explanation["evidence_total"] >= finding["evidence_count"]
        assert (explanation["cause"] is None) == (finding["follows_from"] is None)
        times = [row["ts"] for row in explanation["evidence"] if row["ts"]]
        assert times == sorted(times)


@pytest.mark.parametrize("kind", ["broker_down", "strategy_conflict", "offset_beyond_max", "slave_pull", "stuck_queue"])
def test_a_story_has_rows_in_time_order_and_the_decisions(night, kind):
    warehouse = Warehouse(night.root)
    found = night.table("gold.finding", "DefaultCluster").filter(kind=kind)
    if kind != "stuck_queue":  # follows from a listener that did not finish
        found = found.filter(pl.col("severity") != "info")
    explanation = explain(warehouse, found["finding_id"][0][:10], None)
    assert explanation.finding["kind"] == kind
    assert explanation.evidence.rows
    times = [row.ts for row in explanation.evidence.rows if row.ts]
    assert times == sorted(times)
    assert bool(explanation.decisions) == (kind != "stuck_queue")
    if kind == "broker_down":
        assert found["summary"].str.contains(" went to a slave instead").all()


def test_a_story_as_json_and_on_the_terminal(night, capsys):
    found = night.table("gold.finding", "DefaultCluster")
    (down,) = found.filter(kind="broker_down", broker_name="broker-a")["finding_id"]
    (finding,) = found.filter(kind="duplicate_delivery", follows_from=down)["finding_id"]
    print_explanation(night.root, finding, None, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["cause"]["kind"] == "broker_down"
    print_explanation(night.root, finding, None, as_json=False)
    shown = capsys.readouterr().out
    assert re.search(r"Follows from\s+critical\s+broker_down", shown)
    print_explanation(night.root, down, None, as_json=False)
    assert "find_broker_address_in_subscribe" in capsys.readouterr().out


def test_what_is_not_there_is_said(night):
    with pytest.raises(InputError, match="no finding has an id that begins with xyz"):
        print_explanation(night.root, "xyz", None, as_json=False)
    with pytest.raises(InputError, match="does not exist"):
        print_explanation("/nowhere/at/all", "xyz", None, as_json=False)
