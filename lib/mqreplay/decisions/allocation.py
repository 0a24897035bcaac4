"""gold.allocation: each rebalance against the rule of RebalanceImpl: for the lists that it saw, the client takes the
result of its AllocateMessageQueueStrategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.core.message_queue import MessageQueue
from mqreplay.decisions.decision import Decision
from mqreplay.decisions.strategies import Allocate, GroupSettings, allocate_with
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.distinct import distinct_values
from mqreplay.evidence.arrays.frame_arrays import MOST_ITEMS, slices
from mqreplay.evidence.frames import columns
from mqreplay.evidence.members.observed_clients import RUNNING_INFO
from mqreplay.words.errors import MqreplayError, RocketMQError, SettingsLacking, UnknownStrategy

# RocketMQ's rule was not applied, because an input is missing.
NOT_APPLIED = (SettingsLacking, UnknownStrategy)
_LISTS = ["mq_all", "cid_all", "mq_divided"]
_INPUT = ["strategy", "consumer_group", "client_id", "topic", "source", "mq_all", "cid_all"]
_CASE = [*_INPUT, "mq_divided", "error"]
# Columns of silver.rebalance that a verdict depends on.
JUDGED = (*_CASE, "ts")
_QUEUE = pa.struct([("broker_name", pa.large_string()), ("queue_id", pa.int32())])
VERDICT: dict[str, pl.DataType] = {
    "expected": pl.List(pl.Struct({"broker_name": pl.String, "queue_id": pl.Int32})),
    **columns("judgement", "reason"),
}
Queues = Sequence[tuple[str, int]]


class _Answer(NamedTuple):
    """The result of a strategy, or the reason why there is none."""

    queues: Queues | None = None
    error: MqreplayError | None = None


def allocation(
    rebalance: pl.DataFrame, groups: Mapping[str, GroupSettings] | None = None, virtual_node_cnt: int = 10
) -> pl.DataFrame:
    """Return gold.allocation, one row per rebalance: queues by the strategy, queues of the client, judgement.

    As `allocation_rows` of the rebalances with their `verdicts`.
    """
    return allocation_rows(rebalance.hstack(verdicts(rebalance, groups, virtual_node_cnt)))


def allocation_rows(judged: pl.DataFrame) -> pl.DataFrame:
    """Return gold.allocation of rows of silver.rebalance with VERDICT."""
    return judged.select(
        "day",
        "consumer_group",
        "topic",
        "client_id",
        pl.col("ts").alias("rebalance_ts"),
        "strategy",
        "cid_all",
        "mq_all",
        "expected",
        pl.col("mq_divided").alias("actual"),
        "judgement",
        "reason",
        "record_id",
    )


def verdicts(
    rebalance: pl.DataFrame,
    groups: Mapping[str, GroupSettings] | None = None,
    virtual_node_cnt: int = 10,
    most_items: int = MOST_ITEMS,
) -> pl.DataFrame:
    """Return VERDICT of each rebalance: the queues that its strategy gives, judgement and reason.

    ``groups``: parameters of a group's strategies, see strategies.py. ``virtual_node_cnt``: places of a client
    on the ring of CONSISTENT_HASH, unless its group has its own number. ``most_items``: queues and clients in the
    lists of the rebalances that are judged at once. ``rebalance`` has the columns JUDGED of silver.rebalance, or those
    of observed_rebalances.py, which has two columns more.
    """
    if "lacking" not in rebalance.columns:
        rebalance = rebalance.with_columns(pl.lit(False).alias("takes_all"), pl.lit(None, pl.String).alias("lacking"))
    law = allocate_with(groups or {}, virtual_node_cnt)
    # A client's rebalances are together, because most of them repeat the one before.
    parts = list(slices(rebalance, _LISTS, ["consumer_group", "topic", "client_id", "ts"], most_items))
    found = pl.concat([pl.DataFrame(schema=VERDICT), *(_verdicts(rebalance[rows], law) for rows in parts)])
    return found[np.argsort(np.concatenate([np.empty(0, np.int64), *parts]))]


def _verdicts(rebalance: pl.DataFrame, law: Allocate) -> pl.DataFrame:
    """Return VERDICT of each row; each distinct input is judged once."""
    cases, case_of = distinct_values(rebalance, [*_CASE, "takes_all", "lacking"])
    inputs, input_of = distinct_values(cases, _INPUT)
    answers = _answers(inputs, law)
    taken = [None if queues is None else _pairs(queues) for queues in cases["mq_divided"]]
    known = cases.select(
        pl.col("cid_all").is_not_null() & pl.col("mq_all").is_not_null(),
        pl.col("strategy").is_not_null() | pl.col("takes_all"),
        "error",
        "takes_all",
        "lacking",
    )
    all_queues = cases["mq_all"]
    expected: list[Queues | None] = []
    judgements: list[tuple[str, str | None]] = []
    rows = zip(known.iter_rows(), input_of, taken, all_queues, strict=True)
    for (lists, strategy, error, takes_all, reason), number, actual, mq_all in rows:
        lacking = reason if reason is not None else _lacking(lists, strategy, actual, error)
        answer = answers[number] if lacking is None else _Answer()
        if takes_all and lacking is None:  # RebalanceImpl#rebalanceByTopic asks no strategy when it broadcasts
            answer = _Answer(_pairs(mq_all))
        expected.append(answer.queues)
        judgements.append(("undetermined", lacking) if lacking is not None else _judged(answer, actual, error))
    columns = [
        _queue_lists(expected),
        pl.Series([judgement for judgement, _ in judgements], dtype=pl.String),
        pl.Series([reason for _, reason in judgements], dtype=pl.String),
    ]
    return pl.DataFrame(columns, schema=VERDICT)[case_of]


def _lacking(lists: bool, strategy: bool, actual: Queues | None, error: str | None) -> str | None:
    """Return the missing input of a rebalance as a reason; None if nothing is missing."""
    if not lists:
        return "the recording lacks the lists that the client saw"
    if not strategy:
        return "the recording lacks the client's strategy"
    if actual is None and error is None:
        return "the recording lacks the queues that the client took"
    return None


def _judged(answer: _Answer, actual: Queues | None, error: str | None) -> tuple[str, str | None]:
    """Return judgement and reason. ``actual`` are the client's queues, ``error`` is its error."""
    if isinstance(answer.error, NOT_APPLIED):
        return "undetermined", f"not judged: {answer.error}"
    if answer.error is not None:
        return "agree" if error is not None else "differ", f"the strategy refuses these lists: {_cause(answer.error)}"
    if answer.queues is not None and actual is not None and Counter(answer.queues) == Counter(actual):
        return "agree", "the client took what the strategy gives"
    if error is not None:
        return "differ", f"the client failed: {error}"
    return "differ", "the client took other queues than the strategy gives for the lists it saw"


