"""No error line, log or name of a channel shows a secret that a user wrote in a URI or in settings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqreplay.machine.crash import crash_line, write_log
from mqreplay.night.failures import Failure
from mqreplay.notices.channel import AlertmanagerChannel, channels_of
from mqreplay.settings import load_settings
from mqreplay.words.errors import InputError, InputErrors, StoreUnavailable
from mqreplay.words.printable import without_secrets

SECRET = "MARKED/s3cret+key"
URIS = [
    f"s3://AKIA:{SECRET}@bucket/rec",
    f"https://user:{SECRET}@host/rec",
    f"https://{SECRET.replace('/', '')}@host/rec",
    f"abfss://night@account/rec?sv=1&sig={SECRET}",
    f"https://host/rec?X-Amz-Signature={SECRET}&x=1",
    f"s3a://{SECRET.replace('/', '')}@bucket/rec",
    f"gs://{SECRET.replace('/', '')}@bucket/rec",
    f"https://host/rec#{SECRET}",
    f"https://host/rec#access_token={SECRET}",
    f"s3://AKIA:a#{SECRET}@bucket/rec",
    f"mailto:u:{SECRET}@host",
]
PLAIN = ["hdfs://namenode:9000/a@b", "abfss://night@account.dfs.core.windows.net/x", "s3://bucket/x", "spark://m:7077"]
PLAIN += ["wasbs://night@account/x", "10.0.0.1@4711#5:6", "12:30:05 a@b", "broker-a:10911 of g@t"]


def _of_settings(text: str) -> Callable[[Path], str]:
    def line(folder: Path) -> str:
        (folder / "c.toml").write_text(text)
        with pytest.raises(InputError) as caught:
            load_settings(str(folder / "c.toml"))
        return str(caught.value)

    return line


def _channel_error(address: str) -> str:
    with pytest.raises(InputError) as caught:
        channels_of([address], [])
    return str(caught.value)


PATHS: dict[str, Callable[[Path], str]] = {
    "type of urls": _of_settings(f'[notify]\nurls = ["slack://{SECRET}/x", 5]\n'),
    "type of file": _of_settings(f'[notify]\nfile = ["{SECRET}"]\n'),
    "severity": _of_settings(f'[notify]\nseverity = "{SECRET}"\n'),
    "Spark setting": _of_settings(f'[spark.extra]\n"spark.hadoop.fs.s3a.secret.key" = ["{SECRET}"]\n'),
    "unknown channel": lambda _: _channel_error(f"nothing://{SECRET}"),
    "Alertmanager": lambda _: AlertmanagerChannel(f"alertmanager://u:MARKED@host:9093/{SECRET}").name,
    "password with a slash": lambda _: _channel_error(f"alertmanager://u:{SECRET}@host:9093"),
}


@pytest.mark.parametrize("path", PATHS)
def test_settings_and_channels_show_no_secret(path: str, tmp_path: Path) -> None:
    line = PATHS[path](tmp_path)
    assert line
    assert "MARKED" not in line


@pytest.mark.parametrize("uri", URIS)
def test_no_error_shows_the_secret_of_a_uri(uri: str, tmp_path: Path) -> None:
    text = f"{uri} refuses the access"
    several = InputErrors([text, text])
    errors: list[Exception] = [InputError(text), StoreUnavailable(text), several]
    failures = [Failure("recording", "r", error).reason for error in (*errors, OSError(text))]
    lines = [*map(str, errors), *several.messages, *failures, crash_line(OSError(text), [], str(tmp_path))]
    for line in lines:
        assert "refuses the access" in line
        assert "MARKED" not in line


def test_crash_log_shows_no_address_of_a_channel(tmp_path: Path) -> None:
    slack = f"slack://{SECRET}/x"
    arguments = ["nightly", URIS[0], "--notify", slack, f"--notify=dingtalk://{SECRET}", "--warehouse", "w"]
    log = write_log(OSError(f"{slack} {URIS[1]}"), arguments, str(tmp_path))
    assert log is not None
    text = log.read_text()
    assert "MARKED" not in text
    assert "--notify slack://... --notify=dingtalk://... --warehouse w" in text


def test_usage_error_shows_no_secret() -> None:
    command = [sys.executable, "-m", "mqreplay", "findings", "--warehouse", "w", URIS[0]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "bucket" in done.stderr
    assert "MARKED" not in done.stderr


@pytest.mark.parametrize("uri", PLAIN)
def test_uri_without_secret_stays(uri: str) -> None:
    assert without_secrets(uri) == uri
