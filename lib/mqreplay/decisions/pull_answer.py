"""gold.pull_answer: the broker's answer to each pull, against PullMessageProcessor and DefaultMessageStore#getMessage.

An answer states the queue's range. So the offset asked for decides the code and the next offset, but for an offset
inside of the range, where the filter and the files of the store decide which of three codes it is. Answers without a
range are refusals: pull_refusals.py. Plain answers that agree are only counted, in gold.judgement.

A broker of 5.x answers the first pull after a reset with the offset of the reset, not with that of the pull. Packets
and hooks show the status OFFSET_RESET of that answer. The log of a client lacks it: other records of the reset
decide, and without them such an answer is undetermined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.core import get_message as store
from mqreplay.core.pull_answer import (
    OFFSET_RESET,
    PULL_NOT_FOUND,
    PULL_OFFSET_MOVED,
    PULL_RETRY_IMMEDIATELY,
    SUCCESS,
    may_be_reset_answer,
    pull_answer,
    uses_server_side_reset,
)
from mqreplay.core.pull_check import GroupConfig, PullBroker, PullRequest
from mqreplay.core.slave_suggestion import SLAVE as SLAVE_ROLE
from mqreplay.core.slave_suggestion import next_offset_correction
from mqreplay.core.version import BROKER_4, BROKER_5
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision
from mqreplay.decisions.verdict import AGREE, KEPT, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.distinct import distinct_rows
from mqreplay.evidence.arrays.frame_arrays import gathered
from mqreplay.evidence.brokers.broker_descriptions import (
    STORE_PLUG_IN,
    descriptions,
    has_store_plug_in,
    major_version,
    valid_descriptions,
)
from mqreplay.evidence.frames import columns
from mqreplay.evidence.offsets.held_resets import ResetEvidence, with_reset_evidence
from mqreplay.words.errors import IllegalArgument
from mqreplay.words.keys import BROKER

MASTER_ROLE: Final = "ASYNC_MASTER"
# What the store may find inside of a queue's range.
INSIDE: Final = (store.FOUND, store.NO_MATCHED_MESSAGE, store.MESSAGE_WAS_REMOVING, store.OFFSET_FOUND_NULL)
STATUSES: Final = (
    *(*INSIDE, store.NO_MESSAGE_IN_QUEUE, store.NO_MATCHED_LOGIC_QUEUE, store.OFFSET_TOO_SMALL),
    *(store.OFFSET_OVERFLOW_ONE, store.OFFSET_OVERFLOW_BADLY, OFFSET_RESET),
)
INSIDE_OF_RANGE: Final = "an offset inside of the queue"
OUTSIDE: Final = {
    store.NO_MESSAGE_IN_QUEUE: "an empty queue",
    store.OFFSET_TOO_SMALL: "an offset below the first one of the queue",
    store.OFFSET_OVERFLOW_ONE: "the end of the queue",
    store.OFFSET_OVERFLOW_BADLY: "an offset beyond the end of the queue",
}
ZERO: Final = "zero"
PLAIN_CODES: Final = (SUCCESS, PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY)
COLUMNS: Final = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "client_id", "request_ts", "broker_id"),
    *("queue_offset", "response_code", "remark", "next_begin_offset", "min_offset", "max_offset"),
    *("refusal", "expected_code", "expected_next_offset", "judgement", "reason", "record_id"),
)
VERDICT: Final[dict[str, pl.DataType]] = {
    "expected_code": pl.Int32(),
    "next_is": pl.String(),
    **columns("judgement", "reason"),
}
ANSWER_OFFSETS: Final = ("queue_offset", "min_offset", "max_offset", "next_begin_offset", "last_queue_offset")
ANSWERING_BROKER: Final = (
    *("response_code", "status", "broker_id", "broker_role", "offset_check_in_slave", "since_5", "has_store_plug_in"),
)
CASE: Final = (*ANSWER_OFFSETS, *ANSWERING_BROKER, "max_msg_nums", "topic", "consumer_group", "queue_id")
RECORDED: Final = "a recorded reset set the group's offset"
UNRECORDED: Final = (
    "the broker may have reset the group's offset: its broker.log, or packets of its port, would show the reset"
)
SETTING: Final = "useServerSideResetOffset"


class Verdict(NamedTuple):
    """The verdict on one answer; its fields are VERDICT's columns."""

    expected_code: int | None
    next_is: str | None  # one of ANSWER_OFFSETS, or ZERO; None: several are possible
    judgement: str
    reason: str


