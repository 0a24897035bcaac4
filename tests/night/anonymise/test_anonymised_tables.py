"""Tables with replaced names: hostile names, every column of the contracts, and text that no column names."""

from __future__ import annotations

import datetime as dt
import html
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from evidence_keys import evidence_of
from made_warehouse import made_warehouse
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.anonymise.columns import NOT_SHOWN, role_of, texts_of
from mqreplay.night.anonymise.warehouse import AnonymisedWarehouse
from mqreplay.night.page import anonymised_data
from mqreplay.report.build import build_report
from reliability.hostile_names import hostile_names

AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)
LATER = AT + dt.timedelta(minutes=10)
CODE = re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL)
PARTS = [
    "pay",
    "pay-topic",
    "pay-topic-2",
    "%RETRY%pay",
    "a.*b(c)[d]\\",
    "none",
    "broadcast",
    'o\'neil "x"',
    "订单",
    "x" * 255,
]
LEFT_OUT = {"ext", "runtime", "attempt_id", "invoke_id", "scope", "closed_reason", "in_message_of", "by_user"} | {
    *("channel", "supposed", "what", "properties")
}


def night_of(names: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a night with a group, a topic, a broker and a client of each name."""
    file = {"kind": "pull_log", "status": "read", "first_ts": AT, "last_ts": LATER, "rows_in": 1, "rows_out": 1}
    tables: dict[str, list[dict[str, Any]]] = {
        "bronze.source_file": [file | {"rows_quarantined": 0, "rows_duplicate": 0} | {"cluster": "acme-prod"}],
        "bronze.quarantine": [],
    }
    for number, name in enumerate(names):
        group, topic = f"{name}!", f"{name}?"
        ids = {"cluster": "acme-prod", "day": AT.date()}
        place = {"consumer_group": group, "topic": topic, "broker_name": f"{name}+", "client_id": f"{name}~"}
        kept = {"from_ts": AT, "to_ts": LATER, "record_id": str(number), "queue_id": 0}
        summary = (
            f"Group {group} did not read {topic} of {place['broker_name']}/0; {place['client_id']} and {name} left."
        )
        finding = {"finding_id": f"{number:016}", "severity": "warning", "kind": "stuck_queue", "follows_from": None}
        evidence = [evidence_of("silver.pull", record_id=str(number))]
        rows = {
            "gold.finding": finding
            | {"summary": summary, "advice": f"Look for 'unregister' of {group}.", "evidence": evidence},
            "gold.member": {"shares_queues": True},
            "gold.queue_owner": {},
            "gold.judgement": {"decision": "gold.pull_route", "judgement": "undetermined", "reason": f"{topic} fell"},
            "gold.replay_gap": {"gap_id": str(number), "decision": "gold.pull_route", "reason": f"{group} is unknown"},
            "gold.validation_result": {"passed": False, "expectation": str(number)}
            | {"unexpected_sample": json.dumps([{"topic": topic, "other": f"{group} {topic}"}])},
            "silver.pull": {"request_ts": AT, "response_ts": LATER, "remark": f"no group {group}, [{topic}]"},
            "silver.topic_config": {"topic": name},
        }
        for table, row in rows.items():
            known = {key: value for key, value in {**place, **kept}.items() if key in columns_of(table)}
            tables.setdefault(table, []).append(ids | known | row if "day" in columns_of(table) else known | row)
        tables["bronze.quarantine"].append(
            {"cluster": "acme-prod", "path": f"{name}/pull_log.jsonl", "line_number": number, "content": b""}
            | {"reason": f"topic should be a string, and is {topic!r}", "detail_key": f"{topic}@{group}"}
        )
    return {
        table: [row if "cluster" in row else row | {"cluster": "acme-prod"} for row in rows]
        for table, rows in tables.items()
    }


def columns_of(table: str) -> set[str]:
    return set(load_contracts()[table].arrow_schema.names)


def as_read(page: str) -> str:
    return html.unescape(CODE.sub("", page)).replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")


@pytest.mark.parametrize(
    "names",
    [PARTS, [name for name in hostile_names() if name.isprintable() and len(name) > 2][::6]],
    ids=["parts of each other", "hostile"],
)
def test_no_hostile_name_is_on_the_page(names: list[str], tmp_path: Path) -> None:
    warehouse = made_warehouse(tmp_path, night_of(names))
    tables = AnonymisedWarehouse(warehouse)
    page = build_report(anonymised_data(tables, "acme-prod"))
    text = as_read(page)
    assert "acme" not in text
    assert text.count('class="finding') >= len(names)
    for name in names:
        forms = (name, f"{name}!", f"{name}?", f"{name}+", f"{name}~", json.dumps(name)[1:-1], repr(name)[1:-1])
        for form in forms:
            if form != "none":  # a word of the page, too
                assert re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) is None, form
    found = tables.read("gold.finding", RowFilter("cluster-01")).collect()
    assert found["consumer_group"].n_unique() == len(names)
    for row in found.iter_rows(named=True):
        for column in ("consumer_group", "topic", "broker_name", "client_id"):
            assert row[column] in row["summary"]


def test_a_page_of_one_name_keeps_its_sentences(tmp_path: Path) -> None:
    tables = AnonymisedWarehouse(made_warehouse(tmp_path, night_of(["pay"])))
    (finding,) = anonymised_data(tables, "acme-prod").findings
    assert finding["summary"] == ("Group group-01 did not read topic-02 of broker-01/0; client-01 and topic-01 left.")
    assert finding["advice"] == "Look for 'unregister' of group-01."
    data = anonymised_data(tables, "acme-prod")
    assert data.quarantine.rows[0]["path"] == "topic-01/pull_log.jsonl"
    assert data.quarantine.rows[0]["detail_key"] == "topic-02@group-01"
    assert data.gaps.rows[0]["reason"] == "group-01 is unknown"
    assert json.loads(data.expectations[0]["unexpected_sample"]) == [
        {"topic": "topic-02", "other": "group-01 topic-02"}
    ]
    assert [row.what for row in data.evidence[finding["finding_id"]].rows]


def test_text_that_no_column_names_does_not_pass(tmp_path: Path) -> None:
    quarantined = {"path": "acme/Acme-2.csv", "reason": "topic should be a string, and is 'Acme X'", "content": b""}
    pull = {"record_id": "r", "request_ts": AT, "remark": "see ACME at 10.1.2.3", "error": "acme.com said no"}
    produced = {"record_id": "s", "ts": AT, "key": "acme-1", "msg_id": "acme-id"}
    rows_of = {"bronze.quarantine": [quarantined], "silver.pull": [pull], "silver.produce": [produced]}
    tables = AnonymisedWarehouse(made_warehouse(tmp_path, rows_of))
    for table in rows_of:
        rows = tables.read(table).drop("content", strict=False).collect()
        assert "acme" not in str(rows.to_dicts()).lower()
        assert "10.1.2.3" not in str(rows.to_dicts())
    assert tables.read("bronze.quarantine").collect()["path"].to_list() == ["***/***-2.***"]


def test_every_text_column_of_the_contracts_is_classified() -> None:
    unknown = {
        (table, name)
        for table, contract in load_contracts().items()
        for name, of in names_in(contract.arrow_schema)
        if role_of(table, name) == NOT_SHOWN and name not in LEFT_OUT
    }
    assert unknown == set()


def names_in(fields: Any) -> list[tuple[str, pa.DataType]]:
    """Return the columns and fields that have texts, with the type of each."""
    found: list[tuple[str, pa.DataType]] = []
    for field in fields:
        of = field.type
        while pa.types.is_list(of):
            of = of.value_type
        if pa.types.is_struct(of):
            found += names_in(of)
        elif pa.types.is_string(of) or pa.types.is_map(of):
            found.append((field.name, of))
    return found


def test_tables_keep_their_types_and_rows(night: Any) -> None:
    warehouse = Warehouse(night.root)
    tables = AnonymisedWarehouse(warehouse)
    for table, contract in warehouse.contracts.items():
        if warehouse.exists(table):
            before, after = warehouse.read(table).collect(), tables.read(table).collect()
            assert (before.schema, before.height) == (after.schema, after.height), table
            plain = [name for name, of in before.schema.items() if not of.is_nested() and of != pl.String()]
            assert before.select(plain).equals(after.select(plain)), table
            assert all(each.role for each in texts_of(table, contract.arrow_schema))
