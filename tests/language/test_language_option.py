"""Which language a command speaks: that of the option, else of the environment, else of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqreplay.cli.command_line import main

CHINESE, ENGLISH = "严重", "critical"


@pytest.mark.parametrize(
    ("option", "environment", "setting", "expected"),
    [
        (None, None, None, ENGLISH),
        (None, None, "zh", CHINESE),
        (None, "zh", None, CHINESE),
        (None, "en", "zh", ENGLISH),
        (None, "", "zh", CHINESE),
        ("zh", None, None, CHINESE),
        ("en", "zh", "zh", ENGLISH),
    ],
)
def test_option_environment_and_setting(
    night: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    option: str | None,
    environment: str | None,
    setting: str | None,
    expected: str,
) -> None:
    monkeypatch.delenv("MQREPLAY_LANG", raising=False)
    if environment is not None:
        monkeypatch.setenv("MQREPLAY_LANG", environment)
    conf = tmp_path / "own.toml"
    conf.write_text("" if setting is None else f'[report]\nlanguage = "{setting}"\n', encoding="utf-8")
    options = [] if option is None else ["--lang", option]
    shown = ["findings", "--severity", "critical", "--warehouse", night.root, "--conf", str(conf), *options]
    assert main(shown) == 0
    assert capsys.readouterr().out.startswith(f"{expected} ")


def test_an_unknown_language_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = tmp_path / "own.toml"
    conf.write_text('[report]\nlanguage = "xx"\n', encoding="utf-8")
    assert main(["report", "--warehouse", str(tmp_path), "--conf", str(conf)]) == 2
    assert "[report] language must be en or zh, not 'xx'" in capsys.readouterr().err
    monkeypatch.setenv("MQREPLAY_LANG", "xx")
    with pytest.raises(SystemExit, match="2"):
        main(["findings", "--warehouse", str(tmp_path)])
    assert "--lang: 'xx' is not en or zh" in capsys.readouterr().err
