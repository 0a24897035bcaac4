"""The check that the columns of a SQL call have the types of the function's arguments. Spark does not check them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from mqreplay.bind.sql_types import INTEGERS, Argument, inner_types, kind_of, short_type

Check = Callable[[Sequence[pa.Array]], None]
PLAIN: dict[str, Callable[[pa.DataType], bool]] = {
    "STRING": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "BOOLEAN": pa.types.is_boolean,
    "STRUCT": pa.types.is_struct,
    # A long literal is a DECIMAL in Spark; it wraps to 64 bits.
    **dict.fromkeys(
        INTEGERS, lambda kind: pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    ),
}


def arguments_check(name: str, arguments: Sequence[Argument], fewest: int) -> Check:
    """Return a function that raises TypeError, in one line, for columns that do not fit the arguments."""

    def check(columns: Sequence[pa.Array]) -> None:
        if not fewest <= len(columns) <= len(arguments):
            wanted = f"{fewest}" if fewest == len(arguments) else f"{fewest} to {len(arguments)}"
            shown = ", ".join(f"{argument.name} {short_type(argument.type)}" for argument in arguments)
            raise TypeError(f"{name} takes {wanted} arguments, got {len(columns)}: {name}({shown})")
        for column, argument in zip(columns, arguments, strict=False):
            if not _fits(argument.type, column.type):
                raise TypeError(f"{name}: {argument.name} is {short_type(argument.type)}, not {column.type}")

    return check


def _fits(wanted: str, kind: pa.DataType) -> bool:
    if pa.types.is_null(kind):
        return True
    if kind_of(wanted) == "ARRAY":
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        return is_list and _fits(inner_types(wanted)[0], kind.value_type)
    if kind_of(wanted) == "MAP":
        if not pa.types.is_map(kind):
            return False
        return all(map(_fits, inner_types(wanted), (kind.key_type, kind.item_type)))
    return PLAIN[kind_of(wanted)](kind)
