"""How to reach the stores: the settings section [storage], the environment, and Spark's own settings, as one record.

Whoever asks first wins: [storage] options, then Spark's settings (spark.hadoop.fs.s3a.access.key and others), then
the environment (AWS_ACCESS_KEY_ID and others). Without keys the libraries ask the machine: an instance profile, a
workload identity. The driver's record goes to the tasks, so that workers need no settings of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mqreplay.settings import Settings, StorageSettings

# Names of obstore, which are those of delta-rs and polars too; the environment has them in capitals.
ENVIRONMENT = frozenset(
    (
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "aws_region",
        "aws_default_region",
        "aws_endpoint_url",
        "aws_endpoint",
        "aws_virtual_hosted_style_request",
        "aws_allow_http",
        "aws_container_credentials_relative_uri",
        "aws_container_credentials_full_uri",
        "aws_container_authorization_token_file",
        "aws_web_identity_token_file",
        "aws_role_arn",
        "aws_role_session_name",
        "azure_storage_account_name",
        "azure_storage_account_key",
        "azure_storage_client_id",
        "azure_storage_client_secret",
        "azure_storage_tenant_id",
        "azure_client_id",
        "azure_client_secret",
        "azure_tenant_id",
        "azure_federated_token_file",
        "azure_storage_sas_key",
        "google_service_account",
        "google_service_account_key",
        "google_application_credentials",
    )
)
# Hadoop's names. The text of a switch is turned: path style is the opposite of virtual hosts, SSL that of plain HTTP.
HADOOP = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
    "fs.s3a.endpoint": "aws_endpoint_url",
    "fs.s3a.endpoint.region": "aws_region",
    "fs.s3a.path.style.access": "aws_virtual_hosted_style_request",
    "fs.s3a.connection.ssl.enabled": "aws_allow_http",
}
TURNED = ("fs.s3a.path.style.access", "fs.s3a.connection.ssl.enabled")
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
