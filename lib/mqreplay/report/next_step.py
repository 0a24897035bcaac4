"""The advice of a finding, with its commands filled in: they can be copied and run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from mqreplay.report.data import Row

COLUMNS = {"GROUP": "consumer_group", "TOPIC": "topic", "CLIENT_ID": "client_id"}


def names_of(finding: Row) -> dict[str, str]:
    """Return what the words in capitals of an advice's commands mean for a row of gold.finding.

    FINDING is the beginning of the id, as `mqreplay explain` takes it.
    """
    known = {word: str(finding[column]) for word, column in COLUMNS.items() if finding[column] is not None}
    return {"FINDING": str(finding["finding_id"])[:8]} | known


def advice_parts(advice: str, names: Mapping[str, str]) -> list[str]:
    """Return text and commands by turns. In commands, the words that ``names`` has are replaced, quoted for a shell.

    >>> advice_parts("Run `stop -g GROUP -t TOPIC` for a GROUP.", {"GROUP": "my group"})
    ['Run ', "stop -g 'my group' -t TOPIC", ' for a GROUP.']
    >>> advice_parts("A ` without its pair: GROUP", {"GROUP": "g"})
    ['A ` without its pair: GROUP']
    """
    parts = advice.split("`")
    if len(parts) % 2 == 0:
        return [advice]
    return [_named(part, names) if number % 2 else part for number, part in enumerate(parts)]


def _named(command: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[A-Z_]+", lambda word: shlex.quote(names[word[0]]) if word[0] in names else word[0], command)
