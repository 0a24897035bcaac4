"""Check a statement by Spark's own parser: the tables that it reads, or why it is refused.

The whole parsed plan is checked: subqueries, common table expressions, and all other parts of a node. Only known
reading nodes are accepted, so new ones of a later Spark are refused until they are listed in spark_statements.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from mqreplay.words.errors import InputError
from mqreplay.words.similar import unknown_table

STATEMENT_NAMES = tomllib.loads(Path(__file__).with_name("spark_statements.toml").read_text("utf-8"))
QUERY, ABOUT_TABLES = frozenset(STATEMENT_NAMES["query"]), frozenset(STATEMENT_NAMES["about_tables"])
FORBIDDEN, TABLE_FUNCTIONS = (
    frozenset(STATEMENT_NAMES["forbidden_functions"]),
    frozenset(STATEMENT_NAMES["table_functions"]),
)
NAMES_TABLE = ("UnresolvedRelation", "UnresolvedTable", "UnresolvedTableOrView")
# Functions whose name is known only when the query runs.
COMPUTED = ("ExpressionWithUnresolvedIdentifier", "PlanWithUnresolvedIdentifier")
READS = "mqreplay sql runs SELECT, VALUES, SHOW, DESCRIBE and EXPLAIN, and changes nothing"
PLAN = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
# Packages whose objects are checked; others, such as files and types, hold no plan.
MADE_OF_PARTS = (
    "scala.",
    "org.apache.spark.sql.catalyst.",
    "org.apache.spark.sql.execution.command.",
    "org.apache.spark.sql.delta.",
)


@dataclass
class Statement:
    """The content of a statement: tables as layer.table; whether it lists tables; whether it returns rows."""

    tables: set[str] = field(default_factory=set)
    asks_for_tables: bool = False
    is_query: bool = True


def read_statement(spark: SparkSession, text: str, tables: Iterable[str]) -> Statement:
    """Return what the statement reads. Raises InputError if it may do anything but read these ``tables``.

    Spark's syntax errors are raised unchanged.
    """
    known = {name.lower(): name for name in tables}
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    statement = Statement(is_query=_kind(plan) in QUERY)
    is_plan = _kinds(plan, [PLAN])
    for node in _nodes(plan, in_scala_2_12=_is_spark_3(spark)):
        kind = _kind(node)
        if kind not in QUERY | ABOUT_TABLES and is_plan(node):
            raise InputError(f"query refused: {kind} is not a query; {READS}")
        if kind in COMPUTED:
            raise InputError("query refused: IDENTIFIER(...) is not supported; write the name itself")
        if kind in NAMES_TABLE:
            statement.tables |= _table(node, known)
        elif kind == "UnresolvedTableValuedFunction":
            _check_function(_texts(node.name()), known_only=TABLE_FUNCTIONS)
        elif kind == "UnresolvedFunction":
            _check_function(_texts(node.nameParts()))
        elif kind == "UnresolvedGenerator":
            _check_function([node.name().funcName()])
        statement.asks_for_tables |= kind.startswith("Show")
    return statement


def check_analyzed(rows: DataFrame) -> None:
    """Raise InputError if a query with resolved names does anything but read."""
    plan, is_3 = rows._jdf.queryExecution().analyzed(), _is_spark_3(rows.sparkSession)
    does_more = _kinds(plan, STATEMENT_NAMES["does_more"] + ([] if is_3 else STATEMENT_NAMES["does_more_since_4"]))
    for node in _nodes(plan, in_scala_2_12=is_3):
        if does_more(node):
            raise InputError(f"query refused: {_kind(node)} does more than read; {READS}")


def _table(node: Any, known: dict[str, str]) -> set[str]:
    """Return the table that a relation names. A name of one part is a common table expression, or unknown to Spark."""
    parts = [part.lower() for part in _texts(node.multipartIdentifier())]
    if _kind(node) == "UnresolvedRelation" and (node.isStreaming() or not node.options().isEmpty()):
        raise InputError("query refused: options and streams are not supported for tables")
    if len(parts) == 1:
        return set()
    name = ".".join(parts[1:] if parts[0] == "spark_catalog" else parts)
    if name not in known:
        raise InputError(f"query refused: {unknown_table('.'.join(parts), known.values())}")
    return {known[name]}


def _check_function(name: list[str], known_only: frozenset[str] | None = None) -> None:
    last = name[-1].lower()
    if last in FORBIDDEN or (known_only is not None and last not in known_only):
        raise InputError(f"query refused: the function {last} reads outside the tables")


def _nodes(plan: Any, *, in_scala_2_12: bool) -> Iterator[Any]:
    """Yield every part of a plan except texts and numbers: plans, expressions, and their parts."""
    # Spark 3.5 has Scala 2.12, in which the class of all sequences has another name.
    sequence = "scala.collection.TraversableOnce" if in_scala_2_12 else "scala.collection.IterableOnce"
    is_product, is_sequence = _kinds(plan, ["scala.Product"]), _kinds(plan, [sequence])
    todo = [plan]
    while todo:
        each = todo.pop()
        if not isinstance(each, JavaObject):
            continue
        name = each.getClass().getName()
        if name.startswith("scala.") and is_sequence(each):
            parts = each.iterator()
            while parts.hasNext():
                todo.append(parts.next())
            continue
        yield each
        if name.startswith(MADE_OF_PARTS) and not name.endswith(".AttributeReference") and is_product(each):
            todo += [each.productElement(index) for index in range(each.productArity())]


def _kinds(plan: Any, names: Sequence[str]) -> Callable[[Any], bool]:
    """Return whether a Java object is of one of these classes. Results are cached by class."""
    loader = plan.getClass().getClassLoader()
    classes = [loader.loadClass(name) for name in names]
    found: dict[str, bool] = {}

    def is_one(each: Any) -> bool:
        of = each.getClass()
        name = of.getName()
        if name not in found:
            found[name] = any(known.isAssignableFrom(of) for known in classes)
        return found[name]

    return is_one


def _is_spark_3(spark: SparkSession) -> bool:
    return spark.version.startswith("3.")


def _kind(node: Any) -> str:
    """Return the name of the class, without its package."""
    return str(node.getClass().getName()).rpartition(".")[2].rstrip("$")


def _texts(names: Any) -> list[str]:
    """Return the texts of a Scala sequence."""
    return [str(names.apply(index)) for index in range(names.size())]
