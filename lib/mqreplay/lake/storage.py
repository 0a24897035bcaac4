"""How to reach the stores: the settings section [storage], the environment, and Spark's own settings, as one record.

Whoever asks first wins: [storage] options, then Spark's settings (spark.hadoop.fs.s3a.access.key and others), then
the environment (AWS_ACCESS_KEY_ID and others). Without keys the libraries ask the machine: an instance profile, a
workload identity. The driver's record goes to the tasks, so that workers need no settings of their own.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqreplay.settings import Settings, StorageSettings

OPTIONS = tomllib.loads(Path(__file__).with_name("store_options.toml").read_text("utf-8"))
ENVIRONMENT = frozenset(OPTIONS["environment"])
HADOOP: Mapping[str, str] = OPTIONS["hadoop"]  # Hadoop's names of options
TURNED: Sequence[str] = OPTIONS["turned"]
SPARK = "spark.hadoop."
Pairs = tuple[tuple[str, str], ...]  # names and values, sorted


@dataclass(frozen=True)
class Storage:
    """What a process needs to reach stores: ``options`` by obstore's names, ``hadoop`` by Hadoop's; limits in seconds.

    The text of a Storage names no key.
    """

    options: Pairs = field(default=(), repr=False)
    hadoop: Pairs = field(default=(), repr=False)
    timeout_s: int = StorageSettings().timeout_s
    retries: int = StorageSettings().retries

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the options of one family of stores: aws_, azure_ or google_."""
        return {name: value for name, value in self.options if name.startswith(prefix)}


def storage_of(settings: StorageSettings, spark: Mapping[str, str]) -> Storage:
    """Return the record from [storage], Spark's settings and the environment."""
    hadoop = {name.removeprefix(SPARK): value for name, value in spark.items() if name.startswith(SPARK)}
    environment = {name.lower(): value for name, value in os.environ.items() if name.lower() in ENVIRONMENT}
    options = environment | _from_hadoop(hadoop) | settings.options
    return Storage(_pairs(options), _pairs(hadoop), settings.timeout_s, settings.retries)


def _pairs(named: Mapping[str, str]) -> Pairs:
    return tuple(sorted(named.items()))


def _from_hadoop(hadoop: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, ours in HADOOP.items():
        value = hadoop.get(name)
        if value:
            found[ours] = _opposite(value) if name in TURNED else value
    endpoint = found.get("aws_endpoint_url", "")
    if endpoint and "://" not in endpoint:  # Hadoop takes a host alone
        found["aws_endpoint_url"] = f"{'http' if found.get('aws_allow_http') == 'true' else 'https'}://{endpoint}"
    for name, value in hadoop.items():
        if name.startswith("fs.azure.account.key."):
            found["azure_storage_account_key"] = value
    return found


def spark_options(storage: Storage) -> dict[str, str]:
    """Return the options as settings of Spark, for queries and maintenance by Java.

    >>> spark_options(Storage((("aws_access_key_id", "k"), ("aws_virtual_hosted_style_request", "false"))))
    {'spark.hadoop.fs.s3a.access.key': 'k', 'spark.hadoop.fs.s3a.path.style.access': 'true'}
    """
    found, options = {}, dict(storage.options)
    for name, ours in HADOOP.items():
        value = options.get(ours)
        if value:
            found[SPARK + name] = _opposite(value) if name in TURNED else value
    return found


def spark_location(location: str, s3_scheme: str = "s3a") -> str:
    """Return the location of a table as Spark names it: Hadoop's scheme for S3 is s3a, that of EMR and Databricks s3.

    >>> spark_location("s3://bucket/gold/finding"), spark_location("/w/gold/finding")
    ('s3a://bucket/gold/finding', '/w/gold/finding')
    """
    return f"{s3_scheme}://{location.removeprefix('s3://')}" if location.startswith("s3://") else location


def _opposite(switch: str) -> str:
    return "false" if switch.lower() == "true" else "true"


def storage_options() -> dict[str, Any]:
    """Return what polars takes to reach a store; delta-rs takes the same as text."""
    now = storage()
    limits = {"timeout": f"{now.timeout_s}s", "connect_timeout": f"{min(now.timeout_s, 10)}s"}
    return dict(now.options) | limits | {"max_retries": now.retries}


def use_settings(settings: Settings) -> None:
    """Let this process reach stores by the settings, those of spark-submit among them, and the environment."""
    spark_settings: dict[str, str] = {}
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        from mqreplay.lake.submitted import submitted_settings  # loads PySpark

        spark_settings = submitted_settings()
    use_storage(storage_of(settings.storage, spark_settings | settings.spark.extra))


_storage: Storage | None = None


def use_storage(storage: Storage) -> None:
    """Set the record of this process."""
    global _storage
    _storage = storage


def storage() -> Storage:
    """Return the record of this process; the environment's if none was set."""
    return _storage if _storage is not None else storage_of(StorageSettings(), {})
