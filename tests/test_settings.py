"""Settings: a user's keys over the shipped ones, and every mistake named with its file and the nearest known key."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from pathlib import Path

import pytest

from mqreplay.machine.places import conf_dir
from mqreplay.settings import Settings, load_settings
from mqreplay.settings.sections import record_of
from mqreplay.words.errors import SettingsError


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_shipped_file_has_every_key() -> None:
    path = conf_dir() / "local.toml"
    shipped = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {
        field.name: {f.name for f in dataclasses.fields(getattr(Settings(), field.name))}
        for field in dataclasses.fields(Settings)
        if field.name != "source"
    }
    assert {name: set(keys) for name, keys in shipped.items()} == known


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
    ("text", "message"),
    [
        ("[reply]\n", "did you mean replay?"),
        ("[replay]\nroute_slak_ms = 5\n", "did you mean route_slack_ms?"),
        ('[replay]\nroute_slack_ms = "5"\n', "route_slack_ms must be int"),
        ("[replay]\nroute_slack_ms = true\n", "route_slack_ms must be int"),
        ("[replay]\nroute_slack_ms = -1\n", "route_slack_ms must be 0 to 86400000, is -1"),
        ("[spark]\ndriver_memory = 3\n", "driver_memory must be str"),
        ("[ingest]\nrefused_share = 1.5\n", "refused_share must be 0 to 1"),
        ("[ingest]\nrefused_share = true\n", "refused_share must be float"),
        ("[ingest]\nfollow_links = 1\n", "follow_links must be bool"),
        ("replay = 3\n", "is not a section"),
        ('[strategies.groups."g"]\nqueue = 1\n', "did you mean queues?"),
        ('[strategies.groups."g"]\nqueues = ["T/b/0"]\n', "queues must be a table"),
        ('[strategies.groups."g".queues]\n"c*" = ["T-b-0"]\n', "topic/broker_name/queue_id"),
        ('[strategies.groups."g"]\nvirtual_node_cnt = 0\n', "a number above 0"),
        ("[strategies.groups]\ng = 1\n", "must be a table"),
        ("[replay\n", "not readable as TOML"),
        ("[local]\nprocesses = -1\n", "[local] processes must be 0 to 10000, is -1"),
        ("[strategies]\nvirtual_node_cnt = 0\n", "[strategies] virtual_node_cnt must be 1 to 10000, is 0"),
        ('[strategies.groups."g"]\nvirtual_node_cnt = 10001\n', "a number above 0, 10000 at most, not 10001"),
        ("[ingest]\nsnapshot_mb = 99999999999999999999\n", "snapshot_mb must be 1 to 256, is 99999999999999999999"),
        ("[ingest]\nrefused_share = nan\n", "refused_share must be 0 to 1, is nan"),
        ("[replay]\nstatus_window_s = 0\n", "status_window_s must be 1 to 86400, is 0"),
        ("[findings]\nidle_s = 604801\n", "idle_s must be 0 to 604800, is 604801"),
        ("[spark]\nextra = {b = [1]}\n", "[spark.extra] b must be text, a number, true or false, not a value of type"),
        (
            '[spark.extra]\nspark.x = "y"\n',
            "[spark.extra] spark must be text, a number, true or false, not a value of type",
        ),
        ("[spark.extra]\nx = inf\n", "[spark.extra] x must be text, a number, true or false, not a value"),
        (f"[ingest]\nquarantine_rows = {'9' * 5000}\n", "quarantine_rows has a number with too many digits"),
        (f"[ingest]\nquarantine_rows = 0x{'f' * 5000}\n", "is a number with too many digits"),
        (f"[spark]\nmaster = 'x'\na = {'[' * 100_000}\n", "a is nested too deeply"),
        (f"[spark]\nmaster.{'a.' * 5000}a = 1\n", "[spark] master must be str, not {'a'"),
        (f"[spark]\n{'a' * 300} = 1\n", f"has no key {'a' * 77}...; there are"),
    ],
    ids=lambda text: str(text)[:40],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SettingsError) as error:
        load_settings(path)
    assert path in str(error.value)
    assert message in str(error.value)
    assert len(str(error.value)) < len(path) + 400


def test_every_number_has_bounds() -> None:
    for section in dataclasses.fields(Settings):
        for key, value in vars(getattr(Settings(), section.name)).items() if section.name != "source" else ():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                record = record_of(getattr(Settings(), section.name), key)
                assert record.least <= value <= record.most, key
                assert record.most > record.least, key


def test_extra_settings_are_written_as_spark_writes_them(tmp_path: Path) -> None:
    path = written(tmp_path, '[spark.extra]\na = true\nb = 5\nc = 0.5\nd = "x"\n')
    assert load_settings(path).spark.extra == {"a": "true", "b": "5", "c": "0.5", "d": "x"}


def test_only_regular_files_of_a_megabyte_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (str(tmp_path / "fifo"), "/dev/zero", str(tmp_path)):
        with pytest.raises(SettingsError, match=f"settings file {path} is not a regular file"):
            load_settings(path)
    assert load_settings(written(tmp_path, "#" * 1_000_000)) == dataclasses.replace(
        load_settings(), source=(str(conf_dir() / "local.toml"), str(tmp_path / "mine.toml"))
    )
    with pytest.raises(SettingsError, match=r"mine\.toml is larger than 1 MB"):
        load_settings(written(tmp_path, "#" * 1_000_001))
    with pytest.raises(SettingsError, match="cannot be read: File name too long"):
        load_settings("x" * 300)


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        load_settings(str(tmp_path / "none.toml"))
