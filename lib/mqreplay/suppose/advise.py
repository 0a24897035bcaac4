"""The settings of a group that would have removed findings of its night, each proved by what whatif computes."""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decisions.keeping_up import NO_LISTS
from mqreplay.decisions.removed_findings import SHOWN_KINDS, shares_with
from mqreplay.decisions.supposed_shares import NEW, lists_seen, moved_bounds, supposed_owners
from mqreplay.decisions.suppositions import (
    BrokerSetting,
    GroupConsumers,
    GroupStrategy,
    Supposition,
    TopicQueues,
    text_of,
)
from mqreplay.engines.engine import Engine
from mqreplay.findings.texts import advice_of
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.moment.names import require_names
from mqreplay.report.next_step import advice_parts, broker_addresses, names_of
from mqreplay.settings import Settings
from mqreplay.suppose.advise_backlog import (
    ASSUMPTION,
    BACKLOGS,
    RESETS,
    Backlog,
    backlog_of,
    middle_of,
    text_of_backlog,
)
from mqreplay.suppose.advise_reads import kept_on_master
from mqreplay.suppose.backlog import Progress, progress
from mqreplay.suppose.what_if import day_asked, predict, rebalances_of, running

STRATEGIES: Final = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
CONSUMERS: Final = (-1, 1, 2, 3)
SLAVE_PULL: Final = "slave_pull"
NOT_SHOWN: Final = "the lists that its members saw do not show it"
SENTENCE: Final = re.compile(r"(?:`[^`]*`|[^`.。]|\.(?!\s|$))*[.。]")


@dataclass(frozen=True)
class Advice:
    """A setting: the findings that it removes, the kinds that it would raise, and how many queues move (bounds).

    ``queues``: those of the group before; ``new``: those that come. ``size``: how many members or queues come or leave.
    ``command``: the options of whatif. ``rates``: what arrived and was finished, by finding,
    where rates decide.
    """

    suppositions: tuple[Supposition, ...]
    setting: str
    removes: list[str]
    brings: list[str]
    moved_min: int
    moved_max: int
    queues: int
    new: int
    size: int
    command: str
    rates: dict[str, list[str]] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """Return the advice as plain values, for JSON."""
        named = {name: value for name, value in vars(self).items() if name not in ("suppositions", "setting", "rates")}
        return {"supposition": self.setting} | named


