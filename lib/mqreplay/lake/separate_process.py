"""Python code in a process of its own: without a caller's spark-submit, or with a bound of its memory."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

from mqreplay.machine.stop_signals import STOPS

FOREIGN = ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
PR_SET_PDEATHSIG = 1
GRACE_S = 0.3  # a signal to the whole process group reaches the child without us


def run_separately(code: str, *arguments: str, patience_s: int) -> subprocess.CompletedProcess[str]:
    """Run the command to its end and return its output. Raise subprocess.TimeoutExpired."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=patience_s)


def continue_in_child() -> int | None:
    """Fork, before there are threads. Return None in the child; in the parent its status, negative for a signal.

    The parent outlives a child that a library aborts because it gets no memory. Where the system cannot wait for
    signals, as on macOS, nothing is forked.
    """
    if not sys.platform.startswith("linux"):
        return None
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *STOPS})
    child = os.fork()
    if child == 0:
        end_with_parent()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    ended, status = 0, 0
    while not ended:
        received = signal.sigwaitinfo({signal.SIGCHLD, *STOPS})
        # A terminal signals the whole group; kill only us.
        is_ours_alone = received.si_signo in STOPS and received.si_code <= 0
        if is_ours_alone and signal.sigtimedwait({signal.SIGCHLD}, GRACE_S) is None:
            os.kill(child, received.si_signo)
        ended, status = os.waitpid(child, os.WNOHANG)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return os.waitstatus_to_exitcode(status)


def end_with_parent() -> None:
    """Let Linux end this process with the one that started it, also if that is killed."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def limit_memory(more: int) -> None:
    """Let this process take at most ``more`` bytes more than it has now. Only Linux enforces it.

    The limit is of memory that can be written: address space that glibc reserves for each thread, and files that are
    mapped, count in RLIMIT_AS.
    """
    if sys.platform.startswith("linux"):
        import resource

        has = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = has + more if hard == resource.RLIM_INFINITY else min(has + more, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
