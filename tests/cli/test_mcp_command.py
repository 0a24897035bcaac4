"""`mqreplay mcp`, asked by the protocol's own client over stdio."""

from __future__ import annotations

from typing import Any

from mcp_client import asked
from mqreplay.lake.contract import load_contracts

CLUSTER = {"cluster": "DefaultCluster"}


def test_an_agent_finds_and_explains(night):
    names, found, moment, rows, tables = asked(
        night.root,
        ("findings", {"severity": "critical", **CLUSTER}),
        ("at", {"time": "02:51:30", "group": "order-group", **CLUSTER}),
        ("sql", {"query": "SELECT kind, count(*) AS findings FROM gold.finding GROUP BY ALL ORDER BY ALL"}),
        ("tables", {}),
    )
    of_nights = ["at", "columns", "compare", "explain", "findings", "ready"]
    assert names == ["advise", *of_nights, "sql", "tables", "whatif"]
    assert {row["severity"] for row in found["findings"]} == {"critical"}
    assert found["count"] == len(found["findings"]) > 0
    (last_night,) = found["nights"]
    assert last_night["verdict"].startswith("2 critical: the master of broker-a did not answer for 88 s from 02:51:31;")
    assert [row["consumer_group"] for row in moment["groups"]] == ["order-group"]
    assert rows["columns"] == ["kind", "findings"]
    assert tables["gold.finding"] == load_contracts()["gold.finding"].description
    identifier = found["findings"][0]["finding_id"]
    _, explained, supposed, columns = asked(
        night.root,
        ("explain", {"finding_id": identifier, "limit": 3}),
        ("whatif", {"group": "order-group", "consumers": 1, **CLUSTER}),
        ("columns", {"table": "gold.finding"}),
    )
    assert explained["finding"]["finding_id"] == identifier
    assert len(explained["evidence"]) == 3
    assert sum(row["rebalances"] for row in supposed["decided"]) > 0
    assert columns["severity"].startswith("STRING: ")


def nulls(value: Any) -> list[Any]:
    """Return the names of a plain value that have no value."""
    if isinstance(value, list):
        return [name for each in value for name in nulls(each)]
    if not isinstance(value, dict):
        return []
    return [name for name, each in value.items() if each is None or nulls(each)]


def test_an_agent_has_the_answers_of_the_commands(night, capsys):
    days = {"before": "2026-11-21", "after": "2026-11-21"}
    _, changes, comparison, ready, advised, supposed, rows = asked(
        night.root,
        ("at", {"time": "02:51:26", "to": "02:52", **CLUSTER}),
        ("compare", {**days, **CLUSTER}),
        ("ready", {"broker": "broker-a", **CLUSTER}),
        ("advise", {"group": "order-group", **CLUSTER}),
        ("whatif", {"group": "order-group", "consumers": "+1", **CLUSTER}),
        ("sql", {"query": "SELECT kind, from_ts FROM gold.finding WHERE false"}),
    )
    steps = [change["what"] for change in changes["changes"] if change["change"] == "broker"]
    assert steps[0] == "broker-a/0: the broker stopped answering"
    assert comparison["counts"]["recurs"] == len(comparison["findings"]) > 0
    assert (ready["answer"], {each["answer"] for each in ready["checks"]} <= {"yes", "no"}) == ("no", True)
    assert advised["advice"]
    assert sum(row["rebalances"] for row in supposed["decided"]) > 0
    assert rows == {"columns": ["kind", "from_ts"], "types": ["VARCHAR", "TIMESTAMP"], "rows": [], "count": 0}
    assert [nulls(each) for each in (changes, comparison, ready, advised, supposed)] == [[]] * 5


def test_a_mistake_is_an_answer_that_says_why(night):
    mistakes = [
        ("explain", {"finding_id": "zzzz"}, "zzzz"),
        ("findings", {"severity": "bad"}, "info, warning, critical"),
        ("sql", {"query": "DROP TABLE gold.finding"}, "query"),
        ("columns", {"table": "gold.findings"}, "did you mean gold.finding"),
        ("whatif", {"consumers": 2}, "consumers needs group"),
        ("whatif", {"consumers": "one", "group": "order-group"}, "consumers 'one' is no whole number"),
        ("ready", {"broker": "brokr-a", **CLUSTER}, "did you mean broker-a?"),
        ("at", {"time": "02:51"}, "several clusters"),
    ]
    _, *answers = asked(night.root, *[(tool, arguments) for tool, arguments, _ in mistakes])
    assert [why in answer for (_, _, why), answer in zip(mistakes, answers, strict=True)] == [True] * len(mistakes), (
        answers
    )
