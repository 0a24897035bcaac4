"""Rows of silver and gold tables that tests make up, as the kernels get them: polars frames of one cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from mqreplay.lake.contract import arrow_schema, load_contracts
from silver_moments import BEGAN


def rows(table: str, base: Mapping[str, object], differs: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """A frame of a table's columns but for its cluster: a base row, plus what differs in each row.

    Structs are given as dicts, maps as dicts or pairs. record_id is r0, r1, ... unless it is given.
    """
    contract = load_contracts()[table]
    schema = arrow_schema((column.name, column.type) for column in contract.columns if column.name != "cluster")
    common: dict[str, object] = {"day": BEGAN.date(), "source_digest": "d"}
    listed = [common | {"record_id": f"r{i}"} | dict(base) | dict(change) for i, change in enumerate(differs)]
    columns = [pa.array([_plain(row.get(f.name), f.type) for row in listed], f.type) for f in schema]
    return pl.DataFrame(pl.from_arrow(pa.Table.from_arrays(columns, schema=schema)))


def _plain(value: object, kind: pa.DataType) -> object:
    """Values as Arrow takes them: tuples of structs by their fields' names, maps as pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items()) if isinstance(value, Mapping) else value
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]  # type: ignore[attr-defined]
    if pa.types.is_struct(kind):
        given = value if isinstance(value, Mapping) else dict(zip([f.name for f in kind], value, strict=True))  # type: ignore[call-overload]
        return {f.name: _plain(given.get(f.name), f.type) for f in kind}
    return value
