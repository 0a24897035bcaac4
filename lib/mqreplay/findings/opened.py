"""Findings that open and close while a cluster is watched.

Each round judges the last minutes again. A finding opens when it is first found, stays open while its evidence goes on,
and closes when its evidence has ended, and watch has known it, for longer than its kind's limit. One that is over when
it is first found is one change, not two. Missing evidence closes nothing: only recorded time counts. A finding whose
place gets wider, such as from one queue to several, stays the same finding.

Later answers may revise what a round finds, so one round alone neither opens a finding that is less than certain nor
withdraws one: two rounds must agree, and all between them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mqreplay.findings.lag import LAG_GROWS
from mqreplay.findings.shape import PLACE
from mqreplay.words.severity import SEVERITIES

OPENED_EVENT, CHANGED_EVENT, CLOSED_EVENT, ENDED_EVENT = "opened", "severity changed", "closed", "already ended"
FIRST_EVENTS = (OPENED_EVENT, ENDED_EVENT)  # a finding has one of them before any other
Place = tuple[Any, ...]
Found = tuple[dt.datetime, Sequence[Mapping[str, Any]]]  # the end of the recording in a round, and what it found
STATED_COLUMNS = ("confidence", "summary", "advice", "values", "evidence", "evidence_count")
CERTAIN = 1.0  # confidence of a finding that later answers do not revise
AGREED = dt.timedelta(seconds=20)  # between two rounds: the recorder asks everybody about clients so often
# A client sends a heartbeat every 30 s, and an answer that stays the same is recorded once a minute.
REVISED = dt.timedelta(seconds=90)


@dataclass(frozen=True)
class OpenFinding:
    """A finding, and since when watch knows it. Its fields are the columns of gold.open_finding, except cluster.

    ``opened_ts`` is its begin, ``first_seen_ts`` the end of the recording when it was first found, ``last_seen_ts`` its
    last evidence. ``closed_ts`` is None while it is open. ``undetermined_since`` is set while the recording is silent.
    """

    finding_id: str
    kind: str
    severity: str
    consumer_group: str | None
    topic: str | None
    broker_name: str | None
    broker_id: int | None
    queue_id: int | None
    client_id: str | None
    opened_ts: dt.datetime
    first_seen_ts: dt.datetime
    last_seen_ts: dt.datetime
    closed_ts: dt.datetime | None
    closed_reason: str | None
    undetermined_since: dt.datetime | None
    confidence: float
    summary: str
    advice: str
    values: str | None
    evidence: Sequence[Mapping[str, Any]] = field(hash=False)
    evidence_count: int

    @property
    def place(self) -> Place:
        """Return the values of PLACE's columns."""
        return tuple(getattr(self, name) for name in PLACE)

    @property
    def row(self) -> dict[str, Any]:
        """Return its columns, except cluster."""
        return vars(self)

    @property
    def is_open(self) -> bool:
        """Return whether it is open."""
        return self.closed_ts is None


@dataclass(frozen=True)
class Change:
    """What happened to a finding in a round: OPENED_EVENT, CHANGED_EVENT (its severity) or CLOSED_EVENT.

    ENDED_EVENT: it was over when it was first found, so it has no OPENED_EVENT and no CLOSED_EVENT.
    """

    what: str
    finding: OpenFinding


@dataclass(frozen=True)
class Round:
    """The time of a round by the recorder's clock.

    ``recorded_until`` is the last instant recorded, ``complete_since`` the one since which nothing is missing.
    Findings with evidence after ``reported_from`` must be found again. ``is_silent``: the recording does not go on.
    """

    recorded_until: dt.datetime
    complete_since: dt.datetime
    reported_from: dt.datetime
    is_silent: bool = False


