"""The settings of a group that would have removed findings of its night, each proved by what whatif computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.decisions.removed_findings import SHOWN, shares_with
from mqreplay.decisions.supposed_shares import lists_seen, moved_bounds, supposed_owners
from mqreplay.decisions.suppositions import GroupConsumers, GroupStrategy, Supposition, TopicQueues, text_of
from mqreplay.errors import InputError
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.moment.names import require_names
from mqreplay.night.what_if import day_asked
from mqreplay.settings import Settings

STRATEGIES: Final = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
CONSUMERS: Final = (-1, 1, 2, 3)
WHY_NOT: Final = "strategy, consumers and queues do not decide it, or the lists that members saw do not show it"


@dataclass(frozen=True)
class Advice:
    """A setting: what it removes, what it would bring, and how many queues move for it (bounds)."""

    supposition: Supposition
    removes: list[str]
    brings: list[str]
    moved_min: int
    moved_max: int
    queues: int

    def as_plain(self) -> dict[str, Any]:
        """Return the advice as plain values, for JSON."""
        return vars(self) | {"supposition": text_of(self.supposition)}


@dataclass(frozen=True)
class Advised:
    """``findings``: rows of gold.finding of the group. ``open``: ids of those that no setting was found to remove."""

    cluster: str
    group: str
    findings: list[dict[str, Any]]
    advice: list[Advice]
    open: list[str]


def advise(root: str, settings: Settings, group: str, day: str | None, cluster: str | None) -> Advised:
    """Return the settings that would have removed findings of a group. Raises InputError."""
    night = recorded(Warehouse(root), cluster)
    require_names(night, [group])
    of_day = RowFilter(night.cluster, days=frozenset({day_asked(night, day, None)}))
    of_group = pl.col("consumer_group") == group
    found = night.warehouse.read("gold.finding", of_day).filter(of_group).sort("from_ts", "finding_id").collect()
    rebalances = night.warehouse.read("silver.rebalance", of_day).filter(of_group).collect()
    rules = (settings.strategies.groups, settings.strategies.virtual_node_cnt)
    uneven = settings.findings.uneven_queues
    usual = _usual(lists_seen(rebalances))
    if usual.is_empty():
        raise InputError(f"no rebalance of {group} with its lists is recorded: there is nothing to decide again")
    shown: dict[str, tuple[str, pl.DataFrame]] = {}
    for row in found.iter_rows(named=True):
        middle = row["from_ts"] if row["to_ts"] is None else row["from_ts"] + (row["to_ts"] - row["from_ts"]) / 2
        lists = lists_seen(rebalances.filter(pl.col("ts") <= middle)).sort("to_ts", "rebalances")
        lists = lists.unique("topic", keep="last", maintain_order=True)
        before = shares_with(lists, (), *rules, uneven) if row["kind"] in SHOWN else None
        if before is not None and SHOWN[row["kind"]](before):
            shown[row["finding_id"]] = (row["kind"], lists)
    at_rest = shares_with(usual, (), *rules, uneven)
    advice = []
    for supposed in _candidates(group, usual, [lists for _, lists in shown.values()]):
        after = {key: shares_with(lists, [supposed], *rules, uneven) for key, (_, lists) in shown.items()}
        removes = [key for key, each in after.items() if each is not None and not SHOWN[shown[key][0]](each)]
        usually = shares_with(usual, [supposed], *rules, uneven)
        if not removes or usually is None or at_rest is None:
            continue
        brings = [kind for kind, is_so in SHOWN.items() if is_so(usually) and not is_so(at_rest)]
        owners = supposed_owners(usual, [supposed], *rules)
        advice.append(Advice(supposed, removes, brings, *moved_bounds(owners), len(owners)))
    ranked = sorted(advice, key=lambda each: (-len(each.removes), len(each.brings), each.moved_max))
    solved = {key for each in advice for key in each.removes}
    left = [row["finding_id"] for row in found.iter_rows(named=True) if row["finding_id"] not in solved]
    return Advised(night.cluster, group, found.to_dicts(), ranked, left)


def _usual(lists: pl.DataFrame) -> pl.DataFrame:
    return lists.sort("rebalances", "to_ts").unique("topic", keep="last", maintain_order=True)


def _candidates(group: str, usual: pl.DataFrame, seen: list[pl.DataFrame]) -> Iterator[Supposition]:
    """Yield strategies, consumers and queues that differ from those of the night."""
    used = set(usual.explode("members").unnest("members")["strategy"].drop_nulls().to_list())
    yield from (GroupStrategy(group, name) for name in STRATEGIES if used != {name})
    yield from (GroupConsumers(group, added) for added in CONSUMERS)
    every = pl.concat([usual, *seen]).filter(~pl.col("topic").str.starts_with(RETRY))
    broker = pl.col("mq_all").list.eval(pl.element().struct.field("broker_name")).list.n_unique()
    numbers = every.select("topic", broker.alias("brokers"), pl.col("mq_all").list.len(), pl.col("cid_all").list.len())
    for (topic,), rows in sorted(numbers.group_by("topic"), key=lambda each: str(each[0])):
        brokers, queues, members = (int(rows[name].max()) for name in ("brokers", "mq_all", "cid_all"))  # type: ignore[arg-type]
        each, enough = -(-queues // brokers), -(-members // brokers)
        yield from (TopicQueues(str(topic), number) for number in sorted({each + 1, 2 * each, max(enough, each + 1)}))
