"""A real S3 server on this machine: s3proxy, which keeps each bucket in a folder."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.ports import PortBlocks
from cluster.processes import end, start_java, wait_for_port
from storage.artefacts import s3_class_path
from storage.s3_front import S3Front, s3_front

KEY, SECRET, REGION = "test-key", "test-secret", "us-east-1"
HEAP_MB = 256
# The checksums that obstore sends when it deletes many files are unknown to s3proxy.
PROPERTIES = """s3proxy.authorization=aws-v2-or-v4
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.identity={key}
s3proxy.credential={secret}
s3proxy.ignore-unknown-headers=true
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={folder}
jclouds.identity=unused
jclouds.credential=unused
"""
LOGBACK = """<configuration>
<appender name="console" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %p %c - %m%n</pattern></encoder></appender>
<root level="ERROR"><appender-ref ref="console"/></root>
</configuration>
"""


@dataclass
class S3Server:
    """A server that runs. ``folder`` has a folder for each bucket; clients use the proxy ``front``."""

    folder: Path
    front: S3Front
    process: subprocess.Popen[bytes]
    key: str = KEY
    secret: str = SECRET

    @property
    def endpoint(self) -> str:
        """The address of the server."""
        return self.front.endpoint

    def environment(self, **changed: str) -> dict[str, str]:
        """Return what clients need; ``changed`` replaces single variables."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            **changed,
        }

    def make_bucket(self) -> str:
        """Make a bucket, and return its name."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        (self.folder / name).mkdir()
        return name

    def path(self, uri: str) -> Path:
        """Return the place of a file or folder in the server's folder."""
        return self.folder / uri.removeprefix("s3://")


@contextmanager
def running_s3_server(home: Path) -> Iterator[S3Server]:
    """A server that ends with the block. It keeps all below ``home``."""
    buckets, ports = home / "buckets", PortBlocks()
    buckets.mkdir(parents=True)
    port = ports.take()
    (home / "s3proxy.properties").write_text(PROPERTIES.format(port=port, key=KEY, secret=SECRET, folder=buckets))
    (home / "logback.xml").write_text(LOGBACK)
    process = start_java(
        home,
        s3_class_path(),
        ["org.gaul.s3proxy.Main", "--properties", str(home / "s3proxy.properties")],
        heap_mb=HEAP_MB,
        options=[f"-Dlogback.configurationFile={home / 'logback.xml'}"],
    )
    try:
        wait_for_port(process, port, home)
        with s3_front(port) as front:
            yield S3Server(buckets, front, process)
    finally:
        end([process])
        ports.close()
