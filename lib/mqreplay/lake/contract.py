"""Table contracts (Open Data Contract Standard v3, YAML): columns, keys, comments, checks, expectations."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import Schema
from open_data_contract_standard.model import OpenDataContractStandard
from pydantic import ValidationError

from mqreplay.lake.buckets import columns_of, key_of
from mqreplay.machine.places import schemas_dir
from mqreplay.words.errors import ContractError

PROPERTIES = {
    # A rollback needs the version before the run, even if it is old: other writers would delete versions after 30 days.
    # mqreplay maintain deletes log entries under the lock, when there is nothing to roll back.
    "delta.enableExpiredLogCleanup": "false",
    "delta.dataSkippingNumIndexedCols": "0",  # bounds of the first 32 columns; Contract.bounded names those of use
    "delta.checkpointInterval": "50",  # commits; most tables get one in a night
}
STATS_COLUMNS, CHANGE_DATA_FEED = "delta.dataSkippingStatsColumns", "delta.enableChangeDataFeed"
INSTANT = "TIMESTAMP"
BOUNDED = ("day", "consumer_group", "topic", "broker_name")  # with instants, what readers ask for
ARROW_TYPES = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    INSTANT: pa.timestamp("us", "UTC"),
    "BINARY": pa.binary(),
}
TOKEN = re.compile(r"\s*(\w+|[<>:,])")


@dataclass(frozen=True)
class Column:
    """A column: Spark SQL type, whether it may be null, meaning, and unit of a quantity."""

    name: str
    type: str
    nullable: bool
    description: str
    unit: str | None
    key_position: int | None
    partition_position: int | None = None

    @property
    def comment(self) -> str:
        """Return the comment of the column in the table."""
        return self.description + (f" ({self.unit})" if self.unit else "")


@dataclass(frozen=True)
class Contract:
    """The contract of a table. ``quality`` are rules for Great Expectations: type, kwargs, description."""

    name: str
    description: str
    columns: tuple[Column, ...]
    checks: Mapping[str, str]
    quality: tuple[dict[str, Any], ...]
    shard_key: tuple[str, ...] = ()  # the key of the buckets of its files (lake/buckets.py)
    change_data_feed: bool = False  # streams can follow its rows

    @property
    def layer(self) -> str:
        """Return bronze, silver or gold."""
        return self.name.split(".")[0]

    @property
    def table(self) -> str:
        """Return the name within the layer."""
        return self.name.split(".")[1]

    @property
    def key(self) -> tuple[str, ...]:
        """Return the columns that identify a row, in order."""
        keyed = [(c.key_position, c.name) for c in self.columns if c.key_position is not None]
        return tuple(name for _, name in sorted(keyed))

    @property
    def single_column_key(self) -> str | None:
        """Return the column that alone identifies a row of a cluster, if there is one."""
        return self.key[1] if len(self.key) == 2 and self.key[0] == "cluster" else None

    @property
    def partitioned_by(self) -> tuple[str, ...]:
        """Return the partition columns of a new table in order: cluster, and day in a table with many rows a day."""
        placed = [(c.partition_position, c.name) for c in self.columns if c.partition_position is not None]
        return tuple(name for _, name in sorted(placed))

    @property
    def has_day_column(self) -> bool:
        """Return whether rows have a day, which may be null."""
        return any(column.name == "day" for column in self.columns)

    @property
    def is_dated(self) -> bool:
        """Return whether each row has a day."""
        return any(column.name == "day" and not column.nullable for column in self.columns)

    @property
    def is_judged(self) -> bool:
        """Return whether nightly makes the rows from silver, day by day, and can make them again."""
        return self.layer == "gold" and self.has_day_column

    @property
    def bounded(self) -> tuple[str, ...]:
        """Return the columns whose bounds Delta's log has of each file: readers skip files by them."""
        named = (column for column in self.columns if column.partition_position is None)
        return tuple(column.name for column in named if column.type == INSTANT or column.name in BOUNDED)

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties of the Delta table."""
        stats = {STATS_COLUMNS: ",".join(self.bounded)} if self.bounded else {}
        return PROPERTIES | stats | ({CHANGE_DATA_FEED: "true"} if self.change_data_feed else {})

    def partitioned_as(self, names: Sequence[str]) -> Contract:
        """Return the contract with other partition columns: those of a table that an older version made."""
        if tuple(names) == self.partitioned_by:
            return self
        positions = {name: position for position, name in enumerate(names, 1)}
        return replace(self, columns=tuple(replace(c, partition_position=positions.get(c.name)) for c in self.columns))

    @functools.cached_property
    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema; every column may be null."""
        return arrow_schema((column.name, column.type) for column in self.columns)

    def ddl(self, names: Collection[str] | None = None) -> str:
        """Return the names and Spark SQL types of all columns, or of some."""
        return ", ".join(f"`{c.name}` {c.type}" for c in self.columns if names is None or c.name in names)

    @property
    def fields(self) -> list[dict[str, Any]]:
        """Return the columns as in the schema of Delta's log."""
        fields: list[dict[str, Any]] = json.loads(Schema.from_arrow(self.arrow_schema).to_json())["fields"]
        pairs = zip(fields, self.columns, strict=True)
        return [field | {"nullable": c.nullable, "metadata": {"comment": c.comment}} for field, c in pairs]


