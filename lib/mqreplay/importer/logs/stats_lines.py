"""What stats.log shows, in words: sums of a minute and lags without offsets, from which no decision can be made."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from mqreplay.decode.logs.broker_facts import FallBehind, MinuteCount
from mqreplay.decode.logs.form import Fact
from mqreplay.importer.logs.line_count import OTHER, LineCount
from mqreplay.words.time_span import MINUTE_MS

_PROGRESS: Final = "give mqadmin consumerProgress -g GROUP twice, some minutes apart"
LAG: Final = f"lines of stats.log about the lag of consumers, by {{measure}}: no decision uses them ({_PROGRESS})"
SENT_BACK: Final = (
    "minutes of stats.log in which a group sent messages back: no decision uses them (give rocketmq_client.log of its "
    "consumers, which has the exception of the listener)"
)
NOT_READ: Final = (
    "minutes of stats.log in which a group read nothing of a topic that got messages: no decision uses them "
    f"({_PROGRESS})"
)
_Minutes = dict[tuple[str, str], list[tuple[int, int]]]  # by group and topic: when (epoch ms), and how many


class StatsLines:
    """The facts of one stats.log, counted by what they show. Call `take` for each, then `count`."""

    def __init__(self) -> None:
        """Begin without lines."""
        self._facts = 0
        self._sent: set[tuple[str, int]] = set()  # topics with messages, by minute
        self._counts: dict[str, _Minutes] = {form: defaultdict(list) for form in (SENT_BACK, NOT_READ)}
        self._lags: dict[str, list[tuple[int, int, FallBehind]]] = defaultdict(list)

    def take(self, ts: int, fact: Fact) -> None:
        """Take a fact of a line from ``ts`` (epoch ms)."""
        self._facts += 1
        match fact:
            case FallBehind():
                self._lags[LAG.format(measure=fact.measure)].append((fact.value, ts, fact))
            case MinuteCount("sent", topic, total) if total:
                self._sent.add((topic, ts // MINUTE_MS))
            case MinuteCount("read", topic, 0, group) if group is not None:
                self._counts[NOT_READ][group, topic].append((ts, 0))
            case MinuteCount("sent_back", topic, total, group) if total and group is not None:
                self._counts[SENT_BACK][group, topic].append((ts, total))
            case _:
                pass

    def count(self, lines: LineCount) -> None:
        """Count the lines as left out, each form with what it shows most of."""
        for form, lags in self._lags.items():
            value, ts, fact = max(lags, key=lambda lag: lag[:2])
            much = f"{value:,} bytes" if fact.measure == "size" else f"{value // 1000:,} s"
            self._leave_out(
                lines, form, len(lags), f"{fact.group} on {fact.topic}/{fact.queue_id}: {much} at {_at(ts)}"
            )
        for form, minutes in self._counts.items():
            known = {key: kept for key, each in minutes.items() if (kept := [*self._known(form, key[1], each)])}
            if not known:
                continue
            (group, topic), most = max(known.items(), key=lambda item: (sum(n for _, n in item[1]), len(item[1])))
            total = sum(number for _, number in most)
            shown = f"{group} on {topic}: {f'{total:,} messages, ' if total else ''}{len(most):,} times"
            shown += f" from {_at(most[0][0])} to {_at(most[-1][0])}"
            self._leave_out(lines, form, sum(map(len, known.values())), shown)
        lines.give_up(self._facts, OTHER)

    def _known(self, form: str, topic: str, minutes: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        return (each for each in minutes if form == SENT_BACK or (topic, each[0] // MINUTE_MS) in self._sent)

    def _leave_out(self, lines: LineCount, form: str, number: int, shown: str) -> None:
        lines.give_up(number, form)
        lines.examples.setdefault(form, shown)
        self._facts -= number


def _at(ts: int) -> str:
    return f"{dt.datetime.fromtimestamp(ts / 1000, dt.UTC):%H:%M:%S} UTC"