@dataclass(frozen=True)
class Note:
    """What to know of a finding that no strategy, number of consumers or queues is shown to remove.

    ``next``: its cause, or what to do first. ``command``: the options of whatif that show what ``lines`` say; or empty.
    """

    finding_id: str
    lines: list[str]
    next: str
    command: str = ""

    def as_plain(self) -> dict[str, Any]:
        """Return the note as plain values, for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Advised:
    """``findings``: rows of gold.finding of the group. ``open``: ids of those that no setting was found to remove.

    ``notes``: one for each of ``open``. ``backlogs``: what would have kept up, by finding, if ``assumption`` holds.
    """

    cluster: str
    group: str
    day: dt.date
    findings: list[dict[str, Any]]
    advice: list[Advice]
    open: list[str]
    notes: list[Note]
    backlogs: dict[str, Backlog]
    assumption: str

    def as_plain(self) -> dict[str, Any]:
        """Return the advice as plain values, for JSON."""
        ids = {"open": self.open, "findings": [row["finding_id"] for row in self.findings]}
        head = {"cluster": self.cluster, "consumer_group": self.group, "day": self.day.isoformat()}
        each = {name: [one.as_plain() for one in getattr(self, name)] for name in ("advice", "notes")}
        backlogs = {key: one.as_plain() for key, one in self.backlogs.items()}
        return {**head, **ids, **each, "backlogs": backlogs, "assumption": self.assumption}


def advise(
    root: str,
    settings: Settings,
    group: str,
    day: str | None,
    cluster: str | None,
    words: Language | None = None,
) -> Advised:
    """Return the settings that would have removed findings of a group. Raises InputError.

    First steps, which are of the advice of findings, are in the language ``words``; None: English.
    """
    warehouse = Warehouse(root)
    night = recorded(warehouse, cluster)
    require_names(night, [group])
    asked = day_asked(night, day, None)
    with running(warehouse, night.cluster, settings, "local", lambda line: None) as engine:
        return _Adviser(night, asked, settings, group, engine, words or in_english()).advised()


class _Adviser:
    """The findings of a group, and the lists that its members saw."""

    def __init__(
        self, night: Recorded, day: dt.date, settings: Settings, group: str, engine: Engine, words: Language
    ) -> None:
        self._words = words
        self._night, self._day, self._settings, self._group, self._engine = night, day, settings, group, engine
        self._rules = (settings.strategies.groups, settings.strategies.virtual_node_cnt)
        self._uneven = settings.findings.uneven_queues
        self._addresses = broker_addresses(night.warehouse, night.cluster)
        self._pulls: dict[BrokerSetting, pl.DataFrame] = {}
        rows = night.warehouse.read("gold.finding", RowFilter(night.cluster, days=frozenset({day})))
        self._kinds = rows.select("finding_id", "kind").collect()
        self._findings = rows.filter(pl.col("consumer_group") == group).sort("from_ts", "finding_id").collect()
        self._rebalances = rebalances_of(night.warehouse, engine, night.cluster, day, settings, group)
        seen = lists_seen(self._rebalances).sort("rebalances", "to_ts")
        self._usual = seen.unique("topic", keep="last", maintain_order=True)

    def advised(self) -> Advised:
        """Return what removes findings, and notes on the others."""
        found = self._findings.to_dicts()
        depend = [row for row in found if row["kind"] in (*SHOWN_KINDS, *BACKLOGS)] if len(self._usual) else []
        lists = {row["finding_id"]: self._lists_of(row) for row in depend}
        of_shares = self._of_shares([row for row in found if row["kind"] in SHOWN_KINDS], lists)
        backlogs = self._backlogs([row for row in found if row["kind"] in BACKLOGS], lists)
        advice = [*of_shares, *self._of_backlogs(backlogs, lists)]
        advice.sort(key=lambda each: (-len(each.removes), len(each.brings), each.moved_max, each.moved_min, each.size))
        solved = {key for each in advice for key in each.removes}
        left = [row for row in found if row["finding_id"] not in solved]
        notes = [self._note(row, backlogs.get(row["finding_id"])) for row in left]
        ids = [row["finding_id"] for row in left]
        assumption = ASSUMPTION if backlogs else ""
        return Advised(self._night.cluster, self._group, self._day, found, advice, ids, notes, backlogs, assumption)

    def _lists_of(self, row: dict[str, Any]) -> pl.DataFrame:
        """Return the lists that members saw last before the middle of a finding."""
        middle = middle_of(row["from_ts"], row["to_ts"] or row["from_ts"])
        lists = lists_seen(self._rebalances.filter(pl.col("ts") <= middle)).sort("to_ts", "rebalances")
        return lists.unique("topic", keep="last", maintain_order=True)

    def _of_shares(self, rows: Sequence[dict[str, Any]], lists: dict[str, pl.DataFrame]) -> Iterator[Advice]:
        """Yield settings that remove findings which the shares of members show."""
        shown: dict[str, str] = {}
        for row in rows if lists else ():
            before = shares_with(lists[row["finding_id"]], (), *self._rules, self._uneven)
            if before is not None and SHOWN_KINDS[row["kind"]](before):
                shown[row["finding_id"]] = row["kind"]
        for supposed in _candidates(self._group, self._usual, [lists[key] for key in shown]) if shown else ():
            after = {key: shares_with(lists[key], [supposed], *self._rules, self._uneven) for key in shown}
            removes = [key for key, each in after.items() if each is not None and not SHOWN_KINDS[shown[key]](each)]
            made = self._priced((supposed,), text_of(supposed), removes, self._usual) if removes else None
            # A kind that it removes at one time and raises at another is no gain.
            gain = [key for key in removes if made is not None and shown[key] not in made.brings]
            if made is not None and gain:
                yield replace(made, removes=gain)

    def _priced(
        self, supposed: tuple[Supposition, ...], setting: str, removes: list[str], lists: pl.DataFrame
    ) -> Advice | None:
        """Return a setting with what it would move and raise; None if that is not known."""
        before = shares_with(lists, (), *self._rules, self._uneven)
        after = shares_with(lists, supposed, *self._rules, self._uneven)
        if before is None or after is None:
            return None
        brings = [kind for kind, is_so in SHOWN_KINDS.items() if is_so(after) and not is_so(before)]
        owners = supposed_owners(lists, supposed, *self._rules)
        new = int((owners["change"] == NEW).sum())
        size = sum(_size(each, lists) for each in supposed)
        moved = moved_bounds(owners)
        return Advice(supposed, setting, removes, brings, *moved, len(owners) - new, new, size, _command(supposed))

    def _backlogs(self, rows: Sequence[dict[str, Any]], lists: dict[str, pl.DataFrame]) -> dict[str, Backlog]:
        if not rows or not lists:
            return {}
        known = self._progress()
        stuck_s = self._settings.findings.stuck_s
        return {
            row["finding_id"]: backlog_of(known, row, lists[row["finding_id"]], stuck_s, *self._rules) for row in rows
        }

    def _progress(self) -> Progress:
        resets = self._findings.filter(pl.col("kind").is_in(RESETS)).select("topic", "from_ts", "to_ts")
        return progress(self._night, self._group, self._day, resets)

    def _of_backlogs(self, backlogs: dict[str, Backlog], lists: dict[str, pl.DataFrame]) -> Iterator[Advice]:
        """Yield settings that would have kept up with a backlog; equal ones together."""
        by_setting: dict[str, list[str]] = {}
        for key, found in backlogs.items():
            if found.setting:
                by_setting.setdefault(found.setting, []).append(key)
        for setting, keys in by_setting.items():
            first = backlogs[keys[0]]
            seen = lists[keys[0]]
            if not first.had_members:
                seen = seen.filter(pl.col("topic") == first.topic)
            made = self._priced(first.suppositions, setting, keys, seen)
            if made is None:
                continue
            rates = {key: text_of_backlog(backlogs[key]) for key in keys}
            at = f"{made.command} --at {first.middle:%Y-%m-%dT%H:%M:%S}" if made.command else ""
            made = replace(made, rates=rates, command=at)
            # Queues that nobody owned do not move.
            yield made if first.had_members else replace(made, moved_min=0, moved_max=0)

    def _note(self, row: dict[str, Any], backlog: Backlog | None) -> Note:
        following = self._next_of(row)
        if row["kind"] == SLAVE_PULL:
            kept = kept_on_master(self._night, self._day, self._group, row["broker_name"], self._pulls_with)
            if kept is not None:
                return Note(row["finding_id"], [kept.text], following, kept.command)
            return Note(row["finding_id"], ["no answer that suggested a broker can be decided again"], following)
        if backlog is not None:
            return Note(row["finding_id"], text_of_backlog(backlog), following)
        depends = row["kind"] in (*BACKLOGS, *SHOWN_KINDS)
        return Note(row["finding_id"], [NOT_SHOWN if len(self._usual) else NO_LISTS] if depends else [], following)

    def _pulls_with(self, setting: BrokerSetting) -> pl.DataFrame:
        if setting not in self._pulls:
            night, groups = self._night, [self._group]
            of = (night.warehouse, self._engine, night.cluster, self._day, self._settings)
            self._pulls[setting] = predict(*of, [setting], readers=groups).pulls
        return self._pulls[setting]

    def _next_of(self, row: dict[str, Any]) -> str:
        """Return the cause of a finding, or the first step of its advice."""
        if (cause := row["follows_from"]) is not None:
            kinds = self._kinds.filter(pl.col("finding_id") == cause)["kind"].to_list()
            return f"follows from {' '.join(kinds)} {cause[:8]}"
        text = "`".join(advice_parts(advice_of(row, self._words), names_of(row, self._addresses)))
        first = SENTENCE.match(text)
        return text if first is None else first[0]


def _candidates(group: str, usual: pl.DataFrame, seen: list[pl.DataFrame]) -> Iterator[Supposition]:
    """Yield strategies, consumers and queues that differ from those of the night."""
    every = pl.concat([usual, *seen]).filter(~pl.col("topic").str.starts_with(RETRY))
    used = set(every.explode("members").unnest("members")["strategy"].drop_nulls().to_list())
    names = dict.fromkeys((*STRATEGIES, *sorted(used)))  # a group may go back to one of its own
    yield from (GroupStrategy(group, name) for name in names if used != {name})
    broker = pl.col("mq_all").list.eval(pl.element().struct.field("broker_name")).list.n_unique()
    members = pl.col("cid_all").list.n_unique()
    numbers = every.select(
        "topic", broker.alias("brokers"), pl.col("mq_all").list.len().cast(pl.Int64), members.alias("members")
    )
    # As many members as a topic has queues, where it has fewer.
    fewer = numbers.select(pl.col("mq_all") - pl.col("members"))["mq_all"]
    fitting = fewer.filter(fewer < 0).to_list()
    yield from (GroupConsumers(group, added) for added in sorted({*CONSUMERS, *fitting}))
    for (topic,), rows in sorted(numbers.group_by("topic"), key=lambda each: str(each[0])):
        brokers, queues, largest = (int(rows[name].max()) for name in ("brokers", "mq_all", "members"))  # type: ignore[arg-type]
        each, enough = -(-queues // brokers), -(-largest // brokers)
        yield from (TopicQueues(str(topic), number) for number in sorted({each + 1, 2 * each, max(enough, each + 1)}))


def _size(supposed: Supposition, lists: pl.DataFrame) -> int:
    """Return how many members or queues come or leave; 1 for a strategy."""
    if isinstance(supposed, GroupConsumers):
        return abs(supposed.added)
    if isinstance(supposed, TopicQueues):
        of_topic = lists.filter(pl.col("topic") == supposed.topic).select(pl.col("mq_all").list.explode())
        each = of_topic.unnest("mq_all").group_by("broker_name").agg(pl.col("queue_id").n_unique().cast(pl.Int64))
        return int((supposed.queues - each["queue_id"]).abs().sum())
    return 1


def _command(supposed: Sequence[Supposition]) -> str:
    options = []
    for each in supposed:
        if isinstance(each, GroupStrategy):
            options += [f"--set strategy={each.strategy} --group {shlex.quote(each.consumer_group)}"]
        elif isinstance(each, GroupConsumers):
            options += [f"--consumers {each.added:+} --group {shlex.quote(each.consumer_group)}"] if each.added else []
        elif isinstance(each, TopicQueues):
            options += [f"--queues {each.queues} --topic {shlex.quote(each.topic)}"]
    return f"mqreplay whatif {' '.join(options)}" if options else ""
