"""Messages of a recorder to the operator."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mqreplay.recorder.network.estate import Estate
from mqreplay.recorder.network.topology import Broker
from mqreplay.recorder.remoting.connection import Traffic
from mqreplay.words.quantity import counted

MOST_LISTED: Final = 10  # brokers of a state with a name of their own


@dataclass(slots=True)
class Status:
    """Figures of a run."""

    brokers: int = 0
    requests: int = 0  # at the last line
    polled: set[str] = field(default_factory=set)  # kinds
    lines: Counter[str] = field(default_factory=Counter)  # written lines by kind of record


def cluster_lines(
    cluster: str, brokers: Sequence[Broker], tried: Mapping[str, str | None], has_memory: bool
) -> list[str]:
    """Return lines about what is recorded and what cannot be judged.

    ``tried``: the errors of servers by address, None for one that answers; no entry for one that was not tried in time.
    Of each state a few brokers have a line, and the others are counted.
    """
    lines = [f"cluster {cluster}: {counted(len(brokers), 'broker')}"]
    states: dict[str, list[str]] = {"answer": [], "do not answer": [], "are not tried yet": []}
    for each in brokers:
        role = "master" if each.key[1] == 0 else "slave"
        trouble = tried.get(each.addr, "not tried yet")
        state = "answer" if trouble is None else "do not answer" if each.addr in tried else "are not tried yet"
        text = f"  {each.key[0]}-{each.key[1]} {each.addr} ({role})"
        states[state].append(text if trouble is None else f"{text}: {trouble}")
    for state, texts in states.items():
        most = MOST_LISTED if len(texts) > MOST_LISTED + 1 else len(texts)
        lines += texts[:most]
        if most < len(texts):
            lines.append(f"  and {len(texts) - most:,} more that {state}")
    if not has_memory:
        lines.append("no physical memory given: slave suggestions stay undetermined; give --physical-memory")
    return lines


def found_line(estate: Estate) -> str:
    """Return the groups, clients and topics of the first round."""
    return f"recording {_extent(estate)}"


def minute_line(status: Status, estate: Estate, traffic: Mapping[str, Traffic], silent: set[str]) -> str:
    """Return the progress line of the last minute."""
    total = sum(each.requests for each in traffic.values())
    requests, status.requests = total - status.requests, total
    text = f"{counted(status.brokers, 'broker')}, {_extent(estate)}; {counted(requests, 'request')} in the last minute"
    if not silent:
        return text
    more = f" and {len(silent) - MOST_LISTED:,} more" if len(silent) > MOST_LISTED else ""
    return f"{text}; no answer from {', '.join(sorted(silent)[:MOST_LISTED])}{more}"


def end_lines(folder: Path, lines: Mapping[str, int], size: int) -> list[str]:
    """Return lines about what was written, and the next command."""
    counts = [f"{number:>10,}  {stem}" for stem, number in sorted(lines.items())]
    return [
        f"{folder}: {size / 1e6:,.1f} MB; lines written by this run:",
        *counts,
        f"next: mqreplay nightly {shlex.quote(str(folder))} --warehouse DIR",
    ]


def _extent(estate: Estate) -> str:
    groups = estate.groups()
    active = sum(1 for group in groups if estate.has_members(group))
    clients = {client_id for group, client_id in estate.clients() if estate.is_group(group)}
    topics = counted(len(estate.consumed_topics()), "topic")
    behind = estate.proxied_clients() - clients
    more = f" and {len(behind):,} behind proxies" if behind else ""
    return (
        f"{counted(len(groups), 'group')} ({active:,} with members), {counted(len(clients), 'client')}{more}, {topics}"
    )
