"""The entry of every job under spark-submit: the command line's options, with --recording in place of a bare folder."""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import sys
from collections.abc import Iterable
from typing import TextIO

from mqreplay.cli.command import BAD_INPUT
from mqreplay.cli.command_line import main as command_line
from mqreplay.words.printable import printable

# spark-submit gives everything after the job to the job, and would not see them there.
SUBMIT_OPTION = re.compile(
    r"--(master|deploy-mode|name|class|properties-file|load-spark-defaults|queue|principal|keytab|supervise|proxy-user|"
    r"jars|packages|exclude-packages|repositories|py-files|files|archives|"
    r"driver-[a-z-]+|executor-[a-z]+|num-executors|total-executor-cores)(=.*)?"
)
PIDFD_GETFD = 438  # the number of the system call on every processor
SPARK_SETTING = re.compile(r"spark\.[\w.-]+=.*", re.DOTALL)


def main(step: str, argv: list[str] | None = None) -> int:
    """Run ``step`` with the options of spark-submit's application; return the exit status."""
    parser = argparse.ArgumentParser(prog=f"jobs/{step}.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--recording", action="append", default=[])
    own, rest = parser.parse_known_args(sys.argv[1:] if argv is None else argv)
    sys.stderr = _own_stderr()
    misplaced = options_of_submit(rest)
    if misplaced:
        options = printable(" ".join(misplaced))
        print(
            f"mqreplay: {options} after the job has no effect on Spark; give it before the job: "
            f"spark-submit {options} ... {parser.prog} ...",
            file=sys.stderr,
        )
        return BAD_INPUT
    # A job is for Spark, also where plain Python starts it. A later --engine counts.
    return command_line([step, *own.recording, "--engine", "spark", *rest], own_process=True)


def options_of_submit(words: Iterable[str]) -> list[str]:
    """Return the words that are options of spark-submit and not of a job, each with its value.

    >>> options_of_submit(["--warehouse", "w", "--driver-memory", "6g", "--conf", "spark.a=b", "--conf", "own.toml"])
    ['--driver-memory', '6g', '--conf', 'spark.a=b']
    """
    found: list[str] = []
    words = list(words)
    for number, word in enumerate(words):
        value = words[number + 1] if number + 1 < len(words) else ""
        if SUBMIT_OPTION.fullmatch(word):
            found += [word, value] if "=" not in word and value and not value.startswith("--") else [word]
        elif word == "--conf" and SPARK_SETTING.fullmatch(value):
            found += [word, value]
        elif word.startswith("--conf=") and SPARK_SETTING.fullmatch(word.removeprefix("--conf=")):
            found.append(word)
    return found


def _own_stderr() -> TextIO:
    """spark-submit (PythonRunner) joins a program's stderr to its stdout; progress would stand among the results.

    The JVM's own stderr is then the parent's.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ or not os.path.sameopenfile(1, 2):
        return sys.stderr
    try:
        return open(_stderr_of(os.getppid()), "a", encoding="utf-8", buffering=1)
    except OSError:
        return sys.stderr


def _stderr_of(process: int) -> int | str:
    """Return the stderr of a process: its own descriptor, which keeps one position in a file, or the file's path."""
    handle = os.pidfd_open(process)
    try:
        taken = ctypes.CDLL(None).syscall(ctypes.c_long(PIDFD_GETFD), handle, 2, 0)
    except AttributeError:  # no Linux
        taken = -1
    finally:
        os.close(handle)
    return taken if taken >= 0 else f"/proc/{process}/fd/2"
