"""A SQLAlchemy dialect for DuckDB, as far as Great Expectations' SQL engine needs it.

Each statement is its own transaction, so that a result can be fetched after its connection was returned, as Great
Expectations does.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.engine.default import DefaultDialect

if TYPE_CHECKING:
    import duckdb

NAME = "duckdb"


class DuckDBDialect(DefaultDialect):
    """Queries as in standard SQL, and the columns of views."""

    name = driver = NAME
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


registry.register(NAME, __name__, DuckDBDialect.__name__)
