"""The overview of all clusters of a warehouse: a row for each, and the worst of each of the last nights."""

from __future__ import annotations

import datetime as dt
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from markupsafe import Markup

from mqreplay.findings.texts import PLACE_NAMES
from mqreplay.lake.row_filter import RowFilter, of_last_day
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import ENGLISH, Language, in_english, language
from mqreplay.report.build import environment, policy, resource, script_words
from mqreplay.report.data import Row
from mqreplay.report.verdict import verdict_in
from mqreplay.words.severity import WORST_FIRST

LEVELS: Final = ("failed", "critical", "warning", "unknown", "info", "quiet")  # the worst first
SHOWN_OF_NIGHT = 3  # findings of one cluster and night in the list
MOST_LISTED = 500
STATED_COLUMNS = ("kind", "summary", "values", *PLACE_NAMES)
FINDING_COLUMNS = ("finding_id", "day", "severity", "from_ts", "to_ts", "follows_from", *STATED_COLUMNS)


@dataclass(frozen=True)
class ClusterRow:
    """One cluster: what its page says, its last run, and why that failed, if so. ``page`` is a file beside this one.

    Instants are datetimes in UTC. ``days`` are those that were judged. ``since`` is the first one on its page; None:
    all are there.
    """

    cluster: str
    page: str | None = None
    level: str = "unknown"
    verdict: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    first_ts: dt.datetime | None = None
    last_ts: dt.datetime | None = None
    not_judged: Sequence[str] = ()
    failed_expectations: int = 0
    last_run: dt.datetime | None = None
    failure: str | None = None
    days: frozenset[dt.date] = frozenset()
    since: dt.date | None = None

    @property
    def state(self) -> str:
        """One of LEVELS."""
        return "failed" if self.failure else self.level


@dataclass(frozen=True)
class NightCell:
    """One night of one cluster: whether it was judged, and its findings by severity."""

    day: dt.date
    level: str  # a severity, "quiet" or "none"
    counts: Mapping[str, int]
    href: str | None

    def text(self, words: Language) -> str:
        """Return what a screen reader says, and the tooltip."""
        counts = [(self.counts.get(word, 0), word) for word in WORST_FIRST]
        found = words.filled(", ").join(words.counted(count, word, word) for count, word in counts if count)
        none = words.filled("no findings" if self.level == "quiet" else "not judged")
        return words.filled("{day}: {counts}", day=self.day, counts=found or none)


@dataclass(frozen=True)
class Listed:
    """A finding in the list, and where it is on a page; without ``href`` the page no longer shows it.

    ``more``: in place of the finding, the number of those of its cluster and night that are left out from it on.
    """

    cluster: str
    row: Row
    href: str | None
    more: int = 0

    @property
    def place(self) -> tuple[int, int, str]:
        """Return the place in the list: the last night first, its worst first, then what is left out."""
        worst = len(WORST_FIRST) if self.more else WORST_FIRST.index(self.row["severity"])
        return (-self.row["day"].toordinal(), worst, self.cluster)

    @property
    def command(self) -> str:
        """Return the command that shows it, without the warehouse."""
        if not self.more:
            return f"mqreplay explain {self.row['finding_id'][:8]}"
        day, of_cluster = self.row["day"], f"--cluster {shlex.quote(self.cluster)}"
        return f"mqreplay findings {of_cluster} --severity warning --since {day} --until {day + dt.timedelta(days=1)}"


@dataclass(frozen=True)
class Overview:
    """What the overview shows: ``clusters`` with the worst first, a row of cells for each, and recordings that failed.

    ``failed`` has recording and reason. ``cut``: findings of earlier nights that the list has no room for.
    """

    clusters: Sequence[ClusterRow]
    days: Sequence[dt.date] = ()
    cells: Mapping[str, Sequence[NightCell]] = field(default_factory=dict)
    findings: Sequence[Listed] = ()
    failed: Sequence[tuple[str, str]] = ()
    cut: int = 0


def overview(
    warehouse: Warehouse, clusters: Iterable[ClusterRow], nights: int, failed: Sequence[tuple[str, str]] = ()
) -> Overview:
    """Read the findings of the last ``nights`` days that were judged."""
    ordered = sorted(
        clusters, key=lambda row: (LEVELS.index(row.state), [-row.counts.get(s, 0) for s in WORST_FIRST], row.cluster)
    )
    judged = sorted({day for row in ordered for day in row.days})
    days = judged[-nights:]
    found = {row.cluster: _findings(warehouse, row.cluster, days) for row in ordered}
    listed = [each for row in ordered for of_day in found[row.cluster].values() for each in _listed(row, of_day)]
    listed.sort(key=lambda each: each.place)
    shown = listed[:MOST_LISTED]
    ids = {each.row["finding_id"] for each in shown if not each.more}
    cells = {row.cluster: [_cell(row, day, found[row.cluster].get(day, []), ids) for day in days] for row in ordered}
    cut = sum(each.more or 1 for each in listed[MOST_LISTED:])
    return Overview(ordered, days, cells, shown, failed, cut)


