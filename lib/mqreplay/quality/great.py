"""Great Expectations as mqreplay uses it: in memory, without a network, and silent; over DuckDB or Spark.

A dialect of SQLAlchemy has what Great Expectations' SQL engine needs. Each statement is its own transaction, so that a
result can be fetched after its connection was returned, as Great Expectations does.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

import great_expectations as gx
import sqlalchemy as sa
from great_expectations.data_context import EphemeralDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.datasource.fluent.interfaces import Batch
from sqlalchemy.dialects import registry
from sqlalchemy.engine.default import DefaultDialect

from mqreplay.quality.tables import Tables

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame

DATA_SOURCE = "duckdb"


class Great:
    """A context for one run. It makes batches of the tables' views."""

    def __init__(self, tables: Tables) -> None:
        """Take the tables, whose views are made later."""
        options = engine_options(tables.connection)
        add: Any = _context().data_sources.add_sql  # its stub lacks kwargs
        self._source = add(DATA_SOURCE, connection_string=f"{DATA_SOURCE}://", kwargs=options)

    def batch(self, name: str, view: str) -> Batch:
        """Return the rows of a view as a batch."""
        asset = self._source.add_table_asset(name, table_name=view)
        batch: Batch = asset.add_batch_definition_whole_table("all").get_batch()
        return batch


class GreatOnSpark:
    """A context for one run. It makes batches of DataFrames."""

    def __init__(self) -> None:
        """Use the running session of Spark."""
        self._source = _context().data_sources.add_spark("spark", persist=False)

    def batch(self, name: str, rows: DataFrame) -> Batch:
        """Return the rows of a DataFrame as a batch."""
        asset = self._source.add_dataframe_asset(name)
        return asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": rows})


def _context() -> EphemeralDataContext:
    """Return a context without analytics and progress bars."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    context = gx.get_context(mode="ephemeral")
    assert isinstance(context, EphemeralDataContext)
    context.enable_analytics(False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


class DuckDBDialect(DefaultDialect):
    """Queries as in standard SQL, and the columns of views."""

    name = driver = DATA_SOURCE
    default_paramstyle = "qmark"
    supports_native_boolean = True
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the module of DuckDB."""
        import duckdb  # imported here: SQLAlchemy keeps this module to the end, and DuckDB warns about that

        return duckdb

    def do_begin(self, dbapi_connection: Any) -> None:
        """Begin nothing."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Commit nothing: each statement is already committed."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back nothing."""

    def get_columns(self, connection: sa.Connection, table_name: str, schema: Any = None, **_: Any) -> list[Any]:
        """Return the columns of a table or view."""
        described = connection.exec_driver_sql(f'DESCRIBE "{table_name}"').fetchall()
        return [{"name": row[0], "type": sa.types.NullType(), "nullable": True, "default": None} for row in described]

    def get_pk_constraint(self, connection: sa.Connection, table_name: str, schema: Any = None, **_: Any) -> Any:
        """Return that views have no primary key."""
        return {"constrained_columns": [], "name": None}


def engine_options(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the options of ``sqlalchemy.create_engine`` for an engine over an open connection, which stays open."""
    return {"creator": connection.cursor, "poolclass": sa.pool.StaticPool}


registry.register(DATA_SOURCE, __name__, DuckDBDialect.__name__)
