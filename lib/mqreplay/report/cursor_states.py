"""Groups, brokers and topics as parts of the page, and the states of a night as JSON for cursor.js.

Both show the states of mqreplay.moment.night_states. Keys are one letter: the text is a part of every page.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqreplay.language.language import Language, in_english
from mqreplay.report.data import Place, Row, anchor
from mqreplay.report.text import clock, number, visible
from mqreplay.words.severity import WORST_FIRST

if TYPE_CHECKING:
    from mqreplay.moment.night_states import GroupStates, NightStates


PLACE_COLUMNS = {"group": "consumer_group", "broker": "broker_name", "topic": "topic"}
TITLES = {"group": "Groups", "broker": "Brokers", "topic": "Topics"}
MOST_PARTS = 100  # of one kind
MOST_OF_MANY = 30  # the same, on a page of more than MANY findings
MANY = 500
MOST_STATE_ROWS = 8
HOW = {"unregistered": "it unregistered", "closed": "its connection closed", "expired": "it was silent for 2 minutes"}


Cell = str | Place
MOST_STATE_GROUPS = 200


@dataclass
class PartTable:
    """A small table of a part. ``more`` rows are left out."""

    caption: str
    heads: list[str]
    rows: list[list[Cell]]
    more: int = 0

    @classmethod
    def of(cls, caption: str, heads: list[str], rows: list[list[Cell]]) -> PartTable:
        """Keep the first rows."""
        return cls(caption, heads, rows[:MOST_STATE_ROWS], max(len(rows) - MOST_STATE_ROWS, 0))


@dataclass
class Part:
    """A part of the page. ``anchor`` is its id, ``at`` the options of `mqreplay at` that show it."""

    place: Place
    words: list[str] = field(default_factory=list)
    tables: list[PartTable] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    at: str | None = None
    commands: list[str] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Return the id on the page."""
        return anchor(self.place)


def broker_words(name: str, broker_id: int, words: Language | None = None) -> str:
    """Return a broker's name and role.

    >>> broker_words("broker-a", 0), broker_words("broker-a", 1)
    ('broker-a master', 'broker-a slave 1')
    """
    return f"{name} {_role(broker_id, words or in_english())}"


def _role(broker_id: int, words: Language) -> str:
    return words.filled("master" if broker_id == 0 else "slave {broker_id}", broker_id=broker_id)


def group_order(states: NightStates, findings: Sequence[Row]) -> list[str]:
    """Return the groups: those with findings first, by their order, then those with the greatest lag."""
    marked = [f["consumer_group"] for f in findings if f["consumer_group"] in states.groups]
    others = sorted(states.groups, key=lambda name: (-(states.groups[name].most_lag or 0), name))
    return list(dict.fromkeys([*marked, *others]))


def parts_of(
    states: NightStates, findings: Sequence[Row], drawn: Iterable[Place] = (), words: Language | None = None
) -> list[Part]:
    """Return the parts: places in pictures first, then those with findings, then the rest, up to MOST_PARTS a kind.

    ``words`` has the language of their texts.
    """
    words = words or in_english()
    wanted: dict[str, dict[str, list[Row]]] = {kind: {} for kind in PLACE_COLUMNS}
    most = MOST_OF_MANY if len(findings) > MANY else MOST_PARTS
    for place in drawn:
        wanted[place.kind].setdefault(place.name, [])
    for finding in findings:
        for kind, column in PLACE_COLUMNS.items():
            name = finding[column]
            if name is None or name.startswith("%") or (name not in wanted[kind] and len(wanted[kind]) >= most):
                continue
            wanted[kind].setdefault(name, []).append(finding)
    known = {
        "group": group_order(states, findings),
        "broker": sorted({name for name, _ in states.brokers}),
        "topic": sorted({topic for group in states.groups.values() for topic, _ in group.queues}),
    }
    for kind, names in known.items():
        for name in names:
            if len(wanted[kind]) < most:
                wanted[kind].setdefault(name, [])
    draw = {"group": _group_part, "broker": _broker_part, "topic": _topic_part}
    parts = [draw[kind](states, Part(Place(kind, name)), words) for kind in PLACE_COLUMNS for name in wanted[kind]]
    for part in parts:
        part.findings = wanted[part.place.kind][part.place.name]
        part.words += [words.counted(len(part.findings), "finding")] if part.findings else []
    return parts


def _group_part(states: NightStates, part: Part, words: Language) -> Part:
    name = part.place.name
    part.at = f"--group {shlex.quote(name)}"
    group = states.groups.get(name)
    if group is None:
        return part
    clients = {row["client_id"] for row in group.sessions}
    part.words = [words.counted(len(clients), "member")] if group.members else []
    part.words += [words.counted(sum(group.queues.values()), "queue")]
    part.words += [words.filled("lag up to {n}", n=number(group.most_lag))] if group.most_lag else []
    part.words += group.strategies if group.shares_queues else [words.filled("each member reads all queues")]
    sessions = [
        [
            str(row["client_id"]),
            clock(row["from_ts"], states.night.last),
            clock(row["to_ts"], states.night.last),
            words.filled(HOW.get(row["ended"], "last sign of life")),
        ]
        for row in sorted(group.sessions, key=lambda row: (row["from_ts"], row["client_id"]))
    ]
    queues: list[list[Cell]] = [
        [Place("topic", topic), Place("broker", broker), number(count), *_lag_words(group, topic)]
        for (topic, broker), count in group.queues.items()
    ]
    part.tables = [
        _table(words, "Members", ["client", "from", "to", "how it ended"], [list(row) for row in sessions]),
        _table(words, "Queues", ["topic", "broker", "queues", "most lag of the topic", "lag at the end"], queues),
    ]
    return part


