"""A real standalone master with two workers of one core each, on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.processes import free_port


def environment() -> dict[str, str]:
    """What Spark's own scripts are to be run with. Java's second compiler would not pay off in a minute."""
    import pyspark

    from mqreplay.lake.session import JAVA_SMALL

    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": "",
        "SPARK_SUBMIT_OPTS": JAVA_SMALL,
        "SPARK_DAEMON_JAVA_OPTS": JAVA_SMALL,
        "SPARK_LAUNCHER_OPTS": JAVA_SMALL,
    }


def stock_spark(folder: Path) -> Path:
    """Make a SPARK_HOME as Apache ships it, without Delta's JARs."""
    import pyspark

    from mqreplay.lake.jars import delta_release

    shipped = Path(pyspark.__file__).parent
    (folder / "jars").mkdir(parents=True)
    for each in shipped.iterdir():
        if each.name != "jars":
            (folder / each.name).symlink_to(each)
    for jar in (shipped / "jars").glob("*.jar"):
        if jar.name not in delta_release().jars:
            (folder / "jars" / jar.name).symlink_to(jar)
    return folder


@contextmanager
def standalone(folder: Path, memory: str, env: dict[str, str] | None = None) -> Iterator[str]:
    """The master's address while it runs; ``folder`` takes logs and work, ``memory`` is a worker's.

    ``env`` is the environment of master and workers, if they have another Spark or Python than this process.
    """
    env, port = env or environment(), free_port()
    spark_class = str(Path(env["SPARK_HOME"], "bin", "spark-class"))
    address = f"spark://127.0.0.1:{port}"
    ui = ["--webui-port", "0"]
    commands = [["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), *ui]]
    for name in ("one", "two"):
        work = ["--cores", "1", "--memory", memory, "--work-dir", str(folder / name), "--host", "127.0.0.1", *ui]
        commands.append(["org.apache.spark.deploy.worker.Worker", *work, address])
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    running: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("w") as out:
            for command in commands:
                running.append(subprocess.Popen([spark_class, *command], env=env, stdout=out, stderr=out))
        deadline = time.monotonic() + 120
        while log.read_text().count("Successfully registered with master") < 2:
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            assert all(p.poll() is None for p in running), log.read_text()[-3000:]
            time.sleep(0.5)
        yield address
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)
