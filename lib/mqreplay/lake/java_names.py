"""Cache of Java classes and methods: PySpark looks them up by name at each call of a function.

A night has 25,000 such lookups, 10 s of a small one: Java searches every JAR for some of them.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession

# The names that PySpark looks up often, as it writes them.
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
        """Return the method, and store it as an attribute, so that Python finds it without this call."""
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember_names(session: SparkSession) -> None:
    """Make the session's view of Java cache these classes. A second call is harmless."""
    view = session.sparkContext._jvm
    if view is None or "functions" in vars(view):
        return
    for name in ASKED_FOR:
        found = getattr(view, name)
        if type(found) is JavaClass:
            found.__class__ = RememberedClass
            setattr(view, name, found)