def _lag_words(group: GroupStates, topic: str) -> list[str]:
    known = [lag for lag in group.lag.get(topic, []) if lag is not None]
    return [number(max(known, default=None)), number(group.lag[topic][-1] if topic in group.lag else None)]


def _broker_part(states: NightStates, part: Part, words: Language) -> Part:
    name = part.place.name
    quoted = shlex.quote(name)
    part.at = f"--broker {quoted}"
    ids = sorted(broker_id for known, broker_id in states.brokers if known == name)
    outages = [states.outages((name, broker_id)) for broker_id in ids]
    roles = [_role(broker_id, words) for broker_id in ids]
    part.words = [words.filled(" and ").join(roles)] if roles else []
    part.words += [words.counted(sum(outages), "outage")] if any(outages) else []
    names = sorted({setting for broker_id in ids for setting in states.settings.get((name, broker_id), {})})
    values: list[list[Cell]] = [
        [setting, *(states.settings.get((name, broker_id), {}).get(setting, "–") for broker_id in ids)]
        for setting in names
    ]
    heads = [words.filled("setting"), *roles]
    part.tables = [PartTable(words.filled("Settings at the end of the night"), heads, values)]
    part.commands = [f"mqreplay ready {quoted}"]
    return part


def _topic_part(states: NightStates, part: Part, words: Language) -> Part:
    topic = part.place.name
    by_broker: dict[str, int] = {}
    readers: list[list[Cell]] = []
    for group in states.groups.values():
        held = {broker: count for (of, broker), count in group.queues.items() if of == topic}
        for broker, count in held.items():
            by_broker[broker] = max(by_broker.get(broker, 0), count)
        if held:
            readers.append([Place("group", group.name), number(sum(held.values())), *_lag_words(group, topic)])
    part.words = (
        [words.counted(sum(by_broker.values()), "queue"), words.counted(len(readers), "group")] if by_broker else []
    )
    queues: list[list[Cell]] = [[Place("broker", broker), number(count)] for broker, count in sorted(by_broker.items())]
    part.tables = [
        _table(words, "Queues that groups read", ["broker", "queues"], queues),
        _table(words, "Groups", ["group", "queues", "most lag", "lag at the end"], readers),
    ]
    return part


def _table(words: Language, caption: str, heads: Sequence[str], rows: list[list[Cell]]) -> PartTable:
    return PartTable.of(words.filled(caption), [words.filled(head) for head in heads], rows)


def json_text(
    states: NightStates,
    order: Sequence[str],
    findings: Sequence[Row],
    anchors: Mapping[Place, str],
    words: Language | None = None,
) -> str:
    """Return the states as JSON without characters that end an element of HTML.

    ``order`` has the groups, the most interesting first. f: the first instant (ms since 1970), n: ms until the last
    one, s: ms of a slot, b: brokers, g: groups, m: groups left out, o: findings. Names come with the ids of their
    parts on the page. ``words`` has the language of the roles of brokers.
    """
    shown = [states.groups[name] for name in order[:MOST_STATE_GROUPS]]
    content: dict[str, Any] = {
        "f": round(states.night.first.timestamp() * 1_000),
        "n": states.last,
        "s": states.slot,
        "b": [
            [visible(broker_words(*broker, words)), anchors.get(Place("broker", broker[0]), ""), steps]
            for broker, steps in states.brokers.items()
        ],
        "g": [_group(group, anchors) for group in shown],
        "m": len(order) - len(shown),
        "o": [_finding(states, finding) for finding in findings if finding["from_ts"] is not None],
    }
    return in_html(json.dumps(content, separators=(",", ":")))


def in_html(text: str) -> str:
    """Return JSON without characters that end an element of HTML.

    >>> in_html('{"a":"</template>"}')
    '{"a":"\\\\u003c/template\\\\u003e"}'
    """
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _group(group: GroupStates, anchors: Mapping[Place, str]) -> list[Any]:
    without = group.without_owner if group.shares_queues else []
    return [visible(group.name), anchors.get(Place("group", group.name), ""), group.members, without, group.lag_steps]


def _finding(states: NightStates, finding: Row) -> list[Any]:
    begin, end = finding["from_ts"], finding["to_ts"]
    place = finding["consumer_group"] or finding["broker_name"] or finding["topic"] or ""
    since = states.begin_ms(begin)
    until = None if end is None else states.end_ms(end)
    rank = WORST_FIRST.index(finding["severity"])
    return [finding["finding_id"], rank, finding["kind"], visible(place), since, until]
