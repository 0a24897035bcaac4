"""Data for the tests of the overview: clusters and nights."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

from mqreplay.report.overview import ClusterRow, Listed, NightCell, Overview
from report_data import BEGAN, ENDED, finding

LAST = BEGAN.date()
DAYS = [LAST - dt.timedelta(days=ago) for ago in range(13, -1, -1)]


def cluster(name: str = "orders", **differs: Any) -> ClusterRow:
    base: dict[str, Any] = {
        "page": f"{name}.html",
        "level": "warning",
        "verdict": "1 warning: offsets went back.",
        "counts": {"warning": 1},
        "first_ts": BEGAN,
        "last_ts": ENDED,
        "last_run": ENDED + dt.timedelta(hours=6),
        "days": frozenset(DAYS),
    }
    return ClusterRow(name, **base | differs)


def cell(day: dt.date, level: str = "quiet", count: int = 0, href: str | None = None) -> NightCell:
    return NightCell(day, level, Counter({level: count} if count else {}), href)


def estate(hostile: str | None = None, clusters: int = 3) -> Overview:
    """Clusters of every state; with ``hostile``, that in every text that a recording can bring."""
    states = ["failed", "critical", "warning", "unknown", "info", "quiet"]
    rows, cells, listed = [], {}, []
    for number in range(clusters):
        state = states[min(number, len(states) - 1)]
        name = (hostile or "cluster") + f"-{number}"
        failure = "table x does not fit" if state == "failed" else None
        rows.append(
            cluster(
                name,
                page=f"cluster-{number}.html",
                level="quiet" if failure else state,
                failure=(hostile or failure) if failure else None,
                verdict=hostile or f"The night of cluster {number}.",
                counts={state: 2} if state in ("critical", "warning", "info") else {},
                not_judged=["pulls", "rebalances"] if state == "unknown" else [],
            )
        )
        cells[name] = [
            cell(day, *(("critical", 2, f"#f-{number:04}{place:012}") if (number + place) % 5 == 0 else ()))
            if (number * place) % 7
            else cell(day, "none")
            for place, day in enumerate(DAYS)
        ]
        for place, each in enumerate(cells[name]):
            if each.href:
                texts = {} if hostile is None else {"summary": hostile, "kind": hostile}
                row = finding(f"{number:04}{place:012}", day=each.day, severity="critical", **texts)
                shown = f"cluster-{number}.html#f-{row['finding_id']}" if place > 8 else None
                listed.append(Listed(name, row, shown))
    failed = [(hostile or "recordings/gone", hostile or "recording recordings/gone has no files")]
    return Overview(rows, DAYS, cells, listed[::-1], failed)
