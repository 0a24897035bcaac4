"""Settings: those of conf/local.toml, overridden by a user's own file.

sections.py has a dataclass for each section. A key that is unknown, of the wrong type or out of bounds is an
error that names the file and the key, or the nearest known key.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import re
import reprlib
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from mqreplay.language.language import LANGUAGES
from mqreplay.machine.places import conf_dir
from mqreplay.settings.sections import (
    GROUP_KEYS,
    GROUP_SEVERITIES,
    GROUP_THRESHOLDS,
    FindingSettings,
    IngestSettings,
    LocalSettings,
    MaintainSettings,
    NightlySettings,
    NotifySettings,
    ReplaySettings,
    ReportSettings,
    SparkSettings,
    StorageSettings,
    StrategySettings,
    WatchSettings,
    record_of,
)
from mqreplay.words.errors import SettingsError
from mqreplay.words.severity import SEVERITIES, WORST

__all__ = [
    "FindingSettings",
    "IngestSettings",
    "LocalSettings",
    "MaintainSettings",
    "NightlySettings",
    "NotifySettings",
    "ReplaySettings",
    "ReportSettings",
    "Settings",
    "SparkSettings",
    "StorageSettings",
    "StrategySettings",
    "load_settings",
]


_QUEUE = re.compile(r".+/[^/]+/\d+")

LARGEST_SETTINGS_FILE = 1_000_000  # of a settings file
LONGEST_KEY = 80  # characters of a key that a message shows
SECRET_SECTIONS = ("notify", "spark.extra")  # an address, or a key of a store
LARGEST_EXTRA = 2**63  # Spark's own numbers are a long or a double


@dataclass(frozen=True)
class Settings:
    """All sections; ``source`` names the files that were read."""

    spark: SparkSettings = field(default_factory=SparkSettings)
    local: LocalSettings = field(default_factory=LocalSettings)
    nightly: NightlySettings = field(default_factory=NightlySettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    findings: FindingSettings = field(default_factory=FindingSettings)
    report: ReportSettings = field(default_factory=ReportSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    strategies: StrategySettings = field(default_factory=StrategySettings)
    maintain: MaintainSettings = field(default_factory=MaintainSettings)
    source: tuple[str, ...] = ()

    def in_language(self, lang: str | None) -> Settings:
        """Return the settings with another language of the reports; with their own if ``lang`` is None."""
        if lang is None:
            return self
        return dataclasses.replace(self, report=dataclasses.replace(self.report, language=lang))

    def digest(self) -> str:
        """Return the digest of the settings that change rows. Equal digests give equal tables."""
        deciding = {name: dataclasses.asdict(getattr(self, name)) for name in ("replay", "findings", "strategies")}
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]


def load_settings(conf: str | None = None) -> Settings:
    """Return the shipped settings, overridden by the keys of the file ``conf``. Raise SettingsError."""
    shipped = conf_dir() / "local.toml"
    sections = _read(shipped)
    source = [str(shipped)]
    if conf is not None:
        for name, keys in _read(Path(conf)).items():
            sections.setdefault(name, {}).update(keys)
        source.append(conf)
    return Settings(**{name: _section(name, keys, source[-1]) for name, keys in sections.items()}, source=tuple(source))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    text = _text(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"settings file {path} is not readable as TOML: {error}") from None
    except ValueError:  # Python converts no more digits; the parser does not say where they are
        key = _key_with_most(text, lambda line: max(map(len, re.findall(r"[\d_]+", line)), default=0))
        raise SettingsError(f"{path}: {key} has a number with too many digits") from None
    except RecursionError:
        key = _key_with_most(text, lambda line: line.count("[") + line.count("{"))
        raise SettingsError(f"{path}: {key} is nested too deeply") from None
    known = [f.name for f in dataclasses.fields(Settings) if f.name != "source"]
    for name, keys in found.items():
        if name not in known or not isinstance(keys, dict):
            raise SettingsError(f"{path}: [{_cut(name)}] is not a section of the settings{_near(name, known)}")
    return found


def _text(path: Path) -> str:
    """Return the text of a settings file. A pipe or a device may never end, so only regular files are read."""
    try:
        if not path.exists():
            raise SettingsError(f"settings file {path} does not exist")
        if not path.is_file():
            raise SettingsError(f"settings file {path} is not a regular file")
        with path.open("rb") as stream:
            data = stream.read(LARGEST_SETTINGS_FILE + 1)
    except OSError as error:
        raise SettingsError(f"settings file {path} cannot be read: {error.strerror or error}") from None
    if len(data) > LARGEST_SETTINGS_FILE:
        raise SettingsError(f"settings file {path} is larger than {LARGEST_SETTINGS_FILE // 1_000_000} MB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"settings file {path} is not readable as TOML: {error}") from None


def _key_with_most(text: str, measure: Callable[[str], int]) -> str:
    """Return the key on the first line for which ``measure`` is the largest."""
    return _cut(max(text.splitlines(), key=measure, default="").partition("=")[0].strip())


def _section(name: str, keys: dict[str, Any], path: str) -> Any:
    kind = get_type_hints(Settings)[name]
    types = get_type_hints(kind)
    for key, value in keys.items():
        if key not in types:
            raise SettingsError(f"{path}: [{name}] has no key {_cut(key)}{_near(key, list(types))}")
        expected = get_origin(types[key]) or types[key]
        taken = (int, float) if expected is float else expected
        if not isinstance(value, taken) or (isinstance(value, bool) and expected is not bool):
            raise SettingsError(f"{path}: [{name}] {key} must be {expected.__name__}, not {_shown(value, name)}")
        if expected is list and not _texts(value):
            raise SettingsError(f"{path}: [{name}] {key} must be a list of texts, not {_shown(value, name)}")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            record = record_of(kind, key)
            if not record.least <= value <= record.most:
                raise SettingsError(
                    f"{path}: [{name}] {key} must be {record.least} to {record.most}, is {_shown(value)}"
                )
    if name == "notify" and keys.get("severity", WORST) not in SEVERITIES:
        raise SettingsError(
            f"{path}: [notify] severity must be {', '.join(SEVERITIES)}, not {_shown(keys['severity'], name)}"
        )
    if name == "report" and keys.get("language", LANGUAGES[0]) not in LANGUAGES:
        raise SettingsError(
            f"{path}: [report] language must be {' or '.join(LANGUAGES)}, not {_shown(keys['language'])}"
        )
    if name == "strategies":
        _check_groups(keys.get("groups", {}), path)
    if name == "findings":
        _check_limits(keys.get("groups", {}), path)
    if name == "spark" and "extra" in keys:
        keys = keys | {"extra": {each: _extra(each, value, path) for each, value in keys["extra"].items()}}
    return kind(**keys)


def _extra(name: str, value: Any, path: str) -> str:
    """Return the value of a Spark setting as Spark writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) or (isinstance(value, (int, float)) and abs(value) < LARGEST_EXTRA):
        return str(value)
    raise SettingsError(
        f"{path}: [spark.extra] {_cut(name)} must be text, a number, true or false, "
        f"not {_shown(value, 'spark.extra')}; "
        'a setting is written "spark.x" = "y", with its name in quotes'
    )


