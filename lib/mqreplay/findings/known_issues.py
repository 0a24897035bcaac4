"""Faults of RocketMQ that can explain a finding: those of known_issues.toml that the recorded versions have."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from mqreplay.core.version import at_least, version_key
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.recorded_versions import RecordedVersions
from mqreplay.words.errors import IllegalArgument
from mqreplay.words.keys import BROKER

URL = "https://github.com/apache/rocketmq/issues/{}"
COMPONENTS = ("broker", "client")
FINDING_KEY = ("day", "finding_id")
# Columns of gold.known_issue, without the cluster.
ISSUE_SCHEMA: dict[str, pl.DataType] = {
    "day": pl.Date(),
    "finding_id": pl.String(),
    "issue": pl.Int64(),
    "url": pl.String(),
    "title": pl.String(),
    "component": pl.String(),
    "versions": pl.List(pl.String()),
    "mended_in": pl.String(),
    "advice": pl.String(),
}
FAULT: dict[str, pl.DataType] = {
    "issue": pl.Int64(),
    "version": pl.String(),
    "line": pl.Int64(),
    "mended_in": pl.String(),
}


@dataclass(frozen=True)
class FaultyReleases:
    """Releases with a fault, from ``first`` to before ``mended``; None: no release that was checked mends it."""

    first: str
    mended: str | None = None


@dataclass(frozen=True)
class ExplainedKind:
    """A kind of finding that a fault explains; ``summary``: only findings whose summary has one of these texts."""

    kind: str
    summary: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownIssue:
    """An issue of apache/rocketmq. known_issues.toml describes the fields."""

    number: int
    title: str
    component: str
    faulty: tuple[FaultyReleases, ...]
    findings: tuple[ExplainedKind, ...]
    advice: str
    related: tuple[int, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    unless: Mapping[str, str] = field(default_factory=dict)
    broker_role: str | None = None
    message_model: str | None = None
    pop: bool = False

    def fault_of(self, version: str, checked_until: str) -> Fault | None:
        """Return the fault of a version; None: it does not have it, nothing is known of it, or it is no version."""
        try:
            version_key(version)
        except IllegalArgument:
            return None
        for line, releases in enumerate(self.faulty):
            before_end = not at_least(version, releases.mended) if releases.mended else at_least(checked_until, version)
            if before_end and at_least(version, releases.first):
                return Fault(self, version, line, releases.mended)
        return None

    def has_settings(self, settings: Mapping[str, str]) -> bool:
        """Return whether a broker with these settings can have the fault."""
        has_all = all(settings.get(key) == value for key, value in self.settings.items())
        return has_all and not any(settings.get(key) == value for key, value in self.unless.items())


@dataclass(frozen=True)
class Fault:
    """An issue that a version has. ``line``: the place of the version's range among the issue's ranges."""

    issue: KnownIssue
    version: str
    line: int
    mended_in: str | None

    @property
    def columns(self) -> tuple[int, str, int, str | None]:
        """Return the values of FAULT's columns."""
        return self.issue.number, self.version, self.line, self.mended_in


@dataclass(frozen=True)
class KnownIssues:
    """The issues of known_issues.toml; ``checked_until`` is the last release that was checked."""

    checked_until: str
    issues: tuple[KnownIssue, ...]


@cache
def known_issues() -> KnownIssues:
    """Return the issues of known_issues.toml."""
    read = tomllib.loads(files("mqreplay.findings").joinpath("known_issues.toml").read_text(encoding="utf-8"))
    return KnownIssues(read["checked_until"], tuple(map(_issue, read["issue"])))


def _issue(row: Mapping[str, Any]) -> KnownIssue:
    faulty = tuple(FaultyReleases(**releases) for releases in row["faulty"])
    explained = tuple(ExplainedKind(each["kind"], tuple(each.get("summary", ()))) for each in row["findings"])
    values = {**row, "faulty": faulty, "findings": explained, "related": tuple(row.get("related", ()))}
    return KnownIssue(**values)


