"""Settings: what conf/local.toml says, and what a user's own file says over it.

Each section is a dataclass and each key a field; the shipped file gives every key with its reason. A key nobody knows,
or of the wrong type, is an error that names the file and the nearest known key.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from mqreplay.errors import SettingsError
from mqreplay.places import conf_dir


@dataclass(frozen=True)
class SparkSettings:
    """How the session is built. An empty ``master`` leaves it to spark-submit, or takes local[*]."""

    master: str = ""
    driver_memory: str = "3g"
    shuffle_partitions: int = 2
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IngestSettings:
    """How much of a recording is taken on trust, and how much of what is refused is kept."""

    quarantine_rows: int = 1000
    refused_share: float = 0.5
    follow_links: bool = False
    snapshot_mb: int = 256
    forget_missing_files: bool = True

    @property
    def snapshot_bytes(self) -> int:
        """Bytes of the largest snapshot file that is read."""
        return self.snapshot_mb * 1024 * 1024


@dataclass(frozen=True)
class ReplaySettings:
    """Bounds of what counts as evidence. Milliseconds, seconds and minutes as the names say."""

    lookback_minutes: int = 60
    route_slack_ms: int = 1000
    poll_slack_ms: int = 0
    reset_reach_s: int = 60
    status_window_s: int = 300


@dataclass(frozen=True)
class FindingSettings:
    """When something observed becomes something to tell."""

    same_cause_gap_s: int = 120
    slave_pull_warn_s: int = 10
    rebalance_interval_s: int = 20
    heartbeat_interval_s: int = 30
    dispute_s: int = 45
    idle_s: int = 40
    uneven_queues: int = 2
    silent_s: int = 90
    lost_s: int = 45
    pull_gap_s: int = 35
    stuck_s: int = 60
    down_s: int = 10
    unseen_down_s: int = 30
    failed_over_s: int = 60
    retry_warn_messages: int = 5
    retry_gap_s: int = 7200
    clock_skew_s: int = 60
    stale_slave_s: int = 150


@dataclass(frozen=True)
class QualitySettings:
    """How expectations run. Rows above ``pandas_rows`` are checked on Spark instead of in memory."""

    pandas_rows: int = 200_000


@dataclass(frozen=True)
class StrategySettings:
    """What clients made their allocation strategies with; ``groups``: consumer group -> keys of GROUP_KEYS."""

    virtual_node_cnt: int = 10
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)


# Patterns of client ids or broker names are the shell's; a queue is written topic/broker_name/queue_id.
GROUP_KEYS: dict[str, str] = {
    "queues": "a table: pattern of client ids = list of queues, topic/broker_name/queue_id",
    "machine_rooms": "a list of rooms",
    "client_rooms": "a table: pattern of client ids = room",
    "broker_rooms": "a table: pattern of broker names = room",
    "virtual_node_cnt": "a number above 0",
}
_QUEUE = re.compile(r".+/[^/]+/\d+")


@dataclass(frozen=True)
class Settings:
    """All of them; ``source`` names the files they came from."""

    spark: SparkSettings = field(default_factory=SparkSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    findings: FindingSettings = field(default_factory=FindingSettings)
    quality: QualitySettings = field(default_factory=QualitySettings)
    strategies: StrategySettings = field(default_factory=StrategySettings)
    source: tuple[str, ...] = ()

    def digest(self) -> str:
        """Digest of what decides over rows: the replay and the findings. The same digest gives the same tables."""
        decides = {name: dataclasses.asdict(getattr(self, name)) for name in ("replay", "findings", "strategies")}
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]


def load_settings(conf: str | None = None) -> Settings:
    """The shipped settings, with the keys of the file ``conf`` over them. Raises SettingsError."""
    shipped = conf_dir() / "local.toml"
    sections = _read(shipped)
    source = [str(shipped)]
    if conf is not None:
        for name, keys in _read(Path(conf)).items():
            sections.setdefault(name, {}).update(keys)
        source.append(conf)
    return Settings(**{name: _section(name, keys, source[-1]) for name, keys in sections.items()}, source=tuple(source))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        with path.open("rb") as stream:
            given = tomllib.load(stream)
    except FileNotFoundError:
        raise SettingsError(f"settings file {path} does not exist") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"settings file {path} is not readable as TOML: {error}") from None
    known = [f.name for f in dataclasses.fields(Settings) if f.name != "source"]
    for name, keys in given.items():
        if name not in known or not isinstance(keys, dict):
            raise SettingsError(f"{path}: [{name}] is no section of settings{_near(name, known)}")
    return given


def _section(name: str, keys: dict[str, Any], path: str) -> Any:
    kind = get_type_hints(Settings)[name]
    types = get_type_hints(kind)
    for key, value in keys.items():
        if key not in types:
            raise SettingsError(f"{path}: [{name}] has no key {key}{_near(key, list(types))}")
        expected = dict if str(types[key]).startswith("dict") else types[key]
        taken = (int, float) if expected is float else expected
        if not isinstance(value, taken) or (isinstance(value, bool) and expected is not bool):
            raise SettingsError(f"{path}: [{name}] {key} must be {expected.__name__}, not {value!r}")
        if isinstance(value, int) and not isinstance(value, bool) and value < 0:
            raise SettingsError(f"{path}: [{name}] {key} must not be negative, is {value}")
        if key.endswith("_share") and not 0 <= value <= 1:
            raise SettingsError(f"{path}: [{name}] {key} must be 0 to 1, is {value}")
    if name == "strategies":
        _check_groups(keys.get("groups", {}), path)
    return kind(**keys)


def _check_groups(groups: dict[str, Any], path: str) -> None:
    for group, told in groups.items():
        where = f'{path}: [strategies.groups."{group}"]'
        if not isinstance(told, dict):
            raise SettingsError(f"{where} must be a table with some of {', '.join(GROUP_KEYS)}")
        for key, value in told.items():
            if key not in GROUP_KEYS:
                raise SettingsError(f"{where} has no key {key}{_near(key, list(GROUP_KEYS))}")
            if not _fits(key, value):
                raise SettingsError(f"{where} {key} must be {GROUP_KEYS[key]}, not {value!r}")


def _fits(key: str, value: Any) -> bool:
    if key == "virtual_node_cnt":
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if key == "machine_rooms":
        return _texts(value)
    if not isinstance(value, dict):
        return False
    if key == "queues":
        return all(_texts(each) and all(_QUEUE.fullmatch(queue) for queue in each) for each in value.values())
    return _texts(list(value.values()))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _near(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