def _keys_of_groups(
    groups: dict[str, Any], section: str, known: list[str], path: str
) -> Iterator[tuple[str, str, Any]]:
    """Yield place, key and value of each key in the tables of groups. Raises SettingsError for other keys."""
    for group, keys in groups.items():
        where = f'{path}: [{section}.groups."{_cut(group)}"]'
        if not isinstance(keys, dict):
            raise SettingsError(f"{where} must be a table with some of {', '.join(known)}")
        for key, value in keys.items():
            if key not in known:
                raise SettingsError(f"{where} has no key {_cut(key)}{_near(key, known)}")
            yield where, key, value


def _check_groups(groups: dict[str, Any], path: str) -> None:
    for where, key, value in _keys_of_groups(groups, "strategies", list(GROUP_KEYS), path):
        if not _fits(key, value):
            raise SettingsError(f"{where} {key} must be {GROUP_KEYS[key]}, not {_shown(value)}")


def _check_limits(groups: dict[str, Any], path: str) -> None:
    """Check the thresholds and severities of groups; replay/day_findings.py knows the kinds of findings."""
    for where, key, value in _keys_of_groups(groups, "findings", [*GROUP_THRESHOLDS, GROUP_SEVERITIES], path):
        if key == GROUP_SEVERITIES:
            if not isinstance(value, dict) or not all(each in SEVERITIES for each in value.values()):
                words = ", ".join(SEVERITIES)
                raise SettingsError(f"{where} {key} must be a table: kind = {words}, not {_shown(value)}")
            continue
        record = record_of(FindingSettings, key)
        if not isinstance(value, int) or isinstance(value, bool) or not record.least <= value <= record.most:
            raise SettingsError(f"{where} {key} must be {record.least} to {record.most}, is {_shown(value)}")


def _fits(key: str, value: Any) -> bool:
    if key == "virtual_node_cnt":
        record = record_of(StrategySettings, key)
        return isinstance(value, int) and not isinstance(value, bool) and record.least <= value <= record.most
    if key == "machine_rooms":
        return _texts(value)
    if key == "nearby_strategy":
        return isinstance(value, str)
    if not isinstance(value, dict):
        return False
    if key == "queues":
        return all(_texts(each) and all(_QUEUE.fullmatch(queue) for queue in each) for each in value.values())
    return _texts(list(value.values()))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _near(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(_cut(word), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_KEY else f"{name[: LONGEST_KEY - 3]}..."


def _shown(value: Any, section: str = "") -> str:
    """Return a value as text of one short line, however large or nested it is; its type where it may be a secret."""
    if section in SECRET_SECTIONS:
        return f"a value of type {type(value).__name__}"
    try:
        return reprlib.repr(value)
    except ValueError:  # Python converts no more digits
        return "a number with too many digits"
