"""The states of a night as JSON for cursor.js. Keys are one letter: the text is a part of every page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqreplay.language.language import Language
from mqreplay.report.cursor.places import broker_words
from mqreplay.report.data import Row
from mqreplay.report.place_anchor import Place
from mqreplay.report.text import visible
from mqreplay.severity import WORST_FIRST

if TYPE_CHECKING:
    from mqreplay.moment.night_states import GroupStates, NightStates

MOST_GROUPS = 200


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
    shown = [states.groups[name] for name in order[:MOST_GROUPS]]
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
