"""Settings: a user's keys over the shipped ones, and every mistake named with its file and the nearest known key."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from mqreplay.errors import SettingsError
from mqreplay.places import conf_dir
from mqreplay.settings import Settings, load_settings


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_shipped_file_gives_every_key_with_its_reason() -> None:
    path = conf_dir() / "local.toml"
    text = path.read_text(encoding="utf-8")
    given = tomllib.loads(text)
    known = {
        field.name: {f.name for f in dataclasses.fields(getattr(Settings(), field.name))}
        for field in dataclasses.fields(Settings)
        if field.name != "source"
    }
    assert {name: set(keys) for name, keys in given.items()} == known
    without = [line for line in text.splitlines() if re.match(r"[a-z_]+ *=", line) and "#" not in line]
    assert without == []


def test_shipped_file_and_defaults_of_the_code_agree() -> None:
    assert dataclasses.replace(load_settings(), source=()) == Settings()


@pytest.mark.parametrize("name", ["local.toml", "cluster.toml", "sample.toml"])
def test_shipped_files_load(name: str) -> None:
    assert load_settings(str(conf_dir() / name)).source[-1].endswith(name)


def test_own_keys_lie_over_the_shipped(tmp_path: Path) -> None:
    path = written(tmp_path, '[replay]\nroute_slack_ms = 5\n[spark.extra]\n"spark.x" = "y"\n')
    settings = load_settings(path)
    assert settings.replay == dataclasses.replace(load_settings().replay, route_slack_ms=5)
    assert settings.spark.extra == {"spark.x": "y"}
    assert settings.source[-1] == path


def test_a_share_may_be_a_whole_number(tmp_path: Path) -> None:
    assert load_settings(written(tmp_path, "[ingest]\nrefused_share = 1\n")).ingest.refused_share == 1


def test_digest_follows_what_decides_over_rows(tmp_path: Path) -> None:
    shipped = load_settings().digest()
    assert load_settings(written(tmp_path, '[spark]\ndriver_memory = "9g"\n')).digest() == shipped
    assert load_settings(written(tmp_path, "[replay]\nroute_slack_ms = 5\n")).digest() != shipped
    assert load_settings(str(conf_dir() / "sample.toml")).digest() != shipped


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[reply]\n", "did you mean replay?"),
        ("[replay]\nroute_slak_ms = 5\n", "did you mean route_slack_ms?"),
        ('[replay]\nroute_slack_ms = "5"\n', "route_slack_ms must be int"),
        ("[replay]\nroute_slack_ms = true\n", "route_slack_ms must be int"),
        ("[replay]\nroute_slack_ms = -1\n", "must not be negative"),
        ("[spark]\ndriver_memory = 3\n", "driver_memory must be str"),
        ("[ingest]\nrefused_share = 1.5\n", "refused_share must be 0 to 1"),
        ("[ingest]\nrefused_share = true\n", "refused_share must be float"),
        ("[ingest]\nfollow_links = 1\n", "follow_links must be bool"),
        ("replay = 3\n", "is no section"),
        ('[strategies.groups."g"]\nqueue = 1\n', "did you mean queues?"),
        ('[strategies.groups."g"]\nqueues = ["T/b/0"]\n', "queues must be a table"),
        ('[strategies.groups."g".queues]\n"c*" = ["T-b-0"]\n', "topic/broker_name/queue_id"),
        ('[strategies.groups."g"]\nvirtual_node_cnt = 0\n', "a number above 0"),
        ("[strategies.groups]\ng = 1\n", "must be a table"),
        ("[replay\n", "not readable as TOML"),
    ],
)
def test_mistakes_are_named(text: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SettingsError) as error:
        load_settings(path)
    assert path in str(error.value)
    assert said in str(error.value)


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        load_settings(str(tmp_path / "none.toml"))
