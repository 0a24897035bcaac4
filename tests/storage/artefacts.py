"""The JARs of the servers that keep files: s3proxy, and Hadoop's NameNode and DataNode.

s3proxy is one JAR and what it depends on, runs on the Java that Spark needs anyway, and checks signatures. SeaweedFS
and MinIO are closer to a real store, but must be built with Go, which neither users nor CI have.

s3proxy 3.0.0 is the first that obeys If-None-Match; 3.3.0 does not start without classes that its POM does not name.
`python -m storage.artefacts` resolves both servers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from java_artefacts import Artefacts, resolve_all

S3PROXY = Artefacts(
    "storage/s3proxy-3.0.0",
    "org.gaul",
    "3.0.0",
    {"s3proxy": "1dbacddb160d3197ad2cb41a393069a8e162419e8cda2f48435964bc4934e8c8"},
    # It keeps files in a folder here: no clients of other stores.
    excluded=("com.azure:*", "software.amazon.awssdk:*", "com.amazonaws:*", "com.google.auto.service:*"),
)
HADOOP = Artefacts(
    "storage/hadoop-3.4.2",
    "org.apache.hadoop",
    "3.4.2",
    {"hadoop-client-minicluster": "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77"},
    # pyspark has these JARs of the same version.
    excluded=("org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime", "junit:*"),
)
# Spark's client of S3, which nights on Spark need. Half a gigabyte: it is resolved by the long test that uses it.
HADOOP_AWS = Artefacts(
    "storage/hadoop-aws-3.4.2",
    "org.apache.hadoop",
    "3.4.2",
    {"hadoop-aws": "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9"},
)
# What Hadoop's servers need of pyspark's JARs.
OF_PYSPARK = (
    "hadoop-client-api",
    "hadoop-client-runtime",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-1.2-api",
    "log4j-slf4j2-impl",
    "jcl-over-slf4j",
)


def s3_class_path() -> list[str]:
    """Return the JARs of s3proxy."""
    return S3PROXY.class_path()


def hdfs_class_path() -> list[str]:
    """Return the JARs of Hadoop's servers, without a folder of configuration."""
    import pyspark  # not loaded by whoever only collects tests

    jars = Path(pyspark.__file__).parent / "jars"
    borrowed = [str(path) for name in OF_PYSPARK for path in sorted(jars.glob(f"{name}-[0-9]*.jar"))]
    return [*HADOOP.class_path(), *borrowed]


if __name__ == "__main__":
    sys.exit(resolve_all((S3PROXY, HADOOP)))
