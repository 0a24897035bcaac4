"""The catalogue as SQL functions of a session.

SQL gets the Arrow face: measured (tools/bench/bind_faces.py), it is the fastest that answers exactly.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from mqreplay.bind.functions import FUNCTIONS


def register(spark: SparkSession) -> None:
    """Make each function of the catalogue a temporary SQL function under its own name."""
    for name, bound in FUNCTIONS.items():
        spark.udf.register(name, bound.arrow_function)
