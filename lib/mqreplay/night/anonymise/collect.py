"""The names in the tables of a warehouse."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.anonymise.columns import (
    FIXED_WORDS,
    MANY,
    MAP_KEY,
    MAP_VALUE,
    NOT_SHOWN,
    PATH_OR_SOURCE,
    REFUSAL,
    SAMPLE,
    SENTENCE,
    SETTING,
    TEXT,
    Texts,
    texts_of,
)

NO_NAMES: Final = frozenset({FIXED_WORDS, NOT_SHOWN, PATH_OR_SOURCE, REFUSAL, SAMPLE, SENTENCE})
IN_WORDS: Final = (SENTENCE, REFUSAL, SAMPLE)
_WORD: Final = re.compile(r"[^\s\"'`,;()]+")
_IPV4: Final = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
_ID: Final = "^[0-9A-Fa-f]{32}$"
_ADDRESS: Final = 8  # hex digits of a message id that are an address
_REST: Final = "0" * (32 - _ADDRESS)


def names_in(warehouse: Warehouse) -> dict[str, set[Any]]:
    """Return the distinct names of each role, and of SETTING the pairs of key and value.

    Of MANY, those that a sentence names or that evidence of a finding has; of all ids of messages, their addresses. Of
    messages of RocketMQ (``text``), their addresses: other names in them are in other columns too.
    """
    found: dict[str, set[Any]] = defaultdict(set)
    evidence = _evidence(warehouse)
    words = _words(warehouse, evidence)
    for table, contract in sorted(warehouse.contracts.items()):
        if not warehouse.exists(table):
            continue
        columns = contract.arrow_schema.names
        asked: list[Texts] = []
        for role, values in texts_of(table, contract.arrow_schema):
            if role == TEXT:
                asked.append(Texts("host", values.str.extract_all(_IPV4).explode()))
            elif role in MANY:
                each = values.str.split(" ").explode() if role == "keys" else values
                asked.append(Texts(role, each.filter(each.is_in(words))))
                if "record_id" in columns and values.meta.is_column():
                    asked.append(Texts(role, values.filter(pl.col("record_id").is_in(evidence))))
                if role == "message_id":
                    plain = values.filter(values.str.contains(_ID))
                    asked.append(Texts(role, plain.str.slice(0, _ADDRESS) + _REST))
            elif role not in NO_NAMES:
                asked.append(Texts(role, values))
        for (role, _), distinct in zip(asked, _distinct(warehouse, table, asked), strict=True):
            found[role].update(map(_hashable, distinct))
    found[SETTING] = {pair for pair in found[SETTING] if pair[1] is not None}
    return found


def _distinct(
    warehouse: Warehouse, table: str, asked: Sequence[Texts], wanted: pl.Expr | None = None
) -> Sequence[list[Any]]:
    """Return the distinct values of each of the texts; of the ``wanted`` rows, or of all."""
    lists = [each.values.drop_nulls().unique().implode().alias(str(n)) for n, each in enumerate(asked)]
    rows = warehouse.read(table) if wanted is None else warehouse.read(table).filter(wanted)
    return rows.select(lists).collect(engine="streaming").row(0) if lists else ()


def _evidence(warehouse: Warehouse) -> list[str]:
    """Return the record_id of all evidence."""
    if not warehouse.exists("gold.finding"):
        return []
    ids = pl.col("evidence").explode().struct.field("record_id").drop_nulls().unique()
    return warehouse.read("gold.finding").select(ids).collect()["record_id"].to_list()


def _words(warehouse: Warehouse, evidence: Sequence[str]) -> list[str]:
    """Return the words of the sentences in the tables, without the punctuation around them.

    Of tables with a record_id, the rows alone that are evidence: each of millions can have a reason of its own.
    """
    words: set[str] = set()
    for table, contract in sorted(warehouse.contracts.items()):
        asked = [each for each in texts_of(table, contract.arrow_schema) if each.role in IN_WORDS]
        has_id = "record_id" in contract.arrow_schema.names
        wanted = pl.col("record_id").is_in(evidence) if has_id else None
        if warehouse.exists(table):
            for sentences in _distinct(warehouse, table, asked, wanted):
                for sentence in sentences:
                    words.update(found[0].strip(".:!?[]") for found in _WORD.finditer(sentence))
    return sorted(words)


def _hashable(value: Any) -> Any:
    return (value[MAP_KEY], value[MAP_VALUE]) if isinstance(value, dict) else value
