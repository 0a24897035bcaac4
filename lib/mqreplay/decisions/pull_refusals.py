"""Pulls that a broker refused, against PullMessageProcessor#processRequest: rows of gold.pull_answer.

What the broker checked is known from its files (topics.json, subscriptionGroup.json), its description and the
heartbeats that it was sent. A refusal agrees if the law gives it for one of the possible inputs. Inputs that the
recording lacks leave it undetermined.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.core import pull_check as law
from mqreplay.core.pull_answer import PULL_OFFSET_MOVED
from mqreplay.core.pull_check import GroupConfig, PullBroker, PullRequest, TopicReadConfig, check_pull
from mqreplay.core.slave_suggestion import SLAVE
from mqreplay.core.version import BROKER_4, BROKER_5
from mqreplay.decisions.pull_answer import COLUMNS, MASTER, answers
from mqreplay.evidence.arrays.frame_arrays import NOWHERE
from mqreplay.evidence.brokers.broker_descriptions import (
    BROKER_KEY,
    PROPERTIES,
    properties_of,
    valid_descriptions,
    version_of,
)
from mqreplay.evidence.brokers.config_copies import PLACE, ConfigCopies
from mqreplay.evidence.members.group_states import GroupStates
from mqreplay.evidence.offsets.held_resets import ResetEvidence

TOPIC, GROUP, BROKER, INFO, FILTER = "topic", "group", "broker", "info", "filter"
DESCRIPTION: Final = "description"
Row = Mapping[str, Any]


class Refusal(NamedTuple):
    """One reason for which a broker refuses a pull: its code, what it checked, and the reason in words."""

    code: int
    decided_by: str
    words: str


# By the beginning of the remark.
REFUSALS: Final[Mapping[str, Refusal]] = {
    "[REJECTREQUEST]": Refusal(law.SYSTEM_BUSY, BROKER, "the slave may not be read (slaveReadEnable)"),
    "the broker[": Refusal(law.NO_PERMISSION, BROKER, "the broker may not be read (brokerPermission)"),
    "subscription group no permission": Refusal(law.NO_PERMISSION, GROUP, "the group is disabled (consumeEnable)"),
    "the consumer group[": Refusal(law.NO_PERMISSION, GROUP, "the group may not broadcast (consumeBroadcastEnable)"),
    "the topic[": Refusal(law.NO_PERMISSION, TOPIC, "the topic may not be read (perm)"),
    "topic[": Refusal(law.TOPIC_NOT_EXIST, TOPIC, "the broker lacks the topic"),
    "queueId[": Refusal(law.SYSTEM_ERROR, TOPIC, "the topic has fewer queues (readQueueNums)"),
    "subscription group [": Refusal(law.SUBSCRIPTION_GROUP_NOT_EXIST, GROUP, "the broker lacks the group"),
    "the consumer's group info not exist": Refusal(
        law.SUBSCRIPTION_NOT_EXIST, INFO, "no consumer of the group was registered with the broker"
    ),
    "the consumer's subscription not exist": Refusal(
        law.SUBSCRIPTION_NOT_EXIST, INFO, "the broker knew a subscription of the group without the topic"
    ),
    "the consumer's subscription not latest": Refusal(
        law.SUBSCRIPTION_NOT_LATEST, INFO, "the broker knew an older subscription of the group"
    ),
    "parse the consumer's subscription failed": Refusal(
        law.SUBSCRIPTION_PARSE_FAILED, FILTER, "the broker could not parse the expression"
    ),
    "The broker does not support": Refusal(
        law.SYSTEM_ERROR, BROKER, "the broker does not filter by properties (enablePropertyFilter)"
    ),
    "The broker's consumer filter data": Refusal(
        law.FILTER_DATA_NOT_EXIST, FILTER, "the broker has no filter of the expression"
    ),
    "the consumer's consumer filter data": Refusal(
        law.FILTER_DATA_NOT_LATEST, FILTER, "the broker has an older filter of the group"
    ),
}
OTHER: Final = "another reason"
UNKNOWN: Final = {
    TOPIC: "the topics of the broker (topics.json) were not recorded",
    GROUP: "the groups of the broker (subscriptionGroup.json) were not recorded",
    BROKER: "the broker is not described in brokers.json",
    FILTER: "no evidence shows what the broker made of the expression",
}
CONTRADICTED: Final = {
    BROKER: "the description of the broker allows it; a setting can be changed while it runs",
    INFO: "the recorded heartbeats allow it; a lost connection also removes a group, and is not recorded",
}
SEEN_AFTER: Final = dt.timedelta(seconds=1)  # how long a request may wait in a broker


class Verdict(NamedTuple):
    """The verdict on one pull; refusal: why the broker refused it, None if it did not."""

    judgement: str
    reason: str
    refusal: str | None = None


@dataclass(frozen=True)
class Inputs:
    """What brokers check a pull against."""

    topics: ConfigCopies
    groups: ConfigCopies
    broker: pl.DataFrame
    states: GroupStates


def inputs(
    topic_config: pl.DataFrame, subscription_group: pl.DataFrame, broker: pl.DataFrame, states: GroupStates
) -> Inputs:
    """Return the inputs by silver tables, and by the states of groups."""
    may_read = (pl.col("perm") & law.PERM_READ) != 0
    topics = ConfigCopies(topic_config, "topic", ~may_read)
    groups = ConfigCopies(subscription_group, "consumer_group", ~pl.col("consume_enable"))
    return Inputs(topics, groups, broker.with_columns(pl.col("properties").cast(PROPERTIES)), states)


IS_REFUSED: Final = (
    pl.col("response_code").is_not_null()
    & pl.col("max_offset").is_null()
    & (pl.col("response_code") != PULL_OFFSET_MOVED)
)


def pull_answers(
    pull: pl.DataFrame, broker: pl.DataFrame, known: Inputs, offset_change: pl.DataFrame, resets: ResetEvidence
) -> pl.DataFrame:
    """Return the verdict on each answered pull of a shard: answers of the store, refusals, and what was forbidden."""
    wrong = forbidden(pull, known)
    allowed = pull if wrong.is_empty() else pull.join(wrong, "record_id", how="anti")
    return pl.concat([answers(allowed, broker, offset_change, resets), refusals(pull, known), wrong])


def refusals(pull: pl.DataFrame, known: Inputs) -> pl.DataFrame:
    """Return the verdict on each refused pull of a shard; columns of gold.pull_answer."""
    refused = pull.filter(IS_REFUSED).with_columns(pl.col("remark").str.split("\n").list.first())
    return _with_verdicts(refused, [judge(row, known) for row in _described(refused, known)])


def forbidden(pull: pl.DataFrame, known: Inputs) -> pl.DataFrame:
    """Return the pulls of a shard that were answered although topic or group forbid it; columns of gold.pull_answer."""
    answered = pull.filter(pl.col("max_offset").is_not_null())
    suspects = pl.concat(
        [
            answered.join(known.topics.restricted, [*PLACE, "topic"], how="semi"),
            answered.join(known.groups.restricted, [*PLACE, "consumer_group"], how="semi"),
        ]
    ).unique("record_id", maintain_order=True)
    is_wrong = [all(_due(row, known)) for row in _described(suspects, known)]
    wrong = suspects.filter(pl.Series(is_wrong, dtype=pl.Boolean))
    verdict = Verdict("differ", "the broker answered, and the copies before and after the pull forbid it")
    return _with_verdicts(wrong, [verdict] * wrong.height)


def _described(pull: pl.DataFrame, known: Inputs) -> Iterator[dict[str, Any]]:
    """Yield each pull with the description of its broker that is valid then, None without one."""
    valid = valid_descriptions(pull, known.broker, BROKER_KEY)
    for row, place in zip(pull.iter_rows(named=True), valid, strict=True):
        yield row | {DESCRIPTION: None if place == NOWHERE else known.broker.row(int(place), named=True)}


def _with_verdicts(rows: pl.DataFrame, verdicts: list[Verdict]) -> pl.DataFrame:
    added = pl.DataFrame(verdicts, schema=dict.fromkeys(Verdict._fields, pl.String), orient="row")
    agrees = pl.col("judgement") == "agree"
    expected = pl.when(agrees).then("response_code").alias("expected_code")
    nothing = pl.lit(None, pl.Int64).alias("expected_next_offset")
    return pl.concat([rows, added], how="horizontal").with_columns(expected, nothing).select(COLUMNS)


def judge(row: Row, known: Inputs) -> Verdict:
    """Return the verdict on a refused pull: a row of silver.pull with the DESCRIPTION of its broker."""
    remark = row["remark"] or ""
    begins = next((text for text in REFUSALS if remark.startswith(text)), None)
    if begins is None or REFUSALS[begins].code != row["response_code"]:
        return Verdict("undetermined", "the broker names no reason of PullMessageProcessor", OTHER)
    _, decided_by, words = REFUSALS[begins]
    if decided_by == FILTER or _lacks(decided_by, row, known):
        return Verdict("undetermined", UNKNOWN[decided_by], words)
    if any(due and (due.code, due.remark[: len(begins)]) == (row["response_code"], begins) for due in _due(row, known)):
        return Verdict("agree", words, words)
    if decided_by in CONTRADICTED:
        return Verdict("undetermined", CONTRADICTED[decided_by], words)
    return Verdict("differ", f"{words}, but the copies before and after the pull allow it", words)


def _place(row: Row) -> tuple[str, int]:
    return row["broker_name"], row["broker_id"] or 0


def _lacks(decided_by: str, row: Row, known: Inputs) -> bool:
    place = _place(row)
    return {
        TOPIC: not known.topics.has(place),
        GROUP: not known.groups.has(place),
        BROKER: row[DESCRIPTION] is None,
    }.get(decided_by, False)


def _due(row: Row, known: Inputs) -> Iterator[law.Refusal | None]:
    """Yield what the law answers to the pull, by each of the possible inputs; an unknown input allows it."""
    place, at, group = _place(row), row["request_ts"], row["consumer_group"]
    until = (row["response_ts"] or at) + SEEN_AFTER
    request = PullRequest(
        *(row["topic"], group, row["queue_id"], row["queue_offset"] or 0, row["sys_flag"] or 0),
        sub_version=row["sub_version"] or 0,
    )
    options = product(
        list(_topics(known.topics.possible(place, row["topic"], at))),
        list(_groups(known.groups.possible(place, group, at))),
        list(known.states.possible((*place, group), at, until)),
        list(_brokers(row[DESCRIPTION], place[1])),
    )
    for topic, group_config, info, (broker, version) in options:
        yield check_pull(request, broker, topic, group_config, info, version=version)


def _topics(found: Collection[dict[str, Any] | None] | None) -> Iterator[TopicReadConfig | None]:
    for row in found or ({"perm": None, "read_queue_nums": None},):
        yield None if row is None else TopicReadConfig(_or(row["perm"], 6), _or(row["read_queue_nums"], 1 << 30))


def _groups(found: Collection[dict[str, Any] | None] | None) -> Iterator[GroupConfig | None]:
    for row in found or ({"consume_enable": None, "consume_broadcast_enable": None},):
        if row is None:
            yield None
            # A broker makes the entry at the first pull (autoCreateSubscriptionGroup), and saves it later.
            yield GroupConfig()
        else:
            yield GroupConfig(_or(row["consume_enable"], True), _or(row["consume_broadcast_enable"], True))


def _brokers(row: Row | None, broker_id: int) -> Iterator[tuple[PullBroker, str]]:
    role = MASTER if broker_id == 0 else SLAVE
    if row is None:
        for version in (BROKER_4, BROKER_5):
            yield (
                PullBroker("", role, slave_read_enable=True, enable_property_filter=True, broker_id=broker_id),
                version,
            )
        return
    settings = properties_of(row)
    yield (
        PullBroker(
            "",
            row["broker_role"] or role,
            int(settings.get("brokerPermission", "6")),
            bool(row["slave_read_enable"]),
            enable_property_filter=settings.get("enablePropertyFilter", "false").lower() == "true",
            broker_id=broker_id,
        ),
        version_of(row),
    )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
