"""A law with its three Spark faces, which differ in how rows travel to Python, never in what they answer.

Each face gives STRUCT<value: T, error: STRUCT<code: STRING, detail: STRING>>: one of both is null, or both
where the law's answer is None. `udf` pickles each row; `pandas_udf` and `arrow_udf` take a batch at a time
and ask the law once for each distinct input in it, since RocketMQ repeats itself: every member of a group
sees the same queues, a queue is pulled thousands of times a minute.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType

from mqreplay.bind.answer import Answering, answering
from mqreplay.bind.faces import arrow_face, pandas_face, row_face
from mqreplay.bind.pandas_columns import pandas_columns
from mqreplay.bind.values import to_law, to_spark


@dataclass(frozen=True)
class BoundFunction:
    """A law of core and how Spark sees it.

    arguments is DDL, `name TYPE [NOT NULL]`, by the law's own argument names: NULL for one that is NOT NULL
    is an error value. Arguments at the end that the law has defaults for may be left out. A queue may come
    as <broker_name, queue_id>, without its topic, and is then given back with topic null.
    """

    name: str
    law: Callable[..., Any]
    arguments: str
    value_type: str

    def udf(self, *columns: Column | str) -> Column:
        """The law, a row at a time, pickled."""
        return self.row_function(*self._checked(columns))

    def pandas_udf(self, *columns: Column | str) -> Column:
        """The law over pandas Series; integers stay integers beside nulls."""
        return self.pandas_function(*pandas_columns(self._checked(columns), self.argument_types))

    def arrow_udf(self, *columns: Column | str) -> Column:
        """The law over Arrow arrays."""
        return self.arrow_function(*self._checked(columns))

    @cached_property
    def row_function(self) -> Callable[..., Column]:
        """The pickled UDF itself."""
        types = [field.dataType for field in self.argument_types]
        face = row_face(self._answering, [to_law(data_type) for data_type in types])
        return F.udf(face, self.answer_type, useArrow=False)

    @cached_property
    def pandas_function(self) -> Callable[..., Column]:
        """The pandas UDF itself; its columns are those of `pandas_columns`."""
        types = [to_arrow_type(field.dataType) for field in self.argument_types]
        made: Callable[..., Column] = F.pandas_udf(pandas_face(self._answering, types), self.answer_type)  # type: ignore[attr-defined]
        return made

    @cached_property
    def arrow_function(self) -> Callable[..., Column]:
        """The Arrow UDF itself."""
        face = arrow_face(self._answering, to_arrow_type(self.answer_type))
        made: Callable[..., Column] = F.arrow_udf(face, self.answer_type)  # type: ignore[attr-defined]
        return made

    @cached_property
    def argument_types(self) -> StructType:
        """The arguments as Spark's types; needs a session."""
        types = DataType.fromDDL(self.arguments)
        assert isinstance(types, StructType)
        return types

    @cached_property
    def answer_type(self) -> StructType:
        """What every face gives."""
        answer = DataType.fromDDL(f"value {self.value_type}, error STRUCT<code: STRING, detail: STRING>")
        assert isinstance(answer, StructType)
        return answer

    @property
    def fewest_arguments(self) -> int:
        """How many arguments have no default."""
        return sum(p.default is p.empty for p in inspect.signature(self.law).parameters.values())

    @property
    def _answering(self) -> Answering:
        required = [field.name for field in self.argument_types if not field.nullable]
        out = to_spark(self.answer_type["value"].dataType)
        return answering(self.law, self.argument_types.names, required, out)

    def _checked(self, columns: Sequence[Column | str]) -> list[Column]:
        if not self.fewest_arguments <= len(columns) <= len(self.argument_types):
            raise TypeError(f"{self.name}({self.arguments}) got {len(columns)} columns")
        return [F.col(column) if isinstance(column, str) else column for column in columns]