def follow(
    known: Sequence[OpenFinding],
    found: Iterable[Mapping[str, Any]],
    now: Round,
    limits: Mapping[str, int],
    rounds: Sequence[Found] = (),
) -> tuple[list[OpenFinding], list[Change]]:
    """Return the findings after a round, and what changed.

    ``found`` has the window's findings, rows of gold.finding. ``limits`` are seconds by kind; other kinds are left out.
    ``rounds`` are the last ones, in their order.
    """
    earlier = _earlier(rounds, now)
    rows = sorted((row for row in found if row["kind"] in limits), key=lambda row: (row["from_ts"], row["finding_id"]))
    places = {(row["kind"], _place(row)) for row in rows}
    findings = list(known)
    met: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        limit = dt.timedelta(seconds=limits[row["kind"]])
        number = _same(findings, row, places, limit)
        is_open = number is not None and findings[number].is_open
        if not is_open and not _is_sure(_opened(row, now), earlier, now, limit):
            continue
        if number is None:
            number = len(findings)
            findings.append(_opened(row, now))
        met.setdefault(number, []).append(row)
    made: list[OpenFinding] = []
    changes: list[Change] = []
    for number, finding in enumerate(findings):
        seen = after = _seen(finding, met.get(number, []))
        if seen.is_open:
            limit = dt.timedelta(seconds=limits.get(seen.kind, 0))
            is_found = number in met
            was_found = not earlier or any(_is_in(each, seen, limit) for _, each in earlier)
            after = _closed(seen, is_found, is_found or was_found, _wider(seen, rows), now, limit)
        if number >= len(known) or (seen.is_open and not finding.is_open):
            changes.append(Change(OPENED_EVENT if after.is_open else ENDED_EVENT, after))
        elif seen.is_open:
            if seen.severity != finding.severity:
                changes.append(Change(CHANGED_EVENT, seen))
            if not after.is_open:
                changes.append(Change(CLOSED_EVENT, after))
        made.append(after)
    return made, changes


def closed(findings: Sequence[OpenFinding], ts: dt.datetime, reason: str) -> tuple[list[OpenFinding], list[Change]]:
    """Return the findings, all closed, and what changed."""
    after = [_with_reason(one, ts, reason) if one.is_open else one for one in findings]
    return after, [Change(CLOSED_EVENT, one) for one, before in zip(after, findings, strict=True) if before.is_open]


def lagging(findings: Iterable[OpenFinding]) -> set[tuple[str, str]]:
    """Return the group and topic of each open LAG_GROWS: the window may be shorter than the time it has lasted."""
    of_kind = [one for one in findings if one.is_open and one.kind == LAG_GROWS.name]
    return {(one.consumer_group, one.topic) for one in of_kind if one.consumer_group and one.topic}


def _earlier(rounds: Sequence[Found], now: Round) -> Sequence[Found]:
    """Return the round that has to agree with this one, and those after it; none if there is none yet."""
    older = [number for number, (ts, _) in enumerate(rounds) if ts <= now.recorded_until - AGREED]
    return rounds[older[-1] :] if older else ()


def _is_sure(one: OpenFinding, earlier: Sequence[Found], now: Round, limit: dt.timedelta) -> bool:
    """Return whether a finding may open: it is certain, earlier rounds have it, or it is old when watch starts."""
    if one.confidence >= CERTAIN:
        return True
    if not earlier:
        return now.recorded_until - one.opened_ts > REVISED
    return all(_is_in(each, one, limit) for _, each in earlier)


def _is_in(rows: Iterable[Mapping[str, Any]], one: OpenFinding, limit: dt.timedelta) -> bool:
    """Return whether one of the rows is the finding: its id, or its kind, at about its time and place."""
    return any(
        row["finding_id"] == one.finding_id
        or (
            row["kind"] == one.kind
            and _is_near(one, row, limit)
            and (one.place == _place(row) or places_agree(one.place, _place(row)))
        )
        for row in rows
    )


def _is_near(one: OpenFinding, row: Mapping[str, Any], limit: dt.timedelta) -> bool:
    return one.last_seen_ts >= row["from_ts"] - limit and one.opened_ts <= _end(row) + limit


def _end(row: Mapping[str, Any]) -> dt.datetime:
    return max(row["from_ts"], row["to_ts"] or row["from_ts"])


def _place(row: Mapping[str, Any]) -> Place:
    return tuple(row[name] for name in PLACE)


