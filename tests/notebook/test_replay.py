"""`mqreplay.open`: findings, tables, explanations, states and suppositions, in a script or a notebook."""

from __future__ import annotations

import datetime as dt
import doctest

import polars as pl
import pytest

import mqreplay
from mqreplay.answers import duckdb_query
from mqreplay.cli.command_line import main
from mqreplay.words import errors
from mqreplay.words.errors import InputError


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


def test_the_last_night_has_the_verdict_of_the_page(replay):
    (last_night,) = replay.nights().value
    assert last_night["level"] == "critical"
    assert str(replay.nights()).startswith("DefaultCluster: 2 critical: the master of broker-a did not answer for 88 s")
    assert "This recording cannot show: tries of sends" in str(replay.nights())


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


def test_the_answers_of_the_commands(replay, night, capsys):
    days = ["2026-11-21", "2026-11-21"]
    asked = {
        "compare": (replay.compare(*days), days),
        "ready": (replay.ready("broker-a", id=1), ["broker-a", "--id", "1"]),
        "advise": (replay.advise("order-group"), ["order-group"]),
    }
    for command, (answer, words) in asked.items():
        main([command, *words, "--cluster", "DefaultCluster", "--warehouse", night.root])
        printed = " ".join(capsys.readouterr().out.partition("Page: ")[0].split())
        assert " ".join(str(answer).split()) == printed.replace(
            f" --cluster DefaultCluster --warehouse {night.root}", ""
        ), command
    assert asked["ready"][0].value.broker_id == 1
    assert asked["compare"][0].value.counts["recurs"] > 0
    assert asked["advise"][0].value.group == "order-group"


def test_columns_without_values_have_types(replay):
    query = (
        "SELECT kind, from_ts, confidence, evidence_count AS n, [queue_id] AS ids, sum(queue_id) AS total, "
        "NULL AS none FROM gold.finding WHERE kind = 'no such kind' GROUP BY ALL"
    )
    assert replay.sql(query).schema == {
        **{"kind": pl.String, "from_ts": pl.Datetime("us"), "confidence": pl.Float64, "n": pl.Int64},
        **{"ids": pl.List(pl.Int64), "total": pl.Int64, "none": pl.Null},
    }
    assert replay.sql("SELECT CAST(NULL AS TIMESTAMP) AS a, 1 AS b").schema == {"a": pl.Datetime("us"), "b": pl.Int64}
    assert doctest.testmod(duckdb_query)[:2] == (0, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"consumers": "+1"}, "consumers needs group"),
        ({"consumers": 1.5, "group": "order-group"}, r"consumers 1\.5 is no whole number; write it as \+2 or -1"),
        ({"consumers": "one", "group": "order-group"}, "consumers 'one' is no whole number"),
        ({"queues": "many", "topic": "order-topic"}, "queues 'many' is no whole number; write it as 8"),
        ({}, "nothing is supposed; name a setting: set, consumers, queues, lose_master, reset_to or drain"),
    ],
)
def test_mistakes_name_arguments(replay, options, says):
    with pytest.raises(InputError, match=says):
        replay.whatif(**options)


def test_consumers_are_a_number_or_its_text(replay):
    one, same = (replay.whatif(consumers=number, group="order-group") for number in (1, "+1"))
    assert str(one) == str(same)


def test_names_that_do_not_exist_are_answered_with_the_nearest_ones(replay):
    with pytest.raises(InputError, match=r"did you mean order-group\?"):
        replay.at("02:50", group="ordr-group")
    with pytest.raises(InputError, match=r"did you mean broker-a\?"):
        replay.ready("brokr-a")
    with pytest.raises(InputError, match="severity 'bad' is none of info, warning, critical"):
        replay.findings(severity="bad")
    assert doctest.testmod(errors)[0] == 0


def test_a_time_without_a_day(replay):
    whole, short = (replay.findings(since=text).frame.height for text in ("2026-11-21T02:55", "02:55"))
    assert 0 < whole == short < len(replay.findings())
    instant = dt.datetime(2026, 11, 21, 2, 55, tzinfo=dt.UTC)
    assert replay.findings(since=instant).frame.height == short
    assert str(replay.at(instant)) == str(replay.at("02:55"))
    assert str(replay.compare(instant.date(), instant.date())) == str(replay.compare("2026-11-21", "2026-11-21"))
    with pytest.raises(InputError, match="time '250' is no instant"):
        replay.at(250)
    with pytest.raises(InputError, match=r"^limit is -1; give 0 or more rows$"):
        replay.explain("7", limit=-1)


def test_mistakes_are_errors(night, tmp_path):
    with pytest.raises(InputError, match="has no cluster other"):
        mqreplay.open(night.root, "other")
    with pytest.raises(InputError):
        mqreplay.open(str(tmp_path / "nothing"))


def test_an_unknown_kind_is_an_error(replay):
    with pytest.raises(InputError, match="did you mean broker_down"):
        replay.findings(kind="brokerdown")
