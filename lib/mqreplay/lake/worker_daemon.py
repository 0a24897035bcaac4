"""The process that forks Spark's Python workers, without tracebacks of workers whose task or session is over.

Java closes the sockets of its workers when a session ends. An idle worker then wakes up, tries to report that to Java,
and prints a BrokenPipeError, unless the signal that ends it comes first. On a slow machine it comes later. Errors of
tasks reach the driver through Java, so nothing is lost here.

Spark runs this module in place of pyspark.daemon (spark.python.daemon.module).
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from pyspark import daemon, worker

CLOSED = (BrokenPipeError, ConnectionResetError, EOFError)  # what Java's end of a socket gives once it is closed


def main(infile: BinaryIO, outfile: BinaryIO) -> None:
    """Run one task as pyspark.worker does. Exit without a message if Java has closed the socket."""
    try:
        worker.main(infile, outfile)
    except CLOSED:
        _discard(outfile)
        sys.exit(1)
    finally:
        try:
            outfile.flush()
        except CLOSED:
            _discard(outfile)


def _discard(outfile: BinaryIO) -> None:
    """Let what is still in the buffer go nowhere: the daemon flushes it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, outfile.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    daemon.worker_main = main
    daemon.manager()  # type: ignore[no-untyped-call]
