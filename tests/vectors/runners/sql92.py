"""SQL92 filters, compiled and evaluated."""

from __future__ import annotations

from typing import Any

from mqreplay.core.sql92 import compile_sql92, evaluate
from mqreplay.words.errors import MQFilterError, RocketMQError

SHOWN = 200  # the vectors keep this much of a compile error


def sql92(case: dict[str, Any], version: str = "4.9.7") -> dict[str, Any]:
    if case["case"] not in ("sql.evaluate", "sql.compileError"):
        raise NotImplementedError(case["case"])
    try:
        condition = compile_sql92(case["expression"], version)
    except MQFilterError as error:
        return {"compileError": str(error)[:SHOWN]}
    try:
        value = evaluate(condition, case["properties"])
    except RocketMQError as error:
        return {"error": str(error)}
    return {"type": None if value is None else type(value).__name__.replace("bool", "Boolean"), "value": value}


FILES = {"sql92": sql92}
