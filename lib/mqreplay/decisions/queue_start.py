"""gold.queue_start: the first pull of a queue by a client that took it, against RebalanceImpl#computePullFromWhere.

A client that takes a queue asks the broker for the group's stored offset (QUERY_CONSUMER_OFFSET). If there is none, it
asks for the end of the queue, or for the offset of a time, as consumeFromWhere says. An orderly client asks again when
it has the lock (DefaultMQPushConsumerImpl#pullMessage), so the last question before the pull counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.core.compute_pull_from import (
    NO_OFFSET,
    AdminQuestion,
    ConsumeFromWhere,
    admin_question,
    compute_pull_from_where,
)
from mqreplay.core.consumer_offset_manager import QUERY_NOT_FOUND, offset_of_answer, query_consumer_offset
from mqreplay.core.offset_store import READ_FROM_STORE, RemoteBrokerOffsetStore
from mqreplay.core.pull_answer import SUCCESS
from mqreplay.core.version import CLIENT_4, CLIENT_5
from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.frames import columns
from mqreplay.evidence.intervals import with_nearest_row, with_state
from mqreplay.evidence.members.membership import BROADCASTING, consumer_groups
from mqreplay.words.keys import CLIENT_QUEUE

QUERY_REFUSED: Final = "the broker refused to tell the stored offset, which a client before 5.0 takes for none"
WHERE: Final = frozenset(where.value for where in ConsumeFromWhere)
LOOKUPS: Final = {"MAX": "maxOffset", "SEARCH": "searchOffset"}  # kinds of silver.offset_lookup
# Any time: whether a time is needed depends on consumeFromWhere, and no request but the SEARCH itself has the time.
ANY_TIME: Final = "19700101000000"
COLUMNS: Final = (
    *("day", "consumer_group", "topic", "broker_name", "queue_id", "client_id", "query_ts", "stored_offset"),
    *("stored_code", "had_offset", "consume_from_where", "lookup", "lookup_offset", "request_ts", "expected_offset"),
    *("actual_offset", "min_offset", "max_offset", "skipped", "judgement", "reason", "record_id"),
)
JUDGED: Final[dict[str, pl.DataType]] = columns("lookup", "lookup_offset", "expected_offset", "judgement", "reason")
CASE: Final = ("topic", "client_version", "actual_offset", "was_asked", "stored_offset", "stored_code", "had_offset")
OF_CONSUMER: Final = ("message_model", "consume_type", "consume_from_where")
STORED_BY_BROKER: Final = ("max_answer", "search_answer", "min_offset", "max_offset")


class Judged(NamedTuple):
    """The verdict on one start; its fields are JUDGED's columns."""

    lookup: str | None
    lookup_offset: int | None
    expected_offset: int | None
    judgement: str
    reason: str


