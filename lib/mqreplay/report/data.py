"""What the page shows of one cluster, and the places that it links to, as plain values: a page needs no tables."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mqreplay.language.language import ENGLISH

if TYPE_CHECKING:
    from mqreplay.report.coverage import Coverage
    from mqreplay.report.cursor_states import Part
    from mqreplay.report.evidence_rows import EvidenceRows
    from mqreplay.report.pictures.drawing import Picture


CAP = 200  # rows of a table that a page shows; the rest is a query away
MOST_FINDINGS = 800  # on the page: it stays below 3 MB
Row = dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """Some rows of a table, and how many there are in all."""

    rows: list[Row] = field(default_factory=list)
    total: int = 0

    @property
    def more(self) -> int:
        """Rows that are not shown."""
        return self.total - len(self.rows)

    @classmethod
    def of(cls, rows: list[Row]) -> Listing:
        """The first CAP of all rows."""
        return cls(rows[:CAP], len(rows))


@dataclass(frozen=True)
class ReportData:
    """All that the page shows of one cluster. Instants are datetimes in UTC; rows are as their tables have them.

    ``judgements`` counts the decisions of a table by judgement and reason, ``files`` the files by kind and status.
    ``coverage`` says what was judged. ``evidence`` has the rows of a finding by its id. ``since`` is the first day that
    is shown; None: all are. ``states`` is the state at each instant of the night as JSON, ``parts`` are its groups,
    brokers and topics, ``commands`` has those of mqreplay that concern a finding, by its id. ``of_cluster`` is
    the option of commands that names the cluster, where the warehouse has several. ``known_issues`` are rows of
    gold.known_issue; ``mutes`` says of findings that are muted until when and why, by id. ``lang`` is the language of
    the page, one of LANGUAGES: pictures, parts, states and texts of evidence are made in it.
    """

    cluster: str
    lang: str = ENGLISH
    since: dt.date | None = None
    first_ts: dt.datetime | None = None
    last_ts: dt.datetime | None = None
    findings: list[Row] = field(default_factory=list)
    findings_total: int | None = None  # None: as many as ``findings``
    evidence: dict[str, EvidenceRows] = field(default_factory=dict)
    coverage: list[Coverage] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    states: str = ""
    parts: list[Part] = field(default_factory=list)
    commands: dict[str, list[str]] = field(default_factory=dict)
    of_cluster: str = ""
    known_issues: list[Row] = field(default_factory=list)
    mutes: dict[str, str] = field(default_factory=dict)
    judgements: list[Row] = field(default_factory=list)
    breaks: Listing = field(default_factory=Listing)
    gaps: Listing = field(default_factory=Listing)
    quarantine: Listing = field(default_factory=Listing)
    expectations: list[Row] = field(default_factory=list)
    files: list[Row] = field(default_factory=list)


class Place(NamedTuple):
    """A group, a broker or a topic by name."""

    kind: str
    name: str


def anchor(place: Place) -> str:
    """Return the id of a place's part; names that an address cannot hold get a digest.

    >>> anchor(Place("group", "order-group")), anchor(Place("group", "a b"))
    ('group-order-group', 'group-a-b-c8687a08')
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", place.name)
    if plain == place.name and len(plain) <= 80:
        return f"{place.kind}-{plain}"
    digest = hashlib.sha256(place.name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{place.kind}-{plain[:40]}-{digest}"


def finding_anchor(finding_id: str) -> str:
    """Return the id of a finding on the page."""
    return f"f-{finding_id}"