def issues_of_findings(found: pl.DataFrame, versions: RecordedVersions, known: KnownIssues) -> pl.DataFrame:
    """Return the issues that can explain each finding: rows of ISSUE_SCHEMA.

    ``found`` has rows of gold.finding. ``versions`` of a row are the recorded ones with the fault: of the finding's
    broker, else of all brokers; or of the finding's client, else of all clients of its group.
    """
    asked = _explained(found, known).filter(~pl.col("pop") | pl.col("consumer_group").is_in(versions.pop_groups))
    each = pl.concat([_of_brokers(asked, versions.brokers, known), _of_clients(asked, versions.clients, known)])
    named = each.group_by(*FINDING_KEY, "issue").agg(
        pl.col("version").unique().sort().alias("versions"), pl.col("mended_in").sort_by("line").last()
    )
    texts = [(each.number, URL.format(each.number), each.title, each.component, each.advice) for each in known.issues]
    names = ("issue", "url", "title", "component", "advice")
    rows = named.join(pl.DataFrame(texts, {name: ISSUE_SCHEMA[name] for name in names}, orient="row"), "issue")
    return rows.sort(*FINDING_KEY, "issue").select([pl.col(name).cast(of) for name, of in ISSUE_SCHEMA.items()])


def _explained(found: pl.DataFrame, known: KnownIssues) -> pl.DataFrame:
    """Return each finding with the issues that explain its kind and its summary: ``issue``, ``pop``."""
    rows = [
        (each.kind, phrase, issue.number, issue.pop, issue.broker_role == "slave")
        for issue in known.issues
        for each in issue.findings
        for phrase in each.summary or (None,)
    ]
    schema = {"kind": pl.String, "phrase": pl.String, "issue": pl.Int64, "pop": pl.Boolean, "of_slave": pl.Boolean}
    columns = [*FINDING_KEY, "kind", "summary", "from_ts", "consumer_group", *BROKER, "client_id"]
    asked = found.select(columns).join(pl.DataFrame(rows, schema, orient="row"), "kind")
    has_phrase = pl.col("phrase").is_null() | pl.col("summary").str.contains(pl.col("phrase"), literal=True)
    is_slave = ~pl.col("of_slave") | (pl.col("broker_id") > 0)
    return asked.filter(has_phrase, is_slave).drop("kind", "summary", "phrase", "of_slave").unique()


def _of_brokers(asked: pl.DataFrame, brokers: pl.DataFrame, known: KnownIssues) -> pl.DataFrame:
    """Return FAULT of the findings and the brokers that have the fault when the finding begins."""
    place = [name for name in brokers.columns if name not in ("version", "settings")]
    recent = brokers.filter(pl.col("until").is_null() | (pl.col("until") > pl.lit(asked["from_ts"].min(), INSTANT)))
    faults = _faults("broker", recent["version"], known)
    rows = []
    for broker in recent.iter_rows(named=True):
        settings = {each["key"]: each["value"] for each in broker["settings"] or ()}
        for fault in faults[broker["version"]]:
            if fault.issue.has_settings(settings):
                rows.append((*(broker[name] for name in place), *fault.columns))
    schema = {name: brokers.schema[name] for name in place} | FAULT
    named = asked.rename({name: f"of_{name}" for name in BROKER})
    met = named.join(pl.DataFrame(rows, schema, orient="row"), "issue")
    here = [pl.col(f"of_{name}").is_null() | (pl.col(f"of_{name}") == pl.col(name)) for name in BROKER]
    begun = pl.col("since").is_null() | (pl.col("since") <= pl.col("from_ts"))
    lasts = pl.col("until").is_null() | (pl.col("until") > pl.col("from_ts"))
    return met.filter(*here, begun, lasts).select(*FINDING_KEY, *FAULT)


def _of_clients(asked: pl.DataFrame, clients: pl.DataFrame, known: KnownIssues) -> pl.DataFrame:
    """Return FAULT of the findings and the clients of their groups that have the fault."""
    place: dict[str, pl.DataType] = {"consumer_group": pl.String(), "client_id": pl.String()}
    faults = _faults("client", clients["version"], known)
    rows = [
        (client["consumer_group"], client["client_id"], *fault.columns)
        for client in clients.iter_rows(named=True)
        for fault in faults[client["version"]]
        if fault.issue.message_model in (None, client["message_model"])
    ]
    faulty = pl.DataFrame(rows, place | FAULT, orient="row")
    met = asked.rename({"client_id": "of_client_id"}).join(faulty, ["issue", "consumer_group"])
    here = pl.col("of_client_id").is_null() | (pl.col("of_client_id") == pl.col("client_id"))
    return met.filter(here).select(*FINDING_KEY, *FAULT)


def _faults(component: str, versions: pl.Series, known: KnownIssues) -> dict[str, list[Fault]]:
    """Return the faults of each version of a component."""
    issues = [issue for issue in known.issues if issue.component == component]
    return {
        version: [fault for issue in issues if (fault := issue.fault_of(version, known.checked_until)) is not None]
        for version in versions.unique().to_list()
    }
