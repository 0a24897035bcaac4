"""What was known at a moment: a join to the nearest row before or after, by one sorted pass instead of a range join."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

Columns = dict[str, Column]


def as_of(
    left: DataFrame, right: DataFrame, by: list[str], at: str, value: Column, out: str, *, after: bool = False
) -> DataFrame:
    """``left`` with column ``out``: ``value`` of the nearest ``right`` row of the same ``by``.

    ``at`` is the name of the column in both frames that orders them. Nearest is the last row at or before, or with
    ``after`` the first row at or after; null where there is none. Rows of ``right`` with a null ``at`` or ``value`` are
    passed over; rows of ``left`` with a null ``at`` get null.
    """
    known = right.select(*by, F.col(at).alias("_at"), value.alias(out)).where(
        F.col("_at").isNotNull() & F.col(out).isNotNull()
    )
    asked = left.select(*by, F.col(at).alias("_at"), F.struct(*left.columns).alias("_row"))
    both = asked.unionByName(known, allowMissingColumns=True)
    # At one and the same moment what is known counts: it stands before the question. Looking ahead is looking back over
    # the rows turned round: a frame that reaches to the end is made anew by Spark for every row.
    is_question = F.col("_row").isNotNull()
    at_order = F.col("_at").desc_nulls_first() if after else F.col("_at").asc_nulls_first()
    order = Window.partitionBy(*by).orderBy(at_order, is_question.asc())
    found = F.last(out, ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    answered = both.withColumn(out, F.when(F.col("_at").isNotNull(), found))
    return answered.where(is_question).select("_row.*", out)
