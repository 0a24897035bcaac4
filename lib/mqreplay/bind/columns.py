"""Native column expressions for the rules asked of every pull: several times faster than any Python face.

The law stays in core; these are its twins, for all 64-bit inputs, held to it by tests/bind/test_columns.py.
The session is in ANSI mode, where an overflow is an error: wrapping is written out, and nothing here can
overflow. Null in is null out (the faces of `functions` say NullArgument instead).
"""

from __future__ import annotations

import functools
import operator

from pyspark.sql import Column
from pyspark.sql import functions as F

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.core.pull_node import MASTER_ID
from mqreplay.core.version import BROKER_4, at_least


def wrapping_subtract(a: Column, b: Column) -> Column:
    """a - b of two BIGINTs as Java subtracts longs.

    An overflow needs operands of different signs; moving both by 2**63 towards zero then gives the wrapped
    difference without another one.
    """
    low = F.lit(LONG_MIN)
    wrapped = F.when(a >= 0, F.try_subtract(F.try_add(a, low), F.try_subtract(b, low))).otherwise(
        F.try_subtract(F.try_subtract(a, low), F.try_add(b, low))
    )
    return F.coalesce(F.try_subtract(a, b), wrapped)


def memory_threshold(total_physical_memory_size: Column, access_message_in_memory_max_ratio: Column) -> Column:
    """slave_suggestion.memory_threshold: a double, cut to a long, saturating."""
    memory = total_physical_memory_size.cast("double") * (
        access_message_in_memory_max_ratio.cast("double") / F.lit(100.0)
    )
    return (
        F.when(memory >= float(LONG_MAX), F.lit(LONG_MAX))
        .when(memory <= float(LONG_MIN), F.lit(LONG_MIN))
        .otherwise(memory.try_cast("bigint"))
    )


def slave_suggestion(
    max_offset_py: Column,
    max_phy_offset_pulling: Column,
    total_physical_memory_size: Column,
    access_message_in_memory_max_ratio: Column,
) -> Column:
    """slave_suggestion.slave_suggestion: strictly more than the threshold behind the end of the log."""
    diff = wrapping_subtract(max_offset_py, max_phy_offset_pulling)
    return diff > memory_threshold(total_physical_memory_size, access_message_in_memory_max_ratio)


def suggest_which_broker_id(
    suggest_pulling_from_slave: Column,
    slave_read_enable: Column,
    group_broker_id: Column,
    which_broker_when_consume_slowly: Column,
    broker_id: Column,
    min_broker_id_in_group: Column,
    in_broker_container: Column,
    version: str = BROKER_4,
) -> Column:
    """pull_answer.suggest_which_broker_id, for brokers of one version, which is a plain string."""
    master = F.lit(MASTER_ID).cast("bigint")
    suggestion = F.when(suggest_pulling_from_slave, which_broker_when_consume_slowly)
    suggestion = suggestion.otherwise(group_broker_id)
    if at_least(version, "5.0.0"):
        may_suggest = slave_read_enable & ~in_broker_container
        redirects = (broker_id != MASTER_ID) & ~suggest_pulling_from_slave & (min_broker_id_in_group == MASTER_ID)
        suggestion = F.when(redirects | ~may_suggest, master).otherwise(suggestion)
    else:
        suggestion = F.when(~slave_read_enable, master).otherwise(suggestion)
    arguments = (
        suggest_pulling_from_slave,
        slave_read_enable,
        group_broker_id,
        which_broker_when_consume_slowly,
        broker_id,
        min_broker_id_in_group,
        in_broker_container,
    )
    known = functools.reduce(operator.and_, (argument.isNotNull() for argument in arguments))
    return F.when(known, suggestion)
