"""The public API is that of tests/data/public_api.txt, and changes by the policy of docs/development/compatibility.md.

`python tests/test_public_api.py > tests/data/public_api.txt` writes the file again.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from each_case import for_each
from mqreplay.core import MOVED

ROOT = Path(__file__).parents[1]
LIB = ROOT / "lib" / "mqreplay"
PUBLISHED = ROOT / "tests" / "data" / "public_api.txt"
POLICY = "docs/development/compatibility.md"
WRITE = "run `python tests/test_public_api.py > tests/data/public_api.txt`"
# The modules of bind that scripts import; the others serve these.
BIND = ("function", "functions", "pop_functions", "register", "register_duckdb")
# The columns that queries outside of mqreplay rely on.
COLUMNS = {
    "allocation": "consumer_group topic client_id rebalance_ts strategy cid_all mq_all expected actual judgement "
    "reason",
    "pull_route": "consumer_group topic broker_name queue_id client_id request_ts expected_broker_id actual_broker_id "
    "judgement reason",
    "slave_suggestion": "consumer_group topic broker_name queue_id client_id request_ts broker_id diff_min diff_max "
    "memory expected_suggest recorded_suggest judgement reason",
    "offset_continuity": "broker_name broker_id topic consumer_group queue_id kind previous_offset new_offset from_ts "
    "to_ts cause redelivered_max",
    "queue_start": "consumer_group topic broker_name queue_id client_id request_ts stored_offset consume_from_where "
    "expected_offset actual_offset skipped judgement reason",
    "failover_step": "broker_name broker_id outage_ts step ts happened expected_from expected_to namesrv_addr "
    "client_id judgement reason",
    "retried_message": "consumer_group topic broker_name client_id msg_id sent_ts reconsume_times expected_topic "
    "expected_delay_level due_ts stored_ts delivered_ts late_s judgement reason",
    "send_attempt": "topic producer_group client_id msg_id attempt request_ts broker_name queue_id "
    "previous_broker_name expected_broker_name expected_queue_id response_code send_status judgement reason",
    "replication": "broker_name broker_id ts log_end master_end behind_bytes behind_messages behind_ms slaves "
    "send_status unflushed_bytes unflushed_messages unflushed_ms allowed_bytes judgement reason",
    "pull_batch": "consumer_group topic broker_name queue_id client_id request_ts msg_count body_bytes from_disk "
    "most_messages most_bytes judgement reason",
    "queue_owner": "consumer_group topic broker_name queue_id client_id from_ts to_ts source",
    "finding": "kind severity consumer_group topic broker_name broker_id queue_id client_id from_ts to_ts confidence "
    "summary advice evidence",
}


def public_api() -> Iterator[str]:
    """Yield a line for each public name of core and bind, with its signature."""
    modules = [*(LIB / "core").rglob("*.py"), *(LIB / "bind" / f"{name}.py" for name in BIND)]
    for path in sorted(modules):
        module = ".".join(path.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for line in public_names(node):
                yield f"{module}.{line}"


def public_names(node: ast.stmt) -> Iterator[str]:
    """Yield what a statement of a module defines publicly: a function, a class with its members, a constant."""
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
        yield f"{node.name}{signature(node)}"
    elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
        yield f"{node.name}({', '.join(map(ast.unparse, node.bases))})"
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                yield f"{node.name}.__init__{signature(member)}"
            yield from (f"{node.name}.{line}" for line in public_names(member))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
        default = "" if node.value is None else " = ..."
        yield f"{node.target.id}: {ast.unparse(node.annotation)}{default}"
    elif isinstance(node, ast.Assign):
        names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        yield from (name for name in names if not name.startswith("_"))


def signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(node.args)}){returns}"


def test_names_and_signatures_of_core_and_bind() -> None:
    published, found = PUBLISHED.read_text(encoding="utf-8").splitlines(), list(public_api())
    gone = sorted(set(published) - set(found))
    new = sorted(set(found) - set(published))
    assert not gone, f"{POLICY} says how a public name is deprecated before it goes or changes: {gone}"
    assert not new, f"new public names are kept by the policy of {POLICY}; if they are meant, {WRITE}: {new}"


def test_names_are_published_once_and_in_order() -> None:
    published = PUBLISHED.read_text(encoding="utf-8").splitlines()
    assert published == list(public_api()), WRITE
    assert len(published) > 500


@for_each(MOVED)
def test_a_moved_module_answers_by_its_old_name_and_warns(name: str) -> None:
    old = importlib.import_module(f"mqreplay.core.{name}")
    new = importlib.import_module(f"mqreplay.core.{MOVED[name]}")
    function = next(node.name for node in ast.parse(inspect.getsource(new)).body if isinstance(node, ast.FunctionDef))
    with pytest.warns(DeprecationWarning, match=f"core.{name} is deprecated, use mqreplay.core.{MOVED[name]}; 0.5.0"):
        assert getattr(old, function) is getattr(new, function)


def test_an_unknown_module_or_name_is_not_answered() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mqreplay.core.no_such_module")
    with pytest.raises(AttributeError):
        _ = importlib.import_module("mqreplay.core.burrow").no_such_name


@pytest.mark.parametrize("table", COLUMNS)
def test_columns_that_queries_rely_on(table: str) -> None:
    contract = yaml.safe_load((ROOT / "schemas" / "gold" / f"{table}.yaml").read_text(encoding="utf-8"))
    columns = {column["name"] for column in contract["schema"][0]["properties"]}
    assert not set(COLUMNS[table].split()) - columns, f"{POLICY} says how a column is deprecated before it goes"


if __name__ == "__main__":
    print("\n".join(public_api()))