def consumers(heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return what heartbeats say about each consumer of a group, at its times.

    Columns: consumer_group, client_id, ts, message_model, consume_from_where, consume_type.
    """
    named = consumer_groups(heartbeat).drop("subscriptions", "record_id")
    return named.unique().sort("ts")


def queue_start(
    pull: pl.DataFrame,
    offset_commit: pl.DataFrame,
    offset_lookup: pl.DataFrame,
    offset_change: pl.DataFrame,
    known: pl.DataFrame,
    new_clients: pl.DataFrame,
    client_versions: pl.DataFrame,
) -> pl.DataFrame:
    """Return the rows of gold.queue_start of a shard: one for each queue that a client took and then pulled from.

    The first four are rows of silver tables, ``known`` is the frame of `consumers`, ``new_clients`` that of
    client_memory.py, ``client_versions`` that of recorded_versions.py. A pull after a recorded QUERY_CONSUMER_OFFSET is
    such a start; of a client without any, the first pull is, if the client started in the recording.
    """
    queries = offset_commit.filter(pl.col("kind") == "QUERY")
    starts = _starts(pull, queries, new_clients)
    found = _with_lookups(_with_consumer(_with_ends(starts, pull), known), offset_lookup)
    found = _with_version(_with_had_offset(found, pull, offset_change), client_versions)
    verdicts = [judge(case) for case in found.select(*CASE, *OF_CONSUMER, *STORED_BY_BROKER).iter_rows(named=True)]
    judged = pl.concat([found, pl.DataFrame(verdicts, schema=JUDGED, orient="row")], how="horizontal")
    before = (pl.col("actual_offset") - pl.col("min_offset")).clip(lower_bound=0)
    return judged.with_columns(pl.when(~pl.col("had_offset")).then(before).alias("skipped")).select(COLUMNS)


def _starts(pull: pl.DataFrame, queries: pl.DataFrame, new_clients: pl.DataFrame) -> pl.DataFrame:
    """Return the first pulls, with the QUERY before each; was_asked: there is one.

    A question while a pull of the queue waits for its answer is no start: a client that has committed nothing yet asks
    for its running info, too (DefaultMQPushConsumerImpl#consumerRunningInfo).
    """
    columns = ("day", *CLIENT_QUEUE, "request_ts", "queue_offset", "record_id")
    asked = queries.select(
        *CLIENT_QUEUE,
        pl.coalesce("response_ts", "ts").alias("asked_ts"),
        pl.col("ts").alias("query_ts"),
        pl.col("answer_offset").alias("stored_offset"),
        pl.col("response_code").alias("stored_code"),
        pl.lit(True).alias("was_asked"),
    ).sort("asked_ts")
    askers = asked.select("client_id").unique()
    of_askers = pull.select(*columns, "response_ts").join(askers, "client_id", how="semi").sort("request_ts")
    before = {f"previous_{name}": pl.col(name).shift(1).over(CLIENT_QUEUE) for name in ("request_ts", "response_ts")}
    after = with_state(of_askers.with_columns(**before), asked, CLIENT_QUEUE, "request_ts", "asked_ts")
    first = after.filter(pl.col("was_asked")).unique([*CLIENT_QUEUE, "asked_ts"], keep="first", maintain_order=True)
    is_held = (pl.col("previous_request_ts") <= pl.col("query_ts")) & (
        pl.col("previous_response_ts").is_null() | (pl.col("previous_response_ts") >= pl.col("query_ts"))
    )
    started = first.filter(~is_held.fill_null(value=False)).drop("response_ts", *before)
    silent = pull.select(columns).join(new_clients, "client_id", how="semi").join(askers, "client_id", how="anti")
    unasked = silent.sort("request_ts").unique(CLIENT_QUEUE, keep="first", maintain_order=True)
    both = pl.concat([started, unasked.with_columns(pl.lit(False).alias("was_asked"))], how="diagonal")
    return both.rename({"queue_offset": "actual_offset"})


def _with_ends(starts: pl.DataFrame, pull: pl.DataFrame) -> pl.DataFrame:
    """Add min_offset and max_offset: by the first answer to the client's pulls of the queue that has them."""
    answered = pull.filter(pl.col("max_offset").is_not_null()).select(
        *CLIENT_QUEUE, pl.col("request_ts").alias("answered_ts"), "min_offset", "max_offset"
    )
    of_starts = answered.join(starts.select(CLIENT_QUEUE).unique(), CLIENT_QUEUE, how="semi").sort("answered_ts")
    return with_state(starts, of_starts, CLIENT_QUEUE, "request_ts", "answered_ts", after=True)


def _with_consumer(starts: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Add the columns OF_CONSUMER: by the heartbeat before the pull, else the next one."""
    beats = known.rename({"ts": "beat_ts"})
    return with_nearest_row(starts, beats, ["consumer_group", "client_id"], "request_ts", "beat_ts", OF_CONSUMER)


def _with_version(starts: pl.DataFrame, client_versions: pl.DataFrame) -> pl.DataFrame:
    """Add client_version, null where it is not known or the client had several."""
    client = ["consumer_group", "client_id"]
    only = pl.when(pl.col("version").n_unique() == 1).then(pl.col("version").first()).alias("client_version")
    return starts.join(client_versions.group_by(client).agg(only), client, how="left", maintain_order="left")


def _with_lookups(starts: pl.DataFrame, offset_lookup: pl.DataFrame) -> pl.DataFrame:
    """Add max_answer and search_answer: of the client's last request for it between the QUERY and the pull."""
    by = ["client_id", "topic", "broker_name", "queue_id"]
    answered = offset_lookup.filter(pl.col("answer_offset").is_not_null() & (pl.col("response_code") == SUCCESS))
    joined = starts
    for kind, name in (("MAX", "max_answer"), ("SEARCH", "search_answer")):
        right = answered.filter(pl.col("kind") == kind).select(
            *by, pl.col("ts").alias(f"{name}_ts"), pl.col("answer_offset").alias(name)
        )
        joined = with_state(joined, right, by, "request_ts", f"{name}_ts").with_columns(
            pl.when(pl.col(f"{name}_ts") >= pl.col("query_ts")).then(pl.col(name)).alias(name)
        )
    return joined


def _with_had_offset(starts: pl.DataFrame, pull: pl.DataFrame, offset_change: pl.DataFrame) -> pl.DataFrame:
    """Add had_offset. An answer of 0 is an entry, or that of a young queue without one.

    There was none if the group had not pulled from the queue before, and its entry is new in a later copy of the
    master's file.
    """
    by = ["consumer_group", "topic", "broker_name", "queue_id"]
    of_starts = pull.join(starts.select(by).unique(), by, how="semi")
    first = of_starts.group_by(by).agg(pl.col("request_ts").min().alias("first_ts"))
    is_new = pl.col("previous_offset").is_null() & pl.col("from_ts").is_not_null() & (pl.col("broker_id") == 0)
    made = offset_change.filter(is_new).group_by(by).agg(pl.col("to_ts").min().alias("made_ts"))
    joined = starts.join(first, by, how="left").join(made, by, how="left")
    is_first = (pl.col("first_ts") == pl.col("request_ts")) & (pl.col("made_ts") > pl.col("query_ts"))
    stored = pl.col("stored_offset")
    had = (
        pl.when(pl.col("stored_code") == QUERY_NOT_FOUND)
        .then(pl.lit(False))
        .when(stored > 0)
        .then(pl.lit(True))
        .when((stored == 0) & is_first)
        .then(pl.lit(False))
    )
    return joined.with_columns(had.alias("had_offset"))


def judge(case: Mapping[str, Any]) -> Judged:
    """Return the verdict on a start: a row of the columns CASE, OF_CONSUMER and STORED_BY_BROKER.

    A client of unknown version may go by the rules of 4.x or 5.x.
    """
    known = case["client_version"]
    verdicts = [_judge(case, version) for version in ((known,) if known else (CLIENT_4, CLIENT_5))]
    verdict = next((each for each in verdicts if each.judgement != "differ"), verdicts[0])
    if case["stored_code"] in (SUCCESS, QUERY_NOT_FOUND, None):
        return verdict
    return verdict._replace(reason=f"{QUERY_REFUSED} (code {case['stored_code']}); {verdict.reason}")


def _judge(case: Mapping[str, Any], version: str) -> Judged:
    topic, actual = case["topic"], case["actual_offset"]

    def undetermined(reason: str, lookup: str | None = None) -> Judged:
        return Judged(lookup, None, None, "undetermined", reason)

    def judged(expected: int, reason: str, lookup: str | None = None, answer: int | None = None) -> Judged:
        if expected == actual:
            return Judged(lookup, answer, expected, "agree", reason)
        if case["consume_type"] == "CONSUME_ACTIVELY":
            return undetermined("the application of a pull consumer may choose its offset", lookup)
        start = "no start" if expected < 0 else f"offset {expected}"
        return Judged(lookup, answer, expected, "differ", f"{reason}: {start}; the client began at {actual}")

    if not case["was_asked"]:
        if case["message_model"] == BROADCASTING:
            return undetermined("a broadcasting client keeps its offsets in a file of its own")
        return undetermined("the client's question for the stored offset was not recorded")
    last_offset = _last_offset(case["stored_code"], case["stored_offset"], version)
    if last_offset is None:
        return undetermined("the answer with the stored offset was not recorded")
    if case["stored_code"] == SUCCESS and case["had_offset"] is False and not _may_be(last_offset, case["min_offset"]):
        reason = f"no stored offset, and the queue begins at {case['min_offset']}: the broker must not answer an offset"
        return Judged(None, None, None, "differ", reason)
    if last_offset != NO_OFFSET:
        expected = compute_pull_from_where(ConsumeFromWhere.LAST_OFFSET, last_offset, topic, version=version)
        return judged(expected, _stored(case))
    if case["consume_from_where"] not in WHERE:
        return undetermined("no stored offset, and consumeFromWhere of the client is not known")
    where = ConsumeFromWhere(case["consume_from_where"])
    question = admin_question(where, last_offset, topic, ANY_TIME)
    reason = f"no stored offset, and {where.value}"
    if question is None:
        return judged(compute_pull_from_where(where, last_offset, topic, version=version), reason)
    answer = _answer(question, case)
    if answer is None:
        return undetermined(f"{reason}, but the answer of {question.method} was not recorded", question.method)
    expected = compute_pull_from_where(where, last_offset, topic, answer, ANY_TIME, version)
    return judged(expected, f"{reason}, whose {question.method} is {answer}", question.method, answer)


def _may_be(answer: int, min_offset: int | None) -> bool:
    """Return whether a broker may answer this offset to a group without one."""
    return answer in {query_consumer_offset(NO_OFFSET, min_offset or 0, in_memory) for in_memory in (True, False)}


def _stored(case: Mapping[str, Any]) -> str:
    if case["stored_code"] != SUCCESS:
        return "a client since 5.0 does not take a queue if it cannot read its stored offset"
    if case["had_offset"] is False:
        return "no stored offset, but a queue with its first message in memory: the broker answered 0"
    return "the stored offset"


def _last_offset(code: int | None, offset: int | None, version: str) -> int | None:
    """Return what the client's offset store answers (RemoteBrokerOffsetStore#readOffset); None if not known."""
    if code is None or (code == SUCCESS and offset is None):
        return None
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore(version)
    return store.read_offset("queue", READ_FROM_STORE, partial(offset_of_answer, code, offset))


def _answer(question: AdminQuestion, case: Mapping[str, Any]) -> int | None:
    if question.method == LOOKUPS["SEARCH"]:
        found: int | None = case["search_answer"]
        return found
    if case["max_answer"] is not None:
        return int(case["max_answer"])
    # Nothing arrived between the request and the pull: its answer has the same end.
    return int(case["actual_offset"]) if case["max_offset"] == case["actual_offset"] else None


QUEUE_START: Final = Decision(
    table="gold.queue_start",
    instant="request_ts",
    one="start of a queue",
    many="starts of queues",
    importance=5,
    phrases=(
        "first pull of " + QUEUE_WORDS + " at offset {actual_offset:,}",
        "queue {min_offset:,} to {max_offset:,}",
        VERDICT_WORDS,
    ),
    needs=(Need("offset_commits"), Need("pull_log")),
)