def answers(
    pull: pl.DataFrame, broker: pl.DataFrame, offset_change: pl.DataFrame, resets: ResetEvidence
) -> pl.DataFrame:
    """Return the verdict on each answer of a shard that states the range of its queue; columns COLUMNS.

    ``pull``, ``broker`` and ``offset_change`` are rows of silver tables. Each distinct case is judged once, however
    many pulls share it.
    """
    stated = pull.filter(pl.all_horizontal(pl.col("response_code", "min_offset", "max_offset").is_not_null()))
    status = pl.when(pl.col("remark").is_in(STATUSES)).then(pl.col("remark")).alias("status")
    asked = _with_brokers(stated, broker).with_columns(status)
    alike = asked.select(*_relations(), *ANSWERING_BROKER)
    place, row_of = distinct_rows([column.to_arrow() for column in alike])
    cases = [judge(case) for case in asked.select(CASE).gather(row_of).iter_rows(named=True)]
    judged = pl.DataFrame(cases, schema=VERDICT, orient="row").gather(place)
    # A verdict names the column that has the next offset: rows of one case have other numbers.
    of_row = pl.coalesce(pl.when(pl.col("next_is") == name).then(name) for name in ANSWER_OFFSETS[:3])
    refusal = pl.lit(None, pl.String).alias("refusal")
    expected = pl.when(pl.col("next_is") == ZERO).then(0).otherwise(of_row).alias("expected_next_offset")
    found = pl.concat([asked, judged], how="horizontal").with_columns(expected, refusal)
    return with_resets(found, offset_change, resets).select(COLUMNS)