def _listed(row: ClusterRow, findings: Sequence[Row]) -> list[Listed]:
    """Return the worst findings of a cluster and night, and how many more there are."""
    causes = [finding for finding in findings if finding["severity"] != "info" and not finding["follows_from"]]
    shown = [Listed(row.cluster, finding, _on_page(row, finding)) for finding in causes[:SHOWN_OF_NIGHT]]
    left = causes[SHOWN_OF_NIGHT:]
    return [*shown, Listed(row.cluster, left[0], _night_on_page(row, left[0]), len(left))] if left else shown


def _findings(warehouse: Warehouse, cluster: str, days: Sequence[dt.date]) -> dict[dt.date, list[Row]]:
    """Return the findings of each day, the worst first."""
    if not days:
        return {}
    rows = warehouse.read("gold.finding", RowFilter(cluster, between=(days[0], days[-1]))).select(FINDING_COLUMNS)
    made: dict[dt.date, list[Row]] = {}
    for row in of_last_day(rows, "finding_id").sort("from_ts", "finding_id").collect().iter_rows(named=True):
        made.setdefault(row["day"], []).append(row)
    return {day: sorted(of_day, key=lambda row: WORST_FIRST.index(row["severity"])) for day, of_day in made.items()}


def _cell(row: ClusterRow, day: dt.date, findings: Sequence[Row], listed: Container[str]) -> NightCell:
    level = findings[0]["severity"] if findings else "quiet" if day in row.days else "none"
    href = _on_page(row, findings[0]) if findings else None
    if href is None and findings and findings[0]["finding_id"] in listed:
        href = f"#f-{findings[0]['finding_id']}"
    return NightCell(day, level, Counter(row["severity"] for row in findings), href)


def _on_page(row: ClusterRow, finding: Row) -> str | None:
    shown = row.page is not None and (row.since is None or finding["day"] >= row.since)
    return f"{row.page}#f-{finding['finding_id']}" if shown else None


def _night_on_page(row: ClusterRow, finding: Row) -> str | None:
    """Return a link to the critical findings and warnings of the finding's day."""
    if _on_page(row, finding) is None:
        return None
    day = finding["day"]
    return f"{row.page}#severity=critical,warning&from={day}T00:00:00&to={day}T23:59:59"


def headline(clusters: Sequence[ClusterRow], words: Language | None = None) -> str:
    """Return one sentence on all clusters.

    >>> headline([ClusterRow("a", level="critical"), ClusterRow("b", level="quiet"), ClusterRow("c", level="quiet")])
    '3 clusters: 1 critical, 2 quiet'
    """
    words = words or in_english()
    states = Counter(row.state for row in clusters)
    named = {"warning": "with warnings", "unknown": "not judged in full", "info": "for information"}
    counts = [words.filled(f"{{n}} {named.get(level, level)}", n=states[level]) for level in LEVELS if states[level]]
    if not counts:
        return words.filled("no clusters")
    clusters_ = words.counted(len(clusters), "cluster")
    return words.filled("{clusters}: {counts}", clusters=clusters_, counts=words.filled(", ").join(counts))


def build_overview(data: Overview, lang: str = ENGLISH) -> str:
    """Return the page, self-contained, in one of LANGUAGES."""
    words = language(lang)
    style = resource("style.css") + resource("overview.css")
    script = resource("words.js") + resource("overview.js")
    worst = min((row.state for row in data.clusters), key=LEVELS.index, default="unknown")
    page = (
        environment(lang)
        .get_template("overview.html")
        .render(
            data=data,
            style=Markup(style),
            script=Markup(script),
            script_words=script_words(script, words),
            policy=policy(style, script),
            headline=headline(data.clusters, words),
            level="failed" if data.failed else worst,
            shown_of_night=SHOWN_OF_NIGHT,
            cell_text=lambda cell: cell.text(words),
            verdict_of=lambda row: verdict_in(row.verdict, (each.row for each in data.findings), words),
        )
    )
    return page.encode("utf-8", "replace").decode("utf-8")
