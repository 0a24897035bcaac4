"""Start Java for a session, with the process's folder for temporary files and Python's character set."""

from __future__ import annotations

import atexit
import locale
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from mqreplay.lake.scratch import scratch, temporary_files_here
from mqreplay.machine.java_output import jvm_start
from mqreplay.machine.local_files import UTF8_LOCALE, is_utf8
from mqreplay.words.errors import InputError

END_S = 10  # Java stops its jobs and removes its files


def start_java(options: Mapping[str, str]) -> None:
    """Start Java with Spark's options, unless it runs."""
    if SparkContext._gateway is not None:
        return
    lock = scratch().lock
    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    with jvm_start(), temporary_files_here(), _environment(_child_environment()):
        # Java keeps the lock of the temporary files until its end, even if it outlives Python.
        handed_on = {} if lock is None else {"pass_fds": (lock,)}
        gateway = launch_gateway(conf, handed_on)  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    atexit.register(_end, gateway.proc)


def java_option(text: str) -> str:
    """Return a Java option as one word of Spark's extraJavaOptions, which are split at spaces.

    >>> print(java_option('-Da=/tmp/with "blanks"'))
    "-Da=/tmp/with \\"blanks\\""
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def check_java_names(path: str) -> None:
    """Raise InputError if this Java would write to another path than Python."""
    if path.isascii() or SparkContext._jvm is None:
        return
    encoding = SparkContext._jvm.java.lang.System.getProperty("sun.jnu.encoding")
    if not is_utf8(encoding):
        raise InputError(
            f"Java uses the character set {encoding} and cannot name {path!r}; set LC_ALL to a UTF-8 locale "
            "(`locale -a` lists them)"
        )


def keep_accumulators_quiet() -> None:
    """Prevent PySpark's traceback when Java has ended: the caller that waits for Java gets an error anyway."""
    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, address: None


def _child_environment() -> dict[str, str]:
    changed = {"TMPDIR": str(scratch().part("java"))}
    # With LC_ALL=C Python names files in UTF-8, and Java in ASCII with a ? for each other letter.
    if is_utf8(sys.getfilesystemencoding()) and not is_utf8(locale.getencoding()):
        changed["LC_ALL"] = UTF8_LOCALE
    return changed


@contextmanager
def _environment(changed: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables for child processes within the block."""
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end(java: subprocess.Popen[bytes]) -> None:
    """Wait until Java has ended: it removes its own files, and can write nothing afterwards."""
    keep_accumulators_quiet()
    with suppress(OSError):
        if java.stdin is not None:
            java.stdin.close()  # Java ends when Python closes its standard input
    with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        java.wait(END_S)
