"""`mqreplay.open`: findings, tables, explanations, states and suppositions, in a script or a notebook."""

from __future__ import annotations

import polars as pl
import pytest

import mqreplay
from mqreplay.cli.command_line import main
from mqreplay.errors import InputError


@pytest.fixture(scope="module")
def replay(night) -> mqreplay.notebook.replay.Replay:  # type: ignore[name-defined]
    return mqreplay.open(night.root, "DefaultCluster")


def test_findings_are_those_of_the_command(replay, night, capsys):
    found = replay.findings(severity="warning")
    assert main(["findings", "--severity", "warning", "--cluster", "DefaultCluster", "--warehouse", night.root]) == 0
    printed = capsys.readouterr().out
    assert len(found) > 0
    assert all(row["finding_id"][:8] in printed for row in found)
    assert set(found.frame["cluster"]) == {"DefaultCluster"}
    assert len(replay.findings(kind="broker_down")) == 2
    assert str(replay.findings(since="2030-01-01")) == "No findings."


def test_a_notebook_shows_findings_as_a_table(replay):
    shown = replay.findings(severity="critical")._repr_html_()
    assert shown.count("<tr>") == 1 + len(replay.findings(severity="critical"))
    assert replay.findings(since="2030-01-01")._repr_html_() == "<p>No findings.</p>"


def test_names_cannot_become_html(replay):
    row = replay.findings(severity="critical").frame.head(1)
    hostile = mqreplay.notebook.shown.Findings(row.with_columns(pl.lit("<script>alert(1)</script>").alias("summary")))
    assert "<script>" not in hostile._repr_html_()


def test_a_table_is_read_by_polars_and_arrow(replay, night):
    table = replay.table("gold.finding")
    assert table.polars().height == table.arrow().num_rows == len(replay.findings())
    assert mqreplay.open(night.root).table("gold.finding").polars().height > table.polars().height
    assert "severity" in table.columns
    assert table._repr_html_().startswith("<div>")
    with pytest.raises(InputError, match=r"did you mean gold\.finding"):
        replay.table("gold.findings")


def test_a_table_is_read_by_spark(replay, spark):
    rows = replay.table("gold.finding").spark(spark)
    assert rows.count() == len(replay.findings())


def test_sql_gives_a_frame(replay):
    found = replay.sql("SELECT cluster, count(*) AS findings FROM gold.finding GROUP BY ALL ORDER BY ALL")
    assert found.columns == ["cluster", "findings"]
    assert found.filter(cluster="DefaultCluster")["findings"].item() == len(replay.findings())


def test_an_explanation_reads_as_in_the_terminal(replay):
    (finding, *_) = replay.findings(severity="critical")
    shown = replay.explain(finding["finding_id"][:8])
    assert shown.value.finding["finding_id"] == finding["finding_id"]
    assert "Rule " in str(shown)
    assert "\x1b" not in str(shown)
    assert shown._repr_html_().startswith("<pre>")


def test_what_was_and_what_would_have_been(replay):
    assert replay.at("02:51:30", group="order-group").value.groups["consumer_group"].to_list() == ["order-group"]
    assert "Brokers" in str(replay.at("02:51:30"))
    assert replay.changes("02:51", "02:52").value.height > 0
    answer = replay.whatif(consumers=1, group="order-group")
    assert answer.value.prediction is not None
    assert "order-group" in str(answer)


def test_mistakes_are_errors(night, tmp_path):
    with pytest.raises(InputError, match="has no cluster other"):
        mqreplay.open(night.root, "other")
    with pytest.raises(InputError):
        mqreplay.open(str(tmp_path / "nothing"))


def test_an_unknown_kind_is_an_error(replay):
    with pytest.raises(InputError, match="did you mean broker_down"):
        replay.findings(kind="brokerdown")
