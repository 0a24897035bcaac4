"""Rows of gold.validation_result, with samples, from Great Expectations' results."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from mqreplay.lake.contract import Contract
from mqreplay.quality import Scope
from mqreplay.quality.suite import Rule

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

SAMPLE = 20


class ValidationRow(NamedTuple):
    """A row of gold.validation_result, its columns in the contract's order."""

    cluster: str
    day: dt.date | None
    run_id: str
    table_name: str
    expectation: str
    arguments: str
    passed: bool
    unexpected_count: int | None
    unexpected_sample: str | None
    description: str | None


def sample_columns(contract: Contract, rule: Rule) -> list[str]:
    """Return the columns of a sample: the key and the columns of the rule. A run has only one cluster."""
    return [name for name in dict.fromkeys([*contract.key, *rule.columns]) if name != "cluster"]


def sample_format(contract: Contract, rule: Rule) -> dict[str, Any]:
    """Return the result format that includes the rows that violate a rule."""
    return {
        "result_format": "SUMMARY",
        "partial_unexpected_count": SAMPLE,
        "unexpected_index_column_names": sample_columns(contract, rule),
        "return_unexpected_index_query": False,
    }


def row_of(
    cluster: str, scope: Scope, contract: Contract, rule: Rule, found: ExpectationValidationResult | None
) -> ValidationRow:
    """Return the row of one expectation. ``found`` is None if no row can violate it."""
    passed = found is None or bool(found.success)
    sample = None if found is None or passed else _sample(found, sample_columns(contract, rule))
    return ValidationRow(
        cluster=cluster,
        day=scope.day,
        run_id=scope.run_id,
        table_name=contract.name,
        expectation=rule.type,
        arguments=json.dumps(rule.arguments, sort_keys=True, ensure_ascii=False),
        passed=passed,
        unexpected_count=0 if found is None or passed else found.result.get("unexpected_count"),
        unexpected_sample=None if sample is None else json.dumps(sample, ensure_ascii=False),
        description=rule.description,
    )


def written(rule: Rule, found: ExpectationValidationResult | None, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a result as Great Expectations writes it, without values that differ between runs."""
    if found is None:
        return {
            "success": True,
            "expectation_config": {"type": rule.type, "kwargs": rule.filled(parameters)},
            "result": {},
        }
    config = found.expectation_config
    assert config is not None
    kwargs = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
    # Tracebacks name folders of the machine; gold.validation_result has the error message.
    return {
        "success": found.success,
        "expectation_config": {"type": config.type, "kwargs": kwargs},
        "result": found.to_json_dict()["result"] if found.result else {},
    }


def _sample(found: ExpectationValidationResult, columns: list[str]) -> list[Any]:
    """Return at most SAMPLE violating rows in fixed order, or the observed value, or the error."""
    error = _error(found)
    if error is not None:
        return [{"error": error}]
    if "details" in found.result:
        return [plain(found.result["details"])]
    if "partial_unexpected_index_list" not in found.result:
        return list(plain(found.result.get("partial_unexpected_list") or []))[:SAMPLE]
    # Great Expectations adds further columns.
    rows = found.result["partial_unexpected_index_list"][:SAMPLE]
    shown = [{name: plain(row[name]) for name in columns} for row in rows]
    return sorted(shown, key=lambda row: json.dumps(row))


def _error(found: ExpectationValidationResult) -> str | None:
    info = found.exception_info or {}
    each = [info] if "raised_exception" in info else list(info.values())
    raised = [str(e.get("exception_message")) for e in each if e.get("raised_exception")]
    return raised[0] if raised else None


def plain(value: Any) -> Any:
    """Return a value for JSON: instants in UTC with their zone."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value if isinstance(value, (str, int, float, bool)) else str(value)
