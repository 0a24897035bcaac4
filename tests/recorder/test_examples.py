"""The examples in conf/examples start recorders that run: each is read as its own program reads it."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mqreplay.cli.command_line import parser
from mqreplay.recorder.network.options import record_options
from tests_shared import ROOT

EXAMPLES = ROOT / "conf/examples"
MQREPLAY = "/opt/mqreplay/.venv/bin/mqreplay"


def unit() -> configparser.ConfigParser:
    read = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string((EXAMPLES / "record.service").read_text())
    return read


def test_systemd_unit(tmp_path: Path) -> None:
    service = unit()["Service"]
    name, _, servers = service["Environment"].partition("=")
    command = shlex.split(service["ExecStart"].replace(f"${{{name}}}", shlex.quote(servers)))
    assert_records(command)
    assert service["StateDirectory"] in "/var/lib/mqreplay/recording"
    assert "143" in service["SuccessExitStatus"]
    if shutil.which("systemd-analyze") is not None:
        (tmp_path / "mqreplay-record.service").write_text(
            (EXAMPLES / "record.service")
            .read_text()
            .replace(MQREPLAY, "/bin/true")
            .replace("User=mqreplay", "User=root")
        )
        verified = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(tmp_path / "mqreplay-record.service")],
            capture_output=True,
            text=True,
            check=False,
        )
        ours = [line for line in verified.stderr.splitlines() if "mqreplay-record.service" in line]
        assert ours == [], verified.stderr


def test_command_on_a_brokers_host_in_the_unit() -> None:
    [command] = re.findall(r"^#   (mqreplay record --store .*)$", (EXAMPLES / "record.service").read_text(), re.M)
    args = parser().parse_args(shlex.split(command)[1:])
    assert (args.store, args.name_servers) == (["/home/rocketmq/store"], None)


def test_cron_table() -> None:
    lines = (EXAMPLES / "record.cron").read_text().splitlines()
    settings = dict(re.findall(r"^(\w+)=(.*)$", "\n".join(lines), re.M))
    jobs = [line.split(maxsplit=6) for line in lines if re.match(r"[0-9*]", line)]
    assert settings["MAILTO"] == "root"
    assert [job[5] for job in jobs] == ["mqreplay", "mqreplay"]
    for *fields, user, command in jobs:
        assert user == "mqreplay"
        for field, most in zip(fields, (59, 23, 31, 12, 7), strict=True):
            assert field == "*" or 0 <= int(field) <= most
        assert "%" not in command
        script = "\n".join(f"{name}={value}" for name, value in settings.items())
        shown = subprocess.run(
            ["/bin/sh", "-c", f"{script}\nset -- {command.split(' 2>')[0].split(' >')[0]}\nprintf '%s\\n' \"$@\""],
            capture_output=True,
            text=True,
            check=True,
        )
        words = shown.stdout.splitlines()
        assert words[0] == MQREPLAY
        if words[1] == "record":
            assert_records(words)
        else:
            assert parser().parse_args(words[1:]).recordings == [settings["RECORDING"]]


@pytest.mark.parametrize("status", [0, 1, 4])
def test_cron_mails_what_needs_somebody(tmp_path: Path, status: int) -> None:
    """cron mails all that a line prints."""
    program = tmp_path / "mqreplay"
    program.write_text(f"#!/bin/sh\necho the verdict\necho a warning >&2\nexit {status}\n")
    program.chmod(0o755)
    text = (
        (EXAMPLES / "record.cron")
        .read_text()
        .replace(MQREPLAY, str(program))
        .replace("/var/log/mqreplay", str(tmp_path))
    )
    settings = "\n".join(re.findall(r"^\w+=.*$", text, re.M))
    (night,) = re.findall(r"^[0-9* ]+ mqreplay (.* nightly .*)$", text, re.M)
    for _ in range(2):  # the log of the run before is not mailed again
        done = subprocess.run(["/bin/sh", "-c", f"{settings}\n{night}"], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("the verdict\na warning\n" if status else "", "")


def test_kubernetes_manifest() -> None:
    claim, deployment = yaml.safe_load_all((EXAMPLES / "record-kubernetes.yaml").read_text())
    assert (claim["kind"], deployment["kind"]) == ("PersistentVolumeClaim", "Deployment")
    spec: dict[str, Any] = deployment["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["type"] == "Recreate"
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
    assert volumes["recording"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    values = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    words = [re.sub(r"\$\((\w+)\)", lambda name: values[name[1]], word) for word in container["args"]]
    assert_records([*container["command"], *words])


def assert_records(command: list[str]) -> None:
    args = parser().parse_args(command[1:])
    assert args.command == "record"
    options = record_options(args.name_servers, lasting=args.lasting, max_disk=args.max_disk)
    assert len(options.name_servers) == 2
    assert options.max_bytes


def test_all_examples_are_checked() -> None:
    ours = {"record.service", "record.cron", "record-kubernetes.yaml"}
    found = {path.name for path in EXAMPLES.iterdir() if path.name.startswith("record")}
    assert found == ours
