"""A law as SQL sees it: its arguments, its answer, its documentation, and its faces in Spark and DuckDB.

Each face returns STRUCT<value: T, error: STRUCT<code: STRING, detail: STRING>>: one of both is null, or both
where the law's answer is None. `udf` pickles each row; `pandas_udf`, `arrow_udf` and DuckDB's face take a batch at
a time and call the law once for each distinct input in it, because inputs repeat: every member of a group
sees the same queues, and a queue is pulled thousands of times a minute.

PySpark is loaded by the faces of Spark alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mqreplay.bind.sql_types import Argument, arguments_of
from mqreplay.bind.values import Answering, answering, to_sql

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

ERROR_TYPE = "STRUCT<code: STRING, detail: STRING>"


@dataclass(frozen=True)
class BoundFunction:
    """A law of core and how SQL sees it.

    arguments is Spark's DDL, `name TYPE [NOT NULL]`, by the law's own argument names: NULL for one that is NOT NULL
    is an error value. Arguments at the end that the law has defaults for may be left out. A queue may come
    as <broker_name, queue_id>, without its topic, and is then returned with topic null.

    ``java`` is the Java method that the law follows, ``example`` the arguments of a call, as Python has them.
    """

    name: str
    law: Callable[..., Any]
    arguments: str
    value_type: str
    description: str = ""
    java: str = ""
    example: tuple[Any, ...] = ()

    def udf(self, *columns: Column | str) -> Column:
        """Return a column: the law, a row at a time, pickled."""
        return self.row_function(*self._checked(columns))

    def pandas_udf(self, *columns: Column | str) -> Column:
        """Return a column: the law over pandas Series; integers stay integers beside nulls."""
        from mqreplay.bind.pandas_face import pandas_columns

        return self.pandas_function(*pandas_columns(self._checked(columns), self.argument_types))

    def arrow_udf(self, *columns: Column | str) -> Column:
        """Return a column: the law over Arrow arrays."""
        return self.arrow_function(*self._checked(columns))

    @cached_property
    def row_function(self) -> Callable[..., Column]:
        """Return the pickled UDF itself."""
        from pyspark.sql import functions as F

        from mqreplay.bind.faces import row_face
        from mqreplay.bind.values import to_law

        face = row_face(self.answering, [to_law(argument.type) for argument in self.argument_list])
        return F.udf(face, self.answer_type, useArrow=False)

    @cached_property
    def pandas_function(self) -> Callable[..., Column]:
        """Return the pandas UDF itself; its columns are those of `pandas_columns`."""
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import to_arrow_type

        from mqreplay.bind.pandas_face import pandas_face

        types = [to_arrow_type(field.dataType) for field in self.argument_types]
        function: Callable[..., Column] = F.pandas_udf(pandas_face(self.answering, types), self.answer_type)  # type: ignore[attr-defined]
        return function

    @cached_property
    def arrow_function(self) -> Callable[..., Column]:
        """Return the Arrow UDF itself; before PySpark 4.1, which brought them, the pickled UDF."""
        from pyspark.sql import functions as F

        if not hasattr(F, "arrow_udf"):
            return self.row_function
        from pyspark.sql.pandas.types import to_arrow_type

        from mqreplay.bind.faces import arguments_check, arrow_face

        checked = arguments_check(self.name, self.argument_list, self.fewest_arguments)
        face = arrow_face(self.answering, to_arrow_type(self.answer_type), checked)
        function: Callable[..., Column] = F.arrow_udf(face, self.answer_type)
        return function

    @cached_property
    def argument_list(self) -> tuple[Argument, ...]:
        """Return the arguments in order."""
        return arguments_of(self.arguments)

    @cached_property
    def argument_types(self) -> StructType:
        """Return the arguments as Spark's types; needs a session."""
        return _struct_type(self.arguments)

    @cached_property
    def answer_type(self) -> StructType:
        """Return the type of every face's answer, as Spark's type; needs a session."""
        return _struct_type(f"value {self.value_type}, error {ERROR_TYPE}")

    @property
    def fewest_arguments(self) -> int:
        """Return the number of arguments without a default."""
        return sum(p.default is p.empty for p in inspect.signature(self.law).parameters.values())

    @property
    def answering(self) -> Answering:
        """Return the call of the law, whose errors are values."""
        names = [argument.name for argument in self.argument_list]
        required = [argument.name for argument in self.argument_list if not argument.nullable]
        return answering(self.law, names, required, to_sql(self.value_type))

    def _checked(self, columns: Sequence[Column | str]) -> list[Column]:
        from pyspark.sql import functions as F

        if not self.fewest_arguments <= len(columns) <= len(self.argument_list):
            raise TypeError(f"{self.name}({self.arguments}) got {len(columns)} columns")
        return [F.col(column) if isinstance(column, str) else column for column in columns]


def _struct_type(ddl: str) -> StructType:
    from pyspark.sql.types import StructType, _parse_datatype_string  # PySpark 3.5 has no DataType.fromDDL

    parsed = _parse_datatype_string(ddl)
    assert isinstance(parsed, StructType)
    return parsed