def _cause(error: MqreplayError) -> str:
    """Return the message of an error, or the class of a Java exception without one."""
    if isinstance(error, RocketMQError):
        return error.java_class if error.message is None else error.message
    return str(error)


def _answers(inputs: pl.DataFrame, law: Allocate) -> list[_Answer]:
    """Return the result of the strategy for each distinct input; none if a list or the strategy is null."""
    queue_lists, queue_list_of = distinct_values(inputs, ["topic", "mq_all"])
    client_lists, client_list_of = distinct_values(inputs, ["cid_all"])
    queues = [
        None if listed is None else [MessageQueue(topic, *queue) for queue in _pairs(listed)]
        for topic, listed in zip(queue_lists["topic"], queue_lists["mq_all"], strict=True)
    ]
    clients = [None if listed is None else listed.to_list() for listed in client_lists["cid_all"]]
    # Polls show queues by topic: CONFIG gives its whole list for each, and the client holds those of other topics there
    # (RebalanceImpl#updateProcessQueueTableInRebalance).
    of_topic = pl.when(pl.col("source") == RUNNING_INFO).then("topic")
    names = inputs.select("strategy", "consumer_group", "client_id", of_topic).iter_rows()
    return [
        _answer(law, strategy, group, client_id, topic, queues[queue_list], clients[client_list])
        for (strategy, group, client_id, topic), queue_list, client_list in zip(
            names, queue_list_of, client_list_of, strict=True
        )
    ]


def _answer(
    law: Allocate,
    strategy: str | None,
    consumer_group: str,
    client_id: str,
    of_topic: str | None,
    queues: list[MessageQueue] | None,
    clients: list[str | None] | None,
) -> _Answer:
    if strategy is None or queues is None or clients is None:
        return _Answer()
    try:
        queues_of_client = law(strategy, consumer_group, client_id, queues, clients)
    except MqreplayError as error:
        return _Answer(error=error)
    if queues_of_client is None:
        return _Answer()
    shown = [queue for queue in queues_of_client if of_topic is None or queue.topic == of_topic]
    return _Answer([(queue.broker_name, queue.queue_id) for queue in shown])


def _pairs(queues: pl.Series) -> Queues:
    """Return a list of queues as broker names and queue ids."""
    fields = (queues.struct.field(name).to_list() for name in ("broker_name", "queue_id"))
    return list(zip(*fields, strict=True))


def _queue_lists(lists: Iterable[Queues | None]) -> pl.Series:
    """Return a column of lists of queues."""
    listed = list(lists)
    queues = [queue for each in listed for queue in each or ()]
    names, ids = (pa.array([queue[place] for queue in queues], _QUEUE.field(place).type) for place in (0, 1))
    ends = accumulate((len(each or ()) for each in listed), initial=0)
    column = pa.LargeListArray.from_arrays(
        pa.array(ends, pa.int64()),
        pa.StructArray.from_arrays([names, ids], fields=list(_QUEUE)),
        mask=pa.array([each is None for each in listed], pa.bool_()),
    )
    return pl.Series(pl.from_arrow(column))


ALLOCATION: Final = Decision(
    table="gold.allocation",
    instant="rebalance_ts",
    one="rebalance",
    many="rebalances",
    importance=1,
    phrases=("{strategy} of {topic}", "expected {expected}", "took {actual}", "{judgement}: {reason}"),
    needs=(Need("rebalance_log", or_polled=("assignments",)),),
)
