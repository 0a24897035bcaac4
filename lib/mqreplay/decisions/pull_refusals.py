"""gold.pull_answer, of pulls that a broker refused: against PullMessageProcessor#processRequest.

What the broker checked is known from its files (topics.json, subscriptionGroup.json), its description and the
heartbeats that it was sent. A refusal agrees if the law gives it for one of the possible inputs. Inputs that the
recording lacks leave it undetermined.

A file is copied at intervals: what changed between two copies may have been either at an instant between them.
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
from mqreplay.core.pull_refusal import ACCESS, FILTER, FORBIDDEN, INFO, LOAD, STORE, refusal_of
from mqreplay.core.pull_refusal import BROKER as BROKER_CONFIG
from mqreplay.core.pull_refusal import GROUP as GROUP_CONFIG
from mqreplay.core.pull_refusal import TOPIC as TOPIC_CONFIG
from mqreplay.core.slave_suggestion import SLAVE as SLAVE_ROLE
from mqreplay.core.version import BROKER_4, BROKER_5
from mqreplay.decisions.pull_answer import COLUMNS, MASTER_ROLE, answers
from mqreplay.evidence.arrays.frame_arrays import NOWHERE
from mqreplay.evidence.brokers.broker_descriptions import (
    PROPERTIES,
    possible_versions,
    properties_of,
    valid_descriptions,
)
from mqreplay.evidence.members.group_states import GroupStates
from mqreplay.evidence.offsets.held_resets import ResetEvidence
from mqreplay.words.keys import BROKER

DESCRIPTION: Final = "description"
Row = Mapping[str, Any]
RECORDED: Final = (TOPIC_CONFIG, GROUP_CONFIG, BROKER_CONFIG, INFO)
OTHER_REMARK: Final = "another reason"
UNKNOWN_INPUTS: Final = {
    TOPIC_CONFIG: "the topics of the broker (topics.json) were not recorded",
    GROUP_CONFIG: "the groups of the broker (subscriptionGroup.json) were not recorded",
    BROKER_CONFIG: "the broker is not described in brokers.json",
    FILTER: "no evidence shows what the broker made of the expression",
    LOAD: "no evidence shows how many requests waited in the broker, or how cold the data was",
    FORBIDDEN: "the topics that the broker forbids to groups (forbiddenTable) are not recorded",
    ACCESS: "the rights of clients (ACL) are not recorded",
    STORE: "no evidence shows what the store of the broker had then",
}
CONTRADICTED: Final = {
    BROKER_CONFIG: "the description of the broker allows it; a setting can be changed while it runs",
    INFO: "the recorded heartbeats allow it; a lost connection also removes a group, and is not recorded",
}
MAX_BROKER_WAIT: Final = dt.timedelta(seconds=1)  # how long a request may wait in a broker
Entry = dict[str, Any]


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


def refusal_inputs(
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
            answered.join(known.topics.restricted, [*BROKER, "topic"], how="semi"),
            answered.join(known.groups.restricted, [*BROKER, "consumer_group"], how="semi"),
        ]
    ).unique("record_id", maintain_order=True)
    is_wrong = [all(_possible_refusals(row, known)) for row in _described(suspects, known)]
    wrong = suspects.filter(pl.Series(is_wrong, dtype=pl.Boolean))
    verdict = Verdict("differ", "the broker answered, and the copies before and after the pull forbid it")
    return _with_verdicts(wrong, [verdict] * wrong.height)


def _described(pull: pl.DataFrame, known: Inputs) -> Iterator[dict[str, Any]]:
    """Yield each pull with the description of its broker that is valid then, None without one."""
    valid = valid_descriptions(pull, known.broker, BROKER)
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
    refusal = refusal_of(row["remark"] or "")
    if refusal is None or row["response_code"] not in refusal.codes:
        return Verdict("undetermined", "the broker names no reason of PullMessageProcessor", OTHER_REMARK)
    decided_by, words = refusal.decided_by, refusal.words
    if decided_by not in RECORDED or _is_input_missing(decided_by, row, known):
        return Verdict("undetermined", UNKNOWN_INPUTS[decided_by], words)
    codes = {due.code for due in _possible_refusals(row, known) if due and refusal_of(due.remark) is refusal}
    if row["response_code"] in codes:
        return Verdict("agree", words, words)
    if codes:
        return Verdict("differ", f"{words}, but this version of the broker has another code for it", words)
    if decided_by in CONTRADICTED:
        return Verdict("undetermined", CONTRADICTED[decided_by], words)
    return Verdict("differ", f"{words}, but the copies before and after the pull allow it", words)


def _place(row: Row) -> tuple[str, int]:
    return row["broker_name"], row["broker_id"] or 0


def _is_input_missing(decided_by: str, row: Row, known: Inputs) -> bool:
    place = _place(row)
    return {
        TOPIC_CONFIG: not known.topics.has(place),
        GROUP_CONFIG: not known.groups.has(place),
        BROKER_CONFIG: row[DESCRIPTION] is None,
    }.get(decided_by, False)


def _possible_refusals(row: Row, known: Inputs) -> Iterator[law.Refusal | None]:
    """Yield what the law answers to the pull, by each of the possible inputs; an unknown input allows it."""
    place, at, group = _place(row), row["request_ts"], row["consumer_group"]
    until = (row["response_ts"] or at) + MAX_BROKER_WAIT
    request = PullRequest(
        *(row["topic"], group, row["queue_id"], row["queue_offset"] or 0, row["sys_flag"] or 0),
        sub_version=row["sub_version"] or 0,
    )
    is_lite = request._replace(is_lite=True)
    options = product(
        list(_topics(known.topics.possible(place, row["topic"], at))),
        list(_groups(known.groups.possible(place, group, at))),
        list(known.states.possible((*place, group), at, until)),
        list(_brokers(row[DESCRIPTION], place[1])),
    )
    for topic, group_config, info, (broker, version) in options:
        yield check_pull(request, broker, topic, group_config, info, version=version)
        if not broker.lite_pull_message_enable:
            yield check_pull(is_lite, broker, topic, group_config, info, version=version)
        if broker.reject_pull_consumer_enable and info is not None:
            elsewhere = info._replace(is_active_elsewhere=True)
            yield check_pull(request, broker, topic, group_config, elsewhere, version=version)


def _topics(found: Collection[dict[str, Any] | None] | None) -> Iterator[TopicReadConfig | None]:
    for row in found or ({"perm": None, "read_queue_nums": None},):
        if row is None:
            yield None
        else:
            yield TopicReadConfig(_value_or(row["perm"], 6), _value_or(row["read_queue_nums"], 1 << 30))


def _groups(found: Collection[dict[str, Any] | None] | None) -> Iterator[GroupConfig | None]:
    for row in found or ({"consume_enable": None, "consume_broadcast_enable": None},):
        if row is None:
            yield None
            # A broker makes the entry at the first pull (autoCreateSubscriptionGroup), and saves it later.
            yield GroupConfig()
        else:
            yield GroupConfig(_value_or(row["consume_enable"], True), _value_or(row["consume_broadcast_enable"], True))


def _brokers(row: Row | None, broker_id: int) -> Iterator[tuple[PullBroker, str]]:
    role = MASTER_ROLE if broker_id == 0 else SLAVE_ROLE
    if row is None:
        for version in (BROKER_4, BROKER_5):
            yield (
                PullBroker("", role, slave_read_enable=True, enable_property_filter=True, broker_id=broker_id),
                version,
            )
        return
    settings = properties_of(row)
    broker = PullBroker(
        "",
        row["broker_role"] or role,
        int(settings.get("brokerPermission", "6")),
        bool(row["slave_read_enable"]),
        enable_property_filter=_is_true(settings, "enablePropertyFilter"),
        broker_id=broker_id,
        reject_pull_consumer_enable=_is_true(settings, "rejectPullConsumerEnable"),
        lite_pull_message_enable=_is_true(settings, "litePullMessageEnable", "true"),
    )
    for version in possible_versions(row):
        yield broker, version


def _is_true(settings: Mapping[str, str], name: str, default: str = "false") -> bool:
    return settings.get(name, default).lower() == "true"


def _value_or(value: Any, default: Any) -> Any:
    return default if value is None else value


class ConfigCopies:
    """What the copies of one file say of its entries at an instant. restricted: entries that once forbade to read."""

    def __init__(self, rows: pl.DataFrame, key: str, forbids: pl.Expr) -> None:
        """Take rows of silver.topic_config or silver.subscription_group; ``key`` is the column that names an entry."""
        self.restricted = rows.filter(forbids | (pl.col("change") == "removed")).select(*BROKER, key).unique()
        self._first = {row[:2]: row[2] for row in rows.group_by(BROKER).agg(pl.col("ts").min()).iter_rows()}
        self._entries: dict[tuple[Any, ...], list[Entry]] = {}
        for row in rows.sort("ts").iter_rows(named=True):
            self._entries.setdefault((row["broker_name"], row["broker_id"], row[key]), []).append(row)

    def has(self, place: tuple[str, int]) -> bool:
        """Return whether a copy of this broker's file was recorded."""
        return place in self._first

    def possible(self, place: tuple[str, int], name: str, at: dt.datetime) -> list[Entry | None]:
        """Return the entry in the copy before ``at`` and in the one after it; None for no entry.

        Nothing is known of a broker without a copy.
        """
        if place not in self._first:
            return []
        rows = self._entries.get((*place, name), [])
        before = [row for row in rows if row["ts"] <= at]
        after = [row for row in rows if row["ts"] > at]
        known = [_entry(before[-1]) if before else None] if before or self._first[place] <= at else []
        return known + [_entry(row) for row in after[:1]] or [None]


def _entry(row: Entry) -> Entry | None:
    return None if row["change"] == "removed" else row
