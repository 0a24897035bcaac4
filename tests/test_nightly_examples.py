"""The examples in conf/examples that run a night: their own programs or schemas accept them, and so do our commands."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml
from dockerfile_parse import DockerfileParser

from mqreplay.cli import job
from mqreplay.cli.command_line import parser
from tests_shared import ROOT

EXAMPLES = ROOT / "conf/examples"
MQREPLAY = "/opt/mqreplay/.venv/bin/mqreplay"
UNITS = ("nightly.service", "nightly.timer")

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string((EXAMPLES / name).read_text())
    return read


def test_service_reads_what_the_recorder_writes() -> None:
    service = unit("nightly.service")["Service"]
    program, *words = shlex.split(service["ExecStart"].replace("${STATE_DIRECTORY}", "/var/lib/mqreplay"))
    args = parser().parse_args(words)
    assert (program, args.command) == (MQREPLAY, "nightly")
    assert args.recordings == ["/var/lib/mqreplay/recording"]
    recorder = (EXAMPLES / "record.service").read_text()
    for line in ("--out ${STATE_DIRECTORY}/recording", "StateDirectory=mqreplay", "User=mqreplay"):
        assert line in recorder
    assert (service["StateDirectory"], service["User"]) == ("mqreplay", "mqreplay")


def test_timer_starts_the_service() -> None:
    head = (EXAMPLES / "nightly.service").read_text()
    assert f"/etc/systemd/system/{unit('nightly.timer')['Timer']['Unit']}" in head


@needs_systemd
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name in UNITS:
        text = (EXAMPLES / name).read_text().replace(MQREPLAY, "/bin/true").replace("User=mqreplay", "User=root")
        (tmp_path / f"mqreplay-{name}").write_text(text)
    files = [str(tmp_path / f"mqreplay-{name}") for name in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "mqreplay-nightly" in line] == []


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
    claim, application = yaml.safe_load_all((EXAMPLES / "nightly-kubernetes.yaml").read_text())
    assert (application["apiVersion"], application["kind"]) == ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    spec = application["spec"]
    schema = json.loads((ROOT / "tests/data/spark-application.schema.json").read_text())
    jsonschema.validate(spec, schema)
    with pytest.raises(jsonschema.ValidationError):  # the schema refuses a wrong name
        jsonschema.validate({**spec, "drivers": {}}, schema)
    volumes = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"]}
    recorder, _ = yaml.safe_load_all((EXAMPLES / "record-kubernetes.yaml").read_text())
    assert volumes == {"recording": recorder["metadata"]["name"], "warehouse": claim["metadata"]["name"]}
    folders = {mount["name"]: mount["mountPath"] for mount in spec["driver"]["volumeMounts"]}
    assert spec["executor"]["volumeMounts"] == spec["driver"]["volumeMounts"]
    # The job gets these arguments from spark-submit.
    given: list[list[str]] = []
    monkeypatch.setattr(job, "command_line", lambda words, own_process: given.append(words) or 0)
    script = Path(spec["mainApplicationFile"].removeprefix("local:///opt/mqreplay/"))
    assert (ROOT / script).is_file()
    assert job.main(script.stem, spec["arguments"]) == 0
    args = parser().parse_args(given[0])
    assert args.recordings[0].startswith(f"{folders['recording']}/")
    assert args.warehouse.startswith(f"{folders['warehouse']}/")
    assert f"\npyspark=={spec['sparkVersion']} " in (ROOT / "requirements/runtime.txt").read_text()


def test_dockerfile(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "Dockerfile", tmp_path)
    read = DockerfileParser(str(tmp_path))
    known = {"FROM", "RUN", "ENV", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD", "COMMENT"}
    assert {step["instruction"] for step in read.structure} <= known
    stages = {name for step in read.structure for name in re.findall(r" AS (\w+)$", step["value"])}
    bases = {image for image in read.parent_images if image not in stages}
    assert bases == {"apache/spark:4.1.0-scala2.13-java17-ubuntu", "python:3.11-slim-bookworm"}
    assert read.is_multistage
    for step in read.structure:
        words = shlex.split(step["value"])
        if step["instruction"] == "COPY" and not words[0].startswith("--from="):
            assert [name for name in words[:-1] if not (ROOT / name).exists()] == []
        if step["instruction"] == "RUN":
            assert subprocess.run(["sh", "-n", "-c", step["value"]], check=False).returncode == 0
            for name in re.findall(r"python -m (mqreplay[\w.]+)", step["value"]):
                assert (ROOT / "lib" / f"{name.replace('.', '/')}.py").is_file()
    # What the wheel is built of, as tests/test_wheel.py builds it.
    copied = {name for step in read.structure if step["instruction"] == "COPY" for name in shlex.split(step["value"])}
    assert copied >= {"lib", "schemas", "conf", "data/sample", "jobs", "pyproject.toml", "setup.py", "MANIFEST.in"}
    command = shlex.split(re.findall(r"^#   docker run .* mqreplay:0\.1\.0 (.*)$", read.content, re.MULTILINE)[0])
    assert parser().parse_args(command[1:]).command == "demo"


def test_all_examples_are_checked() -> None:
    ours = {*UNITS, "nightly_dag.py", "nightly-kubernetes.yaml", "Dockerfile"}
    found = {path.name for path in EXAMPLES.iterdir() if not path.name.startswith("record")}
    assert found == ours