class Contracts(Mapping[str, Contract]):
    """The contracts of a folder by table name. Each is read when it is first asked for: a command needs a few."""

    def __init__(self, root: Path) -> None:
        """Take the folder of schemas/. Raises ContractError if it holds no contract."""
        self._paths = {f"{path.parent.name}.{path.stem}": path for path in sorted(root.glob("*/*.yaml"))}
        self._read: dict[str, Contract] = {}
        if not self._paths:
            raise ContractError(f"no table contracts in {root}; the installation is broken")

    def __getitem__(self, name: str) -> Contract:
        """Return the contract of a table. Raises ContractError if the file is not one."""
        if name not in self._read:
            self._read[name] = _load(self._paths[name])
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        """Return whether the table has a contract, without reading it."""
        return name in self._paths

    def __iter__(self) -> Iterator[str]:
        """Return the names of the tables in order."""
        return iter(self._paths)

    def __len__(self) -> int:
        """Return how many tables there are."""
        return len(self._paths)


@functools.cache
def load_contracts(directory: str | None = None) -> Mapping[str, Contract]:
    """Return every contract of ``directory`` (default: the shipped ones) by table name. Raises ContractError."""
    return Contracts(Path(directory) if directory is not None else schemas_dir())


def _load(path: Path) -> Contract:
    try:
        # The standard's own reader is twenty times slower on the same text.
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        model = OpenDataContractStandard.model_validate(document)
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise ContractError(f"contract {path} does not follow the Open Data Contract Standard: {error}") from None
    if not model.schema_ or len(model.schema_) != 1:
        raise ContractError(f"contract {path}: schema must hold exactly one table")
    table = model.schema_[0]
    custom = {p.property: p.value for p in table.customProperties or []}
    columns = tuple(_column(p, path) for p in table.properties or [])
    contract = Contract(
        table.physicalName or "",
        table.description or "",
        columns,
        dict(custom.get("checks") or {}),
        tuple(_rule(q, path) for q in table.quality or []),
        tuple(custom.get("shardKey") or ()),
        bool(custom.get("changeDataFeed")),
    )
    _check(contract, path)
    return contract


def _column(field: Any, path: Path) -> Column:
    if not field.physicalType:
        raise ContractError(f"contract {path}: column {field.name} lacks its physicalType")
    unit = next((p.value for p in field.customProperties or [] if p.property == "unit"), None)
    position = field.primaryKeyPosition if field.primaryKey else None
    partition = field.partitionKeyPosition if field.partitioned else None
    nullable, description = not field.required, field.description or ""
    return Column(field.name, field.physicalType, nullable, description, unit, position, partition)


def _rule(rule: Any, path: Path) -> dict[str, Any]:
    if rule.type != "custom" or rule.engine != "greatExpectations" or not isinstance(rule.implementation, dict):
        raise ContractError(f"contract {path}: quality rules are of type custom, engine greatExpectations")
    return {**rule.implementation, "description": rule.description}


def _check(contract: Contract, path: Path) -> None:
    names = [c.name for c in contract.columns]
    if contract.name != f"{path.parent.name}.{path.stem}":
        raise ContractError(f"contract {path}: physicalName is {contract.name!r}, which does not match its path")
    for column in columns_of(key_of(contract.shard_key)):
        if column not in names:
            raise ContractError(f"contract {path}: shardKey names {column}, which is not a column")
    if contract.partitioned_by not in (("cluster",), ("cluster", "day")):
        raise ContractError(f"contract {path}: a table is partitioned by cluster, or by cluster and day")
    if not contract.key:
        raise ContractError(f"contract {path}: no column has a primaryKeyPosition")


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a Spark SQL type. Raises ContractError for an unsupported type.

    >>> arrow_type("ARRAY<STRUCT<broker_name: STRING, queue_id: INT>>")
    ListType(list<element: struct<broker_name: string, queue_id: int32>>)
    """
    try:
        return _type(TOKEN.findall(text)[::-1])
    except (IndexError, ValueError):
        raise ContractError(f"column type {text!r} is none that mqreplay's tables use") from None


def arrow_schema(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Return the schema of (name, Spark SQL type) pairs; every column may be null."""
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns])


def _type(tokens: list[str]) -> pa.DataType:
    """Take a type from reversed tokens. Raises IndexError and ValueError if they are none."""
    word = tokens.pop().upper()
    if word in ARROW_TYPES:
        return ARROW_TYPES[word]
    parts: list[tuple[str, pa.DataType]] = []
    before = "<"
    while (mark := tokens.pop()) == before:
        name = tokens.pop() if word == "STRUCT" else ""
        if name and tokens.pop() != ":":
            raise ValueError(name)
        parts.append((name, _type(tokens)))
        before = ","
    match word, parts if mark == ">" else []:
        case "ARRAY", [(_, item)]:
            return pa.list_(pa.field("element", item))  # as Spark calls the items of a list
        case "MAP", [(_, key), (_, value)]:
            return pa.map_(key, value)
        case "STRUCT", [_, *_]:
            return pa.struct(parts)
    raise ValueError(word)
