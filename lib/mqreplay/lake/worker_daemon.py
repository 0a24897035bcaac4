"""The process that forks Spark's Python workers, without tracebacks of workers whose task or session is over.

Java closes the sockets of its workers when a session ends. An idle worker then wakes up, tries to report that to Java,
and prints a BrokenPipeError, unless the signal that ends it comes first. On a slow machine it comes later. Errors of
tasks reach the driver through Java, so nothing is lost here.

Before each task, pyspark.worker calls importlib.invalidate_caches(). Python 3.11 then reads the list of files in
pyspark.zip again, for each package in it: 0.15 s of processor time a task. The zip does not change.

Spark runs this module in place of pyspark.daemon (spark.python.daemon.module).
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO
from zipimport import zipimporter

from pyspark import daemon, worker

SOCKET_CLOSED = (BrokenPipeError, ConnectionResetError, EOFError)  # what Java's end of a socket gives once it is closed


def main(infile: BinaryIO, outfile: BinaryIO) -> None:
    """Run one task as pyspark.worker does. Exit without a message if Java has closed the socket."""
    forget_zip_importers()
    try:
        worker.main(infile, outfile)
    except SOCKET_CLOSED:
        _discard(outfile)
        sys.exit(1)
    finally:
        try:
            outfile.flush()
        except SOCKET_CLOSED:
            _discard(outfile)


def forget_zip_importers() -> None:
    """Leave nothing for invalidate_caches() to read again; the next import makes an importer with the known list."""
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]


def _discard(outfile: BinaryIO) -> None:
    """Let what is still in the buffer go nowhere: the daemon flushes it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, outfile.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    daemon.worker_main = main
    daemon.manager()  # type: ignore[no-untyped-call]
