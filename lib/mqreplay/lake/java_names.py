"""PySpark asks Java for a class and a method by name at each call of a function; here the answers are remembered.

A night makes 25,000 such questions, 10 s of a small one: Java looks through every jar for some of them.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession

# The names that PySpark asks for again and again, as it writes them.
ASKED_FOR = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.expressions.Window",
)


class RememberedClass(JavaClass):  # type: ignore[misc]
    """A Java class whose static methods are looked up once."""

    def __getattr__(self, name: str) -> Any:
        """The method, kept where Python looks before it asks here again."""
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember_names(session: SparkSession) -> None:
    """Has the session's view of Java remember these classes. Again is harmless."""
    view = session.sparkContext._jvm
    if view is None or "functions" in vars(view):
        return
    for name in ASKED_FOR:
        found = getattr(view, name)
        if type(found) is JavaClass:
            found.__class__ = RememberedClass
            setattr(view, name, found)
