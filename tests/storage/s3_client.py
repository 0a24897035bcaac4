"""A bucket of the S3 server, opened by obstore."""

from __future__ import annotations

from obstore.store import S3Store

from storage.s3_server import REGION, S3Server


def opened(server: S3Server, bucket: str, endpoint: str | None = None, secret: str | None = None) -> S3Store:
    """Open a bucket; through ``endpoint`` and with ``secret``, if they are given. Nothing is tried twice."""
    return S3Store(
        bucket,
        endpoint=endpoint or server.endpoint,
        access_key_id=server.key,
        secret_access_key=secret or server.secret,
        region=REGION,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