def stored_rows(answered: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.pull_answer keeps: all but plain answers that agree."""
    return answered.filter((pl.col("judgement") != "agree") | ~pl.col("response_code").is_in(PLAIN_CODES))


def _with_brokers(pull: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Add the settings that the answer depends on, null where the broker is not described.

    Logs of clients lack the broker's id: the description is that of the master.
    """
    known = broker.with_columns((major_version() >= 5).alias("since_5"), keeps_resets(broker), has_store_plug_in())
    place = valid_descriptions(pull.with_columns(pl.col("broker_id").fill_null(0)), known, BROKER)
    names = ("broker_role", "offset_check_in_slave", "since_5", "keeps_resets", "has_store_plug_in")
    return pl.concat([pull, pl.DataFrame([gathered(known[name], place) for name in names])], how="horizontal")


def _relations() -> Iterator[pl.Expr]:
    """Yield what the law compares: answers with equal relations have one verdict."""
    asked, low, high, after, last = map(pl.col, ANSWER_OFFSETS)
    nothing = pl.lit(0, pl.Int64)
    of_range = ((asked, low), (asked, high), (asked, nothing), (low, nothing), (low, high), (high, nothing))
    of_next = ((after, asked), (after, low), (after, high), (after, last))
    read_at_most = pl.max_horizontal(pl.col("max_msg_nums"), store.MAX_FILTER_ENTRIES)
    for number, (one, other) in enumerate((*of_range, *of_next, (after - asked, read_at_most))):
        yield (one - other).sign().alias(f"relation_{number}")


def judge(case: Mapping[str, Any]) -> Verdict:
    """Return the verdict on an answer: a row of the columns CASE."""
    verdict = _judge(case)
    if verdict.judgement == "differ" and case["has_store_plug_in"]:
        return Verdict(None, None, "undetermined", STORE_PLUG_IN)
    return verdict


def _judge(case: Mapping[str, Any]) -> Verdict:
    asked, low, high = (case[name] for name in ANSWER_OFFSETS[:3])
    placed = store.place_offset(asked, low, high)
    reason = INSIDE_OF_RANGE if placed is None else OUTSIDE[placed[0]]
    possible = INSIDE if placed is None else (placed[0],)
    status = case["status"]
    if status == OFFSET_RESET:
        return Verdict(PULL_OFFSET_MOVED, None, "agree", "the broker set the group's offset back")
    if status == store.NO_MATCHED_LOGIC_QUEUE and high == 0:
        possible = (status,)
    if status is not None:
        if status not in possible:
            return Verdict(None, None, "differ", f"{reason}, but the broker says {status}")
        possible = (status,)
    due = {answer for each in possible for answer in _due(each, case, placed)}
    code = _only({code for code, _ in due})
    after = _only({after for _, after in due})
    name = None if placed is None or after is None else _name_of(after, case)
    if (case["response_code"], case["next_begin_offset"]) in due:
        return Verdict(code, name, "agree", reason)
    what = "next offset" if case["response_code"] in {code for code, _ in due} else "code"
    return Verdict(code, name, "differ", f"{reason}: the rule gives another {what}")


def _due(status: str, case: Mapping[str, Any], placed: tuple[str, int] | None) -> Iterator[tuple[int, int]]:
    """Yield each (code, next offset) that the law gives for a status of the store; what is not known may be either."""
    asked, low, high, after = (case[name] for name in ANSWER_OFFSETS[:4])
    broker_id = case["broker_id"] or 0
    role = case["broker_role"] or (MASTER_ROLE if broker_id == 0 else SLAVE_ROLE)
    checks = (False, True) if case["offset_check_in_slave"] is None else (case["offset_check_in_slave"],)
    versions = {True: (BROKER_5,), False: (BROKER_4,), None: (BROKER_4, BROKER_5)}[case["since_5"]]
    for check, version, suggests, least in product(checks, versions, (False, True), {0, broker_id}):
        if placed is not None:
            going_on = next_offset_correction(asked, placed[1], role, check)
        elif after is None or not _continues(status, case, version):
            continue
        else:
            going_on = after
        broker = PullBroker("", role, offset_check_in_slave=check, broker_id=broker_id, min_broker_id_in_group=least)
        result = store.GetMessageResult(status, going_on, low, high, suggest_pulling_from_slave=suggests)
        request = PullRequest(case["topic"], case["consumer_group"], case["queue_id"], asked)
        answer = pull_answer(request, broker, GroupConfig(), result, broker_allow_suspend=False, version=version)
        yield answer.code, going_on


def _continues(status: str, case: Mapping[str, Any], version: str) -> bool:
    """Return whether the store can continue there after an offset inside of the queue."""
    asked, _, high, after, last = (case[name] for name in ANSWER_OFFSETS)
    if status == store.FOUND and last is not None and last >= after:
        return False
    return store.can_continue_at(status, asked, after, high, case["max_msg_nums"] or 0, version)


def _name_of(offset: int, case: Mapping[str, Any]) -> str:
    return next((name for name in ANSWER_OFFSETS[:3] if case[name] == offset), ZERO)


def _only(values: Collection[int]) -> int | None:
    return next(iter(values)) if len(values) == 1 else None


def keeps_resets(broker: pl.DataFrame) -> pl.Series:
    """Return for each row of silver.broker whether it answers pulls with reset offsets; null where it may or not."""
    known = [_keeps_resets(row["rocketmq_version"] or "", named.get(SETTING)) for row, named in descriptions(broker)]
    return pl.Series("keeps_resets", known, pl.Boolean)


def with_resets(judged: pl.DataFrame, offset_change: pl.DataFrame, known: ResetEvidence) -> pl.DataFrame:
    """Return the answers of a shard, in their order; those that can be of a reset have the verdict that follows.

    ``judged`` has the columns of gold.pull_answer, and response_ts, broker_role and keeps_resets. An answer that
    differs from the rule without a status agrees if a reset to its offset was recorded. It still differs if resets were
    recorded then, and none explains it.
    """
    moved = judged.with_row_index("_row").filter(pl.col("response_code") == PULL_OFFSET_MOVED)
    is_open = pl.Series("is_open", [_may_be_reset(row) for row in moved.iter_rows(named=True)], pl.Boolean)
    answered = moved.with_columns(is_open).filter(pl.col("is_open") | (pl.col("remark") == OFFSET_RESET))
    if not answered["is_open"].any():
        return judged
    found = with_reset_evidence(answered, offset_change, known)
    other = found.filter(pl.col("is_open") & (pl.col("is_reset") | ~pl.col("is_logged"))).select("_row", "is_reset")
    all_rows = judged.with_row_index("_row").join(other, "_row", how="left", maintain_order="left")
    is_other, code = pl.col("is_reset").is_not_null(), pl.when("is_reset").then("response_code")
    verdict = decided(("is_reset", AGREE, RECORDED), (~pl.col("is_reset"), UNDETERMINED, UNRECORDED), otherwise=KEPT)
    return all_rows.with_columns(
        pl.when(is_other).then(code).otherwise("expected_code").alias("expected_code"),
        pl.when(~is_other).then("expected_next_offset"),
        **verdict,
    ).select(judged.columns)


def _may_be_reset(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer, a row of `with_resets`, differs from the rule and can be that of a reset.

    Slaves refuse resets (AdminBrokerProcessor#resetOffsetInner).
    """
    is_slave = (answer["broker_role"] or (SLAVE_ROLE if answer["broker_id"] else "")) == SLAVE_ROLE
    if answer["judgement"] != "differ" or answer["remark"] is not None or is_slave or answer["keeps_resets"] is False:
        return False
    after = answer["next_begin_offset"]
    return after is not None and may_be_reset_answer(answer["response_code"], after, answer["max_offset"])


def _keeps_resets(version: str, setting: str | None) -> bool | None:
    # A description need not have all settings: what it lacks may differ from the setting as shipped.
    uses = (False, True) if setting is None else (setting.lower() == "true",)
    try:
        possible = {uses_server_side_reset(version, use) for use in uses}
    except IllegalArgument:  # not a version
        return None
    return possible.pop() if len(possible) == 1 else None


PULL_ANSWER: Final = Decision(
    table="gold.pull_answer",
    instant="request_ts",
    one="answer to a pull",
    many="answers to pulls",
    importance=4,
    phrases=(QUEUE_WORDS, "asked for offset {queue_offset:,}", "code {response_code}: {remark}", VERDICT_WORDS),
    needs=(Need("pull_log"), Need("topics"), Need("subscription_groups")),
)
