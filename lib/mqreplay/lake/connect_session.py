"""A session of a Spark Connect server: the server owns Java, and the driver's Python talks to it over the network."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from mqreplay.errors import InputError
from mqreplay.lake.catalog import first_line
from mqreplay.lake.session import MEANING

PORT, PATIENCE_S = 15002, 20  # spark.connect.grpc.binding.port
EXTENSIONS = "spark.sql.extensions"
AT_START = (EXTENSIONS, "spark.sql.catalog.spark_catalog")  # the server was started with them


def connected_session(address: str) -> SparkSession:
    """Return a session of the server at this address, such as sc://host:15002.

    Raises InputError if it does not answer, or was started without Delta.
    """
    at = urlsplit(address)
    try:  # Spark itself would try again for ten minutes
        socket.create_connection((at.hostname or "", at.port or PORT), PATIENCE_S).close()
    except (OSError, ValueError) as error:
        raise InputError(f"{address}: no Spark Connect server answers: {error}") from None
    try:
        builder: Any = SparkSession.builder
        session: SparkSession = builder.remote(address).getOrCreate()
        extensions = session.conf.get(EXTENSIONS, "") or ""
    except ImportError as error:
        missing = f"{address}: Spark Connect needs more packages: pip install 'pyspark[connect]' ({first_line(error)})"
        raise InputError(missing) from None
    except Exception as error:  # of grpc, of the server, or of its address
        raise InputError(f"{address}: no session of Spark Connect: {first_line(error)}") from None
    if MEANING[EXTENSIONS] not in extensions:
        wanted = " and ".join(f"{name}={MEANING[name]}" for name in AT_START)
        raise InputError(f"{address}: this server was started without Delta; start it with {wanted}")
    for name, value in MEANING.items():
        if name not in AT_START:
            session.conf.set(name, value)
    return session
