"""How many members, or queues, a group needs so that no member gets more messages than it finishes.

A queue has one owner: what arrives in the hottest queue bounds what more members can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from mqreplay.decisions.strategies import GroupSettings
from mqreplay.decisions.supposed_shares import GONE, supposed_owners
from mqreplay.decisions.suppositions import GroupConsumers, Supposition, TopicQueues
from mqreplay.words.keys import QUEUE

MOST_TIMES: Final = 8  # the queues of the night
TRIES: Final = 16  # numbers of members, from the smallest possible one on; then as many as queues
NO_LISTS: Final = "the lists that its members saw were not recorded"
NO_ENDS: Final = "the ends of its queues were not recorded meanwhile"
NO_RATE: Final = "what its members finished is not known"
NOTHING_FINISHED: Final = "its members finished nothing"
NO_OWNERS: Final = "which members would own its queues is not known"
TOO_MUCH: Final = "no number of consumers and queues that was tried keeps up"


class Needed(NamedTuple):
    """Members that keep up; with ``queues`` on each broker, if those of the night are too few."""

    members: int
    queues: int | None


def busiest_member(
    lists: pl.DataFrame,
    suppositions: Sequence[Supposition],
    arrived: pl.DataFrame,
    groups: Mapping[str, GroupSettings],
    nodes: int,
) -> float | None:
    """Return the messages per second that arrive for the member with most of them; None if it is not known.

    ``lists``: one row of `lists_seen`, of one topic. ``arrived``: QUEUE and stored, messages per second. With another
    number of queues, the same messages are spread evenly over them. The members that come or leave may sort anywhere:
    the worse case counts.
    """
    owners = supposed_owners(lists, suppositions, groups, nodes).filter(pl.col("change") != GONE)
    if any(isinstance(each, TopicQueues) for each in suppositions):
        total = None if arrived["stored"].null_count() else arrived["stored"].sum()
        loads = owners.with_columns(pl.lit(total, pl.Float64).alias("stored") / len(owners))
    else:
        loads = owners.join(arrived.select(*QUEUE, "stored"), QUEUE, how="left")
    names = ("after_first", "after_last")
    if loads.is_empty() or loads.select(pl.any_horizontal(pl.col("stored", *names).is_null()).any()).item():
        return None
    if any((loads[name].list.len() == 0).any() for name in names):
        return None  # a queue that nobody owns is never empty
    by_member = [loads.explode(name).group_by(name).agg(pl.col("stored").sum())["stored"].max() for name in names]
    return max(float(each) for each in by_member)  # type: ignore[arg-type]


def needed(
    lists: pl.DataFrame,
    arrived: pl.DataFrame,
    rate: float | None,
    groups: Mapping[str, GroupSettings],
    nodes: int,
) -> Needed | str:
    """Return the fewest members that keep up if each finishes ``rate`` messages per second; with more queues if it
    must be. Or the reason why no number is known.
    """
    if lists.is_empty():
        return NO_LISTS
    if arrived.is_empty() or arrived["stored"].null_count():
        return NO_ENDS
    if not rate:
        return NO_RATE if rate is None else NOTHING_FINISHED
    group, topic = lists.select("consumer_group", "topic").row(0)
    had = lists["cid_all"].list.n_unique().item()
    reason = TOO_MUCH
    for members, queues in _tries(lists, float(arrived["stored"].sum()), rate):
        supposed: list[Supposition] = [GroupConsumers(group, members - had)] if members != had else []
        supposed += [TopicQueues(topic, queues)] if queues is not None else []
        load = busiest_member(lists, supposed, arrived, groups, nodes)
        if load is None:
            reason = NO_OWNERS
        elif load <= rate:
            return Needed(members, queues)
    return reason


def _tries(lists: pl.DataFrame, arrived: float, rate: float) -> Iterator[Needed]:
    least = max(1, -int(-arrived // rate))
    total = lists["mq_all"].list.len().item()
    if least <= total:
        # The largest share falls where the members get one queue less each.
        steps = (-(-total // share) for share in range(-(-total // least), 0, -1))
        numbers = [number for number in dict.fromkeys((least, *steps)) if number >= least]
        yield from (Needed(number, None) for number in dict.fromkeys((*numbers[:TRIES], total)))
    brokers = lists.select(pl.col("mq_all").list.eval(pl.element().struct.field("broker_name")).list.n_unique()).item()
    each = -(-total // brokers)
    enough = max(each + 1, -(-least // brokers))
    for number in (enough, 2 * enough):
        if number > each * MOST_TIMES:
            return
        yield from (Needed(count, number) for count in dict.fromkeys((min(least, number * brokers), number * brokers)))
