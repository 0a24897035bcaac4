"""The examples in conf/examples that run a night: their own programs or schemas accept them, and so do our commands."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pyspark
import pytest
import yaml
from dockerfile_parse import DockerfileParser

from mqreplay.cli import job
from mqreplay.cli.command_line import parser
from mqreplay.lake.local_folder import check_folders
from mqreplay.lake.storage import ENVIRONMENT
from mqreplay.machine.local_files import scheme_of
from tests_shared import ROOT

EXAMPLES = ROOT / "conf/examples"
MQREPLAY = "/opt/mqreplay/.venv/bin/mqreplay"
UNITS = ("nightly.service", "nightly.timer", "watch.service", "alert@.service")

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string((EXAMPLES / name).read_text())
    return read


@pytest.mark.parametrize("name", ["nightly.service", "watch.service"])
def test_service_reads_what_the_recorder_writes(name: str) -> None:
    service = unit(name)["Service"]
    program, *words = shlex.split(service["ExecStart"].replace("${STATE_DIRECTORY}", "/var/lib/mqreplay"))
    args = parser().parse_args(words)
    assert (program, args.command) == (MQREPLAY, "nightly")
    assert args.recordings == ["/var/lib/mqreplay/recording"]
    assert args.watch is (name == "watch.service")
    recorder = (EXAMPLES / "record.service").read_text()
    for line in ("--out ${STATE_DIRECTORY}/recording", "StateDirectory=mqreplay", "User=mqreplay"):
        assert line in recorder
    assert (service["StateDirectory"], service["User"]) == ("mqreplay", "mqreplay")


def test_a_night_with_something_to_look_at_alerts(tmp_path: Path) -> None:
    """As systemd runs both: a status other than 0 fails the service, and its failure starts the alert."""
    night = unit("nightly.service")
    assert "SuccessExitStatus" not in night["Service"]
    assert night["Unit"]["OnFailure"] == "mqreplay-alert@%n.service"
    assert "/etc/systemd/system/mqreplay-alert@.service" in (EXAMPLES / "nightly.service").read_text()
    alert = unit("alert@.service")["Service"]
    mail = f'(echo "$@"; cat) >{tmp_path}/sent'
    for name, script in (("journalctl", 'echo "log of $2"'), ("mail", mail)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    command = alert["ExecStart"].replace("$$", "$").replace("%i", "mqreplay-nightly.service").replace("%H", "host")
    mailto, _, address = alert["Environment"].partition("=")
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "MONITOR_EXIT_STATUS": "1", mailto: address}
    subprocess.run(shlex.split(command), env=env, check=True)
    sent = "-s mqreplay-nightly.service on host: exit status 1 root\nlog of mqreplay-nightly.service\n"
    assert (tmp_path / "sent").read_text() == sent


def test_timer_starts_the_service() -> None:
    head = (EXAMPLES / "nightly.service").read_text()
    assert f"/etc/systemd/system/{unit('nightly.timer')['Timer']['Unit']}" in head


@needs_systemd
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name in UNITS:
        text = (EXAMPLES / name).read_text().replace(MQREPLAY, "/bin/true").replace("User=mqreplay", "User=root")
        (tmp_path / f"mqreplay-{name}").write_text(text)
    shutil.copy(tmp_path / "mqreplay-alert@.service", tmp_path / "mqreplay-alert@mqreplay-nightly.service")
    files = [str(file) for file in tmp_path.iterdir()]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "mqreplay-" in line] == []


@needs_systemd
def test_systemd_accepts_the_time() -> None:
    time = unit("nightly.timer")["Timer"]["OnCalendar"]
    done = subprocess.run(["systemd-analyze", "calendar", time], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class DagParts:
    """What an Airflow DAG file makes, without Airflow: the DAG's and the tasks' arguments, and the arrows."""

    def __init__(self) -> None:
        self.dag: dict[str, Any] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.arrows: list[tuple[str, str]] = []

    def modules(self) -> dict[str, ModuleType]:
        parts = self

        class Dag:
            def __init__(self, **given: Any) -> None:
                parts.dag = given

            def __enter__(self) -> None: ...
            def __exit__(self, *error: object) -> None: ...

        class Task:
            def __init__(self, task_id: str, **given: Any) -> None:
                self.task_id = task_id
                parts.tasks[task_id] = given

            def __rshift__(self, other: Task) -> None:
                parts.arrows.append((self.task_id, other.task_id))

        made = {name: ModuleType(name) for name in ("airflow.sdk", "airflow.providers.standard.operators.bash")}
        made["airflow.sdk"].DAG = Dag  # type: ignore[attr-defined]
        made["airflow.providers.standard.operators.bash"].BashOperator = Task  # type: ignore[attr-defined]
        return made


def test_airflow_dag(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = DagParts()
    for name, module in parts.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    code = (EXAMPLES / "nightly_dag.py").read_text()
    exec(compile(code, "nightly_dag.py", "exec"), {})
    assert (parts.dag["schedule"], parts.dag["max_active_runs"], parts.dag["catchup"]) == ("15 8 * * *", 1, False)
    assert parts.arrows == [("nightly", "findings")]
    for task, fail_on in (("nightly", None), ("findings", "critical")):
        program, *words = shlex.split(parts.tasks[task]["bash_command"])
        args = parser().parse_args(words)
        assert (program, args.command, args.fail_on) == (MQREPLAY, "nightly", fail_on)
        assert args.recordings == ["/var/lib/mqreplay/recording"]


@pytest.mark.long  # Airflow is a large package; test_airflow_dag checks the commands
def test_airflow_accepts_the_dag(tmp_path: Path) -> None:
    python = Path(sys.prefix, "airflow", "bin", "python")
    assert python.exists(), "`make test-long` installs Airflow"
    (tmp_path / "dags").mkdir()
    shutil.copy(EXAMPLES / "nightly_dag.py", tmp_path / "dags")
    code = (
        "import sys; from airflow.dag_processing.dagbag import DagBag; bag = DagBag(sys.argv[1]); "
        "print(bag.import_errors, [[task.task_id for task in dag.topological_sort()] for dag in bag.dags.values()])"
    )
    env = {"AIRFLOW_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    env["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    command = [str(python), "-c", code, str(tmp_path / "dags")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "{} [['nightly', 'findings']]", done.stderr


def test_kubernetes_spark_application(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / "nightly-kubernetes.yaml").read_text()
    scheduled = yaml.safe_load(text)
    kind = "ScheduledSparkApplication"
    assert (scheduled["apiVersion"], scheduled["kind"]) == ("sparkoperator.k8s.io/v1beta2", kind)
    schedule, policy = scheduled["spec"]["schedule"], scheduled["spec"]["concurrencyPolicy"]
    assert (len(schedule.split()), policy) == (5, "Forbid")
    # Fields of ScheduledSparkApplicationSpec.
    limits = {"successfulRunHistoryLimit", "failedRunHistoryLimit"}
    assert set(scheduled["spec"]) == {"schedule", "concurrencyPolicy", "template"} | limits
    spec = scheduled["spec"]["template"]
    schema = json.loads((ROOT / "tests/data/spark-application.schema.json").read_text())
    jsonschema.validate(spec, schema)
    with pytest.raises(jsonschema.ValidationError):  # the schema refuses a wrong name
        jsonschema.validate({**spec, "drivers": {}}, schema)
    (secret,) = re.findall(r"kubectl create secret generic (\S+)", text)
    for pod in ("driver", "executor"):
        assert spec[pod]["envFrom"] == [{"secretRef": {"name": secret}}]
        assert spec[pod]["podSecurityContext"]["runAsNonRoot"]
    # The job gets these arguments from spark-submit.
    given: list[list[str]] = []
    monkeypatch.setattr(job, "command_line", lambda words, own_process: given.append(words) or 0)
    script = Path(spec["mainApplicationFile"].removeprefix("local:///opt/mqreplay/"))
    assert (ROOT / script).is_file()
    assert job.main(script.stem, spec["arguments"]) == 0
    args = parser().parse_args(given[0])
    check_folders(args.warehouse, args.recordings)
    assert [scheme_of(path) for path in (args.warehouse, *args.recordings)] == ["s3", "s3"]
    assert spec["sparkVersion"] == locked_spark()


def test_names_in_the_secret_are_those_of_the_stores() -> None:
    text = (EXAMPLES / "nightly-kubernetes.yaml").read_text()
    names = re.findall(r"--from-literal=(\w+)=", text)
    assert len(names) == 4
    assert {name.lower() for name in names} <= ENVIRONMENT


def locked_spark() -> str:
    """The version of Spark in the lock file."""
    (version,) = re.findall(r"^pyspark==(\S+) ", (ROOT / "requirements/runtime.txt").read_text(), re.MULTILINE)
    return str(version)


def dockerfile(folder: Path) -> DockerfileParser:
    shutil.copy(EXAMPLES / "Dockerfile", folder)
    return DockerfileParser(str(folder))


def test_dockerfile(tmp_path: Path) -> None:
    read = dockerfile(tmp_path)
    known = {"ARG", "FROM", "RUN", "ENV", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD", "COMMENT"}
    assert {step["instruction"] for step in read.structure} <= known
    assert [step["value"] for step in read.structure if step["instruction"] == "ARG"] == [f"SPARK={locked_spark()}"]
    stages = {name for step in read.structure for name in re.findall(r" AS (\w+)$", step["value"])}
    bases = {image for image in read.parent_images if image not in stages}
    assert bases == {f"apache/spark:{locked_spark()}-scala2.13-java17-ubuntu", "python:3.11-slim-bookworm"}
    assert read.is_multistage
    (user,) = [step["value"] for step in read.structure if step["instruction"] == "USER"]
    assert int(user) > 0
    for step in read.structure:
        words = step["value"].split()
        if step["instruction"] == "COPY" and not words[0].startswith("--from="):
            assert [name for name in words[:-1] if not (ROOT / name).exists()] == []
        if step["instruction"] == "RUN":
            assert subprocess.run(["sh", "-n", "-c", step["value"]], check=False).returncode == 0
            for name in re.findall(r"python -m (mqreplay[\w.]+)", step["value"]):
                assert (ROOT / "lib" / f"{name.replace('.', '/')}.py").is_file()
    # What the wheel is built of, as tests/test_wheel.py builds it.
    copied = {name for step in read.structure if step["instruction"] == "COPY" for name in shlex.split(step["value"])}
    assert copied >= {"lib", "schemas", "conf", "data/sample", "jobs", "pyproject.toml", "setup.py", "MANIFEST.in"}
    command = shlex.split(re.findall(r"^#   docker run .* mqreplay:[\d.]+ (.*)$", read.content, re.MULTILINE)[0])
    assert parser().parse_args(command[1:]).command == "demo"


LEFT_OUT = re.compile(r"awk '(/\^\[\^ #\]/ .*?)' requirements/runtime\.txt")


def test_packages_beside_spark_are_all_that_is_locked_but_pyspark() -> None:
    locked = (ROOT / "requirements/runtime.txt").read_text()
    programs = {
        found.replace("$$", "$")
        for file in (EXAMPLES / "Dockerfile", ROOT / "Makefile")
        for found in LEFT_OUT.findall(file.read_text())
    }
    (program,) = programs  # the same in both
    kept = subprocess.run(["awk", program], input=locked, capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^([\w.-]+)==", locked, re.MULTILINE)
    assert re.findall(r"^([\w.-]+)==", kept, re.MULTILINE) == [name for name in names if name != "pyspark"]
    assert locked.count("--hash=") - kept.count("--hash=") == 1  # pyspark is published as source alone


def test_page_gives_spark_the_archive_that_make_builds() -> None:
    page = (ROOT / "docs" / "clusters.md").read_text()
    done = subprocess.run(["make", "-n", "environment"], cwd=ROOT, capture_output=True, text=True, check=True)
    (archive,) = re.findall(r"tar --create --gzip --file (\S+)", done.stdout)
    assert f"--archives {archive}#environment jobs/nightly.py" in page
    (workers, driver) = re.findall(r"export PYSPARK_PYTHON=(\S+) PYSPARK_DRIVER_PYTHON=(\S+)", page)[0]
    assert (workers, driver) == ("./environment/bin/python", ".venv/bin/python")


@pytest.mark.long  # installs all packages
def test_packages_of_the_dockerfile_are_installed_beside_spark(tmp_path: Path) -> None:
    """The image itself is not built: there may be no Docker here. Its steps for Python run in a folder for its root."""
    for name in ("lib", "schemas", "conf", "data", "requirements"):
        ignored = shutil.ignore_patterns("*.egg-info", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / "src" / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "src")
    spark, home = tmp_path / "opt" / "spark", tmp_path / "opt" / "mqreplay"
    (spark / "python").mkdir(parents=True)
    (spark / "python" / "pyspark").symlink_to(Path(pyspark.__file__).parent)
    release = f"Spark {locked_spark()} (git revision 0) built for Hadoop 3.4.2\nBuild flags: -Phive\n"
    (spark / "RELEASE").write_text(release)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    env["PATH"] = f"{home}/bin:{Path(sys.executable).parent}:{env['PATH']}"

    def run(command: str) -> str:
        words = ["sh", "-c", command.replace("/opt/", f"{tmp_path}/opt/")]
        done = subprocess.run(words, cwd=tmp_path / "src", env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
        return done.stdout

    _, *steps = [step["value"] for step in dockerfile(tmp_path).structure if step["instruction"] == "RUN"]
    for step in steps:  # without the packages of Debian, and without what Java does
        run(re.sub(r"\s*&& python -m mqreplay\.lake\.\w+", "", step))
    assert list(home.glob("lib/python*/site-packages/polars"))
    assert not list(home.glob("lib/python*/site-packages/pyspark"))
    found = run("python -c 'import mqreplay.cli, pyspark; print(mqreplay.__file__, pyspark.__file__)'").split()
    assert [Path(file).is_relative_to(folder) for file, folder in zip(found, (home, spark), strict=True)] == [
        True,
        True,
    ]
    assert "nightly" in run("mqreplay --help")


def test_all_examples_are_checked() -> None:
    ours = {*UNITS, "nightly_dag.py", "nightly-kubernetes.yaml", "Dockerfile"}
    ours |= {"prometheus-rules.yaml", "grafana-dashboard.json"}  # tests/notices/test_prometheus.py
    found = {path.name for path in EXAMPLES.iterdir() if not path.name.startswith("record")}
    assert found == ours
