"""A known issue of RocketMQ in words, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqreplay.report.data import Row


def known_issue_text(issue: Row) -> str:
    """Return a row of gold.known_issue as a sentence, without its address and advice.

    >>> row = {"issue": 4215, "component": "broker", "versions": ["4.9.3"], "mended_in": "4.9.4", "title": "a fault"}
    >>> known_issue_text(row)
    'apache/rocketmq#4215, mended in 4.9.4. It can explain this: a fault (broker 4.9.3).'
    >>> known_issue_text(row | {"mended_in": None})
    'apache/rocketmq#4215, not mended in any checked release. It can explain this: a fault (broker 4.9.3).'
    """
    who = f"{issue['component']} {', '.join(issue['versions'])}"
    return f"{issue_name(issue)}. It can explain this: {issue['title']} ({who})."


def issue_name(issue: Mapping[str, Any]) -> str:
    """Return the issue of a row of gold.known_issue, and the release that mends it."""
    mended = "not mended in any checked release" if issue["mended_in"] is None else f"mended in {issue['mended_in']}"
    return f"apache/rocketmq#{issue['issue']}, {mended}"
