"""Memory of a tree of processes: all of it, and none of it twice because Java is about to start another program."""

from __future__ import annotations

import subprocess
import sys

from bench.peers.stages import borrows, tree_rss
from bench.peers.usage import watched

HOLDS = "import sys; held = bytearray(200_000_000); print('there', flush=True); sys.stdin.read()"


def test_children_count() -> None:
    before = tree_rss()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert 200_000_000 < tree_rss() - before < 300_000_000
        child.communicate()
    assert tree_rss() - before < 50_000_000


def test_a_child_on_javas_memory_does_not() -> None:
    java = b"/usr/bin/java\0-Xmx3g\0org.apache.spark.deploy.SparkSubmit\0"
    assert borrows(java, java)
    assert not borrows(b"chmod\0" + b"0644\0", java)
    assert not borrows(b"python\0-m\0pyspark.daemon\0", b"python\0-m\0pyspark.daemon\0")
    assert not borrows(java, b"python\0")


BUSY = "import time; end = time.process_time() + 0.8\nwhile time.process_time() < end: pass"


def test_a_command_is_measured_with_what_it_starts() -> None:
    """Its child holds 200 MB and works for 0.8 s; the second time nobody waits for it."""
    child = f"held = bytearray(200_000_000)\n{BUSY}\nprint('done')"
    starts = f"import subprocess, sys, time\nrun = [sys.executable, '-c', {child!r}]\n"
    done, used = watched([sys.executable, "-c", starts + "subprocess.run(run)"])
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert 200 < used["peak MB"] < 400
    assert used["CPU s"] >= 0.8
    left = "run = subprocess.Popen(run, stdout=subprocess.PIPE); run.stdout.read(); time.sleep(1)"
    assert watched([sys.executable, "-c", starts + left])[1]["CPU s"] >= 0.8
