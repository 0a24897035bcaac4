"""The overview of a warehouse: report/index.html, and what it must know of the last runs: report/index.json."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mqreplay.answers.findings import judged_days
from mqreplay.answers.page_path import index_path, page_name, page_path
from mqreplay.lake.files import files_of, read_json, write_json, write_text
from mqreplay.lake.result_cache import last_kept
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.failures import Failure
from mqreplay.night.reported import Reported
from mqreplay.report.overview import ClusterRow, build_overview, overview
from mqreplay.settings.sections import ReportSettings


@dataclass
class LastRuns:
    """When each cluster was run last, why it failed, what was reported of it, and recordings that failed last."""

    clusters: dict[str, dict[str, str | None]] = field(default_factory=dict)
    recordings: list[tuple[str, str]] = field(default_factory=list)
    reported: dict[str, Reported] = field(default_factory=dict)

    @classmethod
    def of(cls, root: str) -> LastRuns:
        """Read those of a warehouse; none if the file is missing or torn."""
        try:
            found = read_json(index_path(root, "json"))
            clusters = {str(name): {str(k): v for k, v in run.items()} for name, run in found["clusters"].items()}
            reported = {name: Reported.of(each) for name, each in found.get("reported", {}).items()}
            return cls(clusters, [(str(name), str(reason)) for name, reason in found["recordings"]], reported)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def note(self, now: dt.datetime, done: Iterable[str], failed: Iterable[Failure]) -> None:
        """Note a run that ends at ``now``: the clusters that are done, and what failed."""
        self.recordings = [(each.name, each.reason) for each in failed if each.what == "recording"]
        reasons = {each.name: each.reason for each in failed if each.what == "cluster"}
        for cluster in done:
            self.clusters[cluster] = {"run": now.isoformat(timespec="seconds"), "failure": None}
        for cluster, reason in reasons.items():
            self.clusters[cluster] = {"run": now.isoformat(timespec="seconds"), "failure": reason}

    def write(self, root: str) -> None:
        """Write the file."""
        reported = {name: each.as_dict() for name, each in self.reported.items()}
        write_json(
            index_path(root, "json"),
            {"clusters": self.clusters, "recordings": self.recordings, "reported": reported},
        )

    def forget(self, cluster: str) -> None:
        """Forget a cluster that has no recording left."""
        self.clusters.pop(cluster, None)
        self.reported.pop(cluster, None)


def write_overview(warehouse: Warehouse, runs: LastRuns, shown: ReportSettings) -> str:
    """Write the page of all clusters, with the last ``shown.nights`` days; return its path."""
    judged = judged_days(warehouse)
    names = sorted(judged.keys() | {name for name, run in runs.clusters.items() if run.get("failure")})
    rows = [_row(warehouse, name, judged.get(name, frozenset()), runs.clusters.get(name, {})) for name in names]
    data, path = overview(warehouse, rows, shown.nights, runs.recordings), overview_path(warehouse.root)
    html = build_overview(data, shown.language)
    files = files_of(path)
    if files.info(path) is None or files.read(path) != html.encode():
        write_text(path, html)
    return path


def overview_path(root: str) -> str:
    """Return the path of the page."""
    return index_path(root, "html")


def _row(warehouse: Warehouse, cluster: str, days: frozenset[dt.date], run: dict[str, str | None]) -> ClusterRow:
    """Return the row of a cluster, as its page was made last."""
    kept: Any = last_kept(page_path(warehouse.root, cluster, "json")) or {}
    base = ClusterRow(cluster, days=days, last_run=_instant(run.get("run")), failure=run.get("failure"))
    if not kept:
        return base
    return ClusterRow(
        cluster,
        f"{page_name(cluster)}.html".replace("%", "%25"),  # as a link
        kept["level"],
        kept["verdict"],
        Counter(finding["severity"] for finding in kept["findings"]),
        _instant(kept.get("night_from")),
        _instant(kept.get("night_to")),
        [each["name"] for each in kept["coverage"] if each["state"] == "not judged"],
        len(kept["failed_expectations"]),
        base.last_run,
        base.failure,
        days,
        dt.date.fromisoformat(kept["since"]) if kept.get("since") else None,
    )


def _instant(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None