def _same(
    findings: Sequence[OpenFinding], row: Mapping[str, Any], places: set[tuple[str, Place]], limit: dt.timedelta
) -> int | None:
    """Return the number of the finding that the row continues: of its own place, or one that got wider or narrower."""
    for number, one in enumerate(findings):
        if one.finding_id == row["finding_id"]:
            return number
    near = [
        (number, one) for number, one in enumerate(findings) if one.kind == row["kind"] and _is_near(one, row, limit)
    ]
    exact = [(one.is_open, one.last_seen_ts, number) for number, one in near if one.place == _place(row)]
    if exact:
        return max(exact)[2]
    wider = [
        (one.last_seen_ts, number)
        for number, one in near
        if one.is_open and (one.kind, one.place) not in places and places_agree(one.place, _place(row))
    ]
    return max(wider)[1] if wider else None


def places_agree(one: Place, other: Place) -> bool:
    """Return whether no column contradicts: equal, or not set in one of them. One column must be equal."""
    pairs = list(zip(one, other, strict=True))
    return all(a is None or b is None or a == b for a, b in pairs) and any(a is not None and a == b for a, b in pairs)


def _opened(row: Mapping[str, Any], now: Round) -> OpenFinding:
    same = ("finding_id", "kind", "severity", *PLACE, *STATED_COLUMNS)
    return OpenFinding(
        opened_ts=row["from_ts"],
        first_seen_ts=now.recorded_until,
        last_seen_ts=_end(row),
        closed_ts=None,
        closed_reason=None,
        undetermined_since=None,
        **{name: row[name] for name in same},
    )


def _seen(finding: OpenFinding, rows: Sequence[Mapping[str, Any]]) -> OpenFinding:
    """Return the finding with what these rows say of it. Nothing new does not open a closed one."""
    if not rows:
        return finding
    last = max(rows, key=lambda row: (_end(row), SEVERITIES.index(row["severity"])))
    if not finding.is_open and _end(last) <= finding.last_seen_ts:
        return finding
    same = (*PLACE, *STATED_COLUMNS)
    return replace(
        finding,
        severity=max((row["severity"] for row in rows), key=SEVERITIES.index),
        opened_ts=min([finding.opened_ts, *(row["from_ts"] for row in rows)]),
        last_seen_ts=max(finding.last_seen_ts, _end(last)),
        closed_ts=None,
        closed_reason=None,
        **{name: last[name] for name in same},
    )


def _wider(finding: OpenFinding, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return a row of the same kind that covers the finding's place, of another place."""
    of_kind = [row for row in rows if row["kind"] == finding.kind and _place(row) != finding.place]
    return next((row for row in of_kind if places_agree(finding.place, _place(row))), None)


def _closed(
    finding: OpenFinding,
    is_found: bool,
    is_kept: bool,
    wider: Mapping[str, Any] | None,
    now: Round,
    limit: dt.timedelta,
) -> OpenFinding:
    """Return the finding, closed if its evidence has ended for longer than the limit, or means something else now.

    ``is_kept``: this round or an earlier one has it.
    """
    if now.is_silent:
        return replace(finding, undetermined_since=finding.undetermined_since or now.recorded_until)
    if not is_found and finding.last_seen_ts >= now.reported_from:
        joined = None if wider is None else f"it is part of finding {wider['finding_id'][:8]} now"
        if joined or not is_kept:
            return _with_reason(
                finding, now.recorded_until, joined or "later evidence shows that there is no such finding"
            )
    # What is found late does not close soon after, unless it was over when it was first found.
    is_new = now.recorded_until - limit <= finding.first_seen_ts < now.recorded_until
    if not is_new and now.recorded_until - max(finding.last_seen_ts, now.complete_since) > limit:
        since = "" if finding.last_seen_ts >= now.complete_since else " after a gap in the recording"
        return _with_reason(finding, now.recorded_until, f"no evidence of it for {limit.total_seconds():.0f} s{since}")
    is_known = is_found or finding.last_seen_ts >= now.complete_since
    return replace(finding, undetermined_since=None if is_known else finding.undetermined_since)


def _with_reason(finding: OpenFinding, ts: dt.datetime, reason: str) -> OpenFinding:
    return replace(finding, closed_ts=ts, closed_reason=reason, undetermined_since=None)
