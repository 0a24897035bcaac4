"""Java processes of a test: each in a home folder of its own, and none outlives the test."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

# RocketMQ's classes reach into these packages of Java 17.
OPENS = ("java.base/jdk.internal.ref", "java.base/java.nio", "java.base/sun.nio.ch", "java.base/java.lang")
FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k", "-XX:MaxDirectMemorySize=256m", "-Xshare:auto")
PR_SET_PDEATHSIG = 1
START_S = 60  # a busy machine
END_S = 20


def start_java(
    home: Path,
    class_path: list[str],
    command: list[str],
    *,
    heap_mb: int,
    options: list[str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a Java process that writes only below `home`. Its output goes to `home`/console.log."""
    home.mkdir(parents=True, exist_ok=True)
    opens = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENS]
    folders = [f"-Duser.home={home}", f"-Drocketmq.home.dir={home}", f"-Djava.io.tmpdir={home}"]
    java = str(Path(os.environ["JAVA_HOME"], "bin", "java")) if os.environ.get("JAVA_HOME") else "java"
    memory = [f"-Xmx{heap_mb}m"]
    line = [java, *memory, *FLAGS, *opens, *folders, *(options or []), "-cp", ":".join(class_path), *command]
    with (home / "console.log").open("ab") as console:
        return subprocess.Popen(
            line,
            cwd=home,
            env={**os.environ, "HOME": str(home), "ROCKETMQ_HOME": str(home)},
            stdin=stdin,
            stdout=console if stdout is None else stdout,
            stderr=console,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End the processes, by force those that do not end by themselves. A stopped process is continued first."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
    deadline = time.monotonic() + END_S
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, deadline - time.monotonic()))
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End the process group at once, as `kill -9` does."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for_port(process: subprocess.Popen[bytes], port: int, home: Path) -> None:
    """Wait until the process accepts connections. Raise AssertionError with its output if it ends instead."""
    deadline = time.monotonic() + START_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, f"{home.name} ended: {console(home)}"
        assert time.monotonic() < deadline, f"{home.name} does not listen on port {port}: {console(home)}"
        time.sleep(0.1)


def free_port() -> int:
    """Return a port of the loopback device that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def console(home: Path) -> str:
    """Return the end of what the process of this home printed."""
    return (home / "console.log").read_text(errors="replace")[-3000:]


def _die_with_parent() -> None:
    """Have the kernel kill this process when the test run is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
