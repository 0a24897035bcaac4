"""Table contracts (ODCS v3 YAML): the one home of columns, keys, comments, checks and expectations."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml
from pyspark.sql.types import StructType

from mqreplay.errors import ContractError


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    nullable: bool
    description: str
    unit: str | None
    key_position: int | None


@dataclass(frozen=True)
class Contract:
    name: str
    description: str
    columns: tuple[Column, ...]
    clustered_by: tuple[str, ...]
    checks: dict[str, str]
    quality: tuple[dict, ...]

    @property
    def key(self):
        return tuple(c.name for c in sorted((c for c in self.columns if c.key_position), key=lambda c: c.key_position))

    def struct_type(self) -> StructType:
        return StructType.fromDDL(
            ", ".join(f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns)
        )

    def ddl(self, location: str) -> str:
        cols = ",\n".join(
            f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'} COMMENT '{(c.description + (f' ({c.unit})' if c.unit else '')).replace(chr(39), chr(92) + chr(39))}'"
            for c in self.columns
        )
        cl = f"\nCLUSTER BY ({', '.join(self.clustered_by)})" if self.clustered_by else ""
        return f"CREATE TABLE IF NOT EXISTS delta.`{location}` (\n{cols}\n) USING delta{cl}"


def _load(text: str) -> Contract:
    d = yaml.safe_load(text)
    s = d["schema"][0]
    cp = {p["property"]: p["value"] for p in s.get("customProperties", [])}
    cols = tuple(
        Column(
            p["name"],
            p["physicalType"],
            not p.get("required"),
            p.get("description", ""),
            next((q["value"] for q in p.get("customProperties", []) if q["property"] == "unit"), None),
            p.get("primaryKeyPosition"),
        )
        for p in s["properties"]
    )
    q = tuple(
        {
            "type": r["implementation"]["type"],
            "kwargs": r["implementation"]["kwargs"],
            "description": r.get("description"),
        }
        for r in s.get("quality", [])
    )
    return Contract(
        s["physicalName"], s["description"], cols, tuple(cp.get("clusteredBy", ())), cp.get("checks", {}) or {}, q
    )


@functools.cache
def load_contracts(directory: str | None = None) -> dict[str, Contract]:
    root = Path(directory) if directory else Path(__file__).parents[3] / "schemas"
    out = {}
    for f in sorted(root.glob("*/*.yaml")):
        c = _load(f.read_text())
        out[c.name] = c
    return out
