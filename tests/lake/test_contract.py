"""Contracts: the shipped ones are valid and consistent; a wrong one is refused with file and field."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
import yaml

from each_case import for_each
from mqreplay.lake.contract import Contract, load_contracts
from mqreplay.machine.places import schemas_dir
from mqreplay.replay.plan import LARGE, PASSES
from mqreplay.words.errors import ContractError

DATA = Path(__file__).parent / "data"
SHIPPED = load_contracts()
FILES = sorted(schemas_dir().glob("*/*.yaml"))
# Read shard by shard, written by the tasks of passes, or followed by streams, which a rewritten day would repeat.
LARGE_TABLES = {f"silver.{name}" for name in LARGE} | {table for each in PASSES for table in each.gold}
LARGE_TABLES |= {name for name, contract in SHIPPED.items() if contract.change_data_feed}
STANDARD = json.loads(
    resources.files("open_data_contract_standard").joinpath("schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.validators.validator_for(STANDARD)(STANDARD)
LOGICAL = {
    "STRING": "string",
    "INT": "integer",
    "BIGINT": "integer",
    "DOUBLE": "number",
    "BOOLEAN": "boolean",
    "TIMESTAMP": "timestamp",
    "DATE": "date",
    "BINARY": "string",
    "ARRAY": "array",
    "MAP": "object",
    "STRUCT": "object",
}


@pytest.mark.long
@for_each(FILES)
def test_shipped_file_is_of_the_standard(path: Path) -> None:
    # The models drop what they do not know; the standard's own schema does not, so a misspelt key is found here.
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    VALIDATOR.validate(given)


@for_each(FILES)
def test_logical_type_is_that_of_the_physical(path: Path) -> None:
    table = yaml.safe_load(path.read_text(encoding="utf-8"))["schema"][0]
    wrong = [
        p["name"]
        for p in table["properties"]
        if LOGICAL.get(p["physicalType"].split("<")[0].split("(")[0].upper()) != p["logicalType"]
    ]
    assert wrong == []


@for_each(SHIPPED.values())
def test_shipped_contract_keeps_to_itself(contract: Contract) -> None:
    columns = {c.name: c for c in contract.columns}
    assert len(columns) == len(contract.columns)
    assert contract.columns[0].name == "cluster"
    assert contract.description
    assert [name for name, column in columns.items() if not column.description] == []
    assert contract.partitioned_by == (("cluster", "day") if contract.name in LARGE_TABLES else ("cluster",))
    assert not any(columns[name].nullable for name in contract.partitioned_by)
    named = {rule["kwargs"]["column"] for rule in contract.quality if "column" in rule.get("kwargs", {})}
    assert named <= set(columns)
    assert all(rule.get("type") and rule["description"] for rule in contract.quality)


def test_what_a_contract_says() -> None:
    contract = load_contracts(str(DATA))["silver.everything"]
    assert (contract.layer, contract.table, contract.key) == ("silver", "everything", ("cluster", "id"))
    assert contract.partitioned_by == ("cluster", "day")
    assert contract.is_dated
    assert contract.partitioned_as(["cluster"]).bounded == ("at", "day")
    assert contract.checks == {"id_positive": "id > 0"}
    assert contract.columns[2].unit == "bytes"
    assert [c.name for c in contract.columns if not c.nullable] == ["cluster", "id", "day"]
    assert contract.quality[0]["kwargs"] == {"column": "id", "min_value": 1}


def broken(old: str, new: str, name: str, folder: Path) -> str:
    """A folder with the test's contract, one piece of its text changed."""
    text = (DATA / "silver" / "everything.yaml").read_text(encoding="utf-8")
    assert old in text
    (folder / "silver").mkdir()
    (folder / "silver" / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("apiVersion: v3.1.0", "apiVersion: [", "Open Data Contract Standard"),
        ("kind: DataContract", "sort: DataContract", "sort"),
        ("physicalName: silver.everything", "physicalName: gold.everything", "gold.everything"),
        ("physicalType: BIGINT", "businessName: BIGINT", "bytes"),
        ("partitionKeyPosition: 2", "partitionKeyPosition: 0", "partitioned by cluster, or by cluster and day"),
        ("engine: greatExpectations", "engine: soda", "greatExpectations"),
        (", primaryKey: true, primaryKeyPosition: 2", ", primaryKey: perhaps", "primaryKey"),
    ],
)
def test_wrong_contract_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    folder = broken(old, new, "everything.yaml", tmp_path)
    with pytest.raises(ContractError) as error:
        load_contracts(folder)["silver.everything"]
    assert "everything.yaml" in str(error.value)
    assert said in str(error.value)


def test_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "nothing.yaml").write_text("")
    with pytest.raises(ContractError, match=r"nothing\.yaml"):
        load_contracts(str(tmp_path))["gold.nothing"]


def test_no_contracts_at_all(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no table contracts"):
        load_contracts(str(tmp_path))
