"""Findings as the page shows them: effects below their causes, each with its evidence and its pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mqreplay.report.data import Row
from mqreplay.report.evidence_rows import EvidenceRows
from mqreplay.report.next_step import names_of
from mqreplay.report.pictures.drawing import Picture
from mqreplay.words.severity import WORST_FIRST

DEEPEST = 3  # levels of effects; deeper ones are shown at this level


@dataclass
class FindingView:
    """A finding, what follows from it, its evidence, and the pictures that mark it.

    ``commands`` show it and suppose another setting. ``known_issues`` are rows of gold.known_issue. ``cause`` is the id
    of a cause that is not on the page.
    """

    row: Row
    evidence: EvidenceRows = field(default_factory=EvidenceRows)
    pictures: list[Picture] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    known_issues: list[Row] = field(default_factory=list)
    effects: list[FindingView] = field(default_factory=list)
    cause: str | None = None

    @property
    def short_id(self) -> str:
        """Return the beginning of the id, as `mqreplay explain` takes it."""
        return str(self.row["finding_id"])[:8]

    @property
    def names(self) -> dict[str, str]:
        """Return what the words in capitals of its advice's commands mean."""
        return names_of(self.row)

    @property
    def rank(self) -> tuple[int, str, str]:
        """Return the place in the list: the worst of it and its effects first, then the earliest."""
        row = self.row
        worst = min([WORST_FIRST.index(row["severity"]), *(effect.rank[0] for effect in self.effects)])
        return (worst, str(row["from_ts"] or ""), str(row["finding_id"]))

    @property
    def count(self) -> int:
        """Return the number of findings in it."""
        return 1 + sum(effect.count for effect in self.effects)


def nested(
    findings: Sequence[Row],
    evidence: Mapping[str, EvidenceRows] | None = None,
    pictures: Iterable[Picture] = (),
    commands: Mapping[str, list[str]] | None = None,
    known_issues: Iterable[Row] = (),
) -> list[FindingView]:
    """Return the findings without a cause on the page, the worst first, with all others below them.

    A finding that follows from itself, over others, is shown on its own.
    """
    views = {
        str(f["finding_id"]): FindingView(f, (evidence or {}).get(f["finding_id"], EvidenceRows())) for f in findings
    }
    for picture in pictures:
        for finding_id in picture.links:
            if finding_id in views:
                views[finding_id].pictures.append(picture)
    for finding_id, of_finding in (commands or {}).items():
        if finding_id in views:
            views[finding_id].commands = of_finding
    for issue in known_issues:
        if issue["finding_id"] in views:
            views[issue["finding_id"]].known_issues.append(issue)
    roots: list[FindingView] = []
    for view in views.values():
        chain = _causes(view, views)
        if chain:
            chain[min(len(chain), DEEPEST) - 1].effects.append(view)
        else:
            cause = view.row.get("follows_from")
            view.cause = cause if cause and cause not in views else None
            roots.append(view)
    for view in views.values():
        view.effects.sort(key=lambda effect: effect.rank)
    return sorted(roots, key=lambda root: root.rank)


def _causes(view: FindingView, views: Mapping[str, FindingView]) -> list[FindingView]:
    """Return the causes on the page, the first one first; none if they lead back to the finding."""
    chain: list[FindingView] = []
    seen = {str(view.row["finding_id"])}
    cause = view.row.get("follows_from")
    while cause is not None and cause in views:
        if cause in seen:
            return []
        seen.add(cause)
        chain.append(views[cause])
        cause = views[cause].row.get("follows_from")
    return chain[::-1]
