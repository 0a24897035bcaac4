"""Contradictions between the findings of one night, and between them and the tables behind them."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

Finding = dict[str, Any]
BEFORE_CAUSE_S = 30
# "0 messages", "1 pulls": as whole numbers, not the end of "120 messages" or of "1,000 messages".
WRONG_NUMBER = re.compile(r"(?<![\d.,])(0 [a-z]+s?|1 (?:messages|queues|pulls|groups|clients|times|members|offsets))\b")
ZERO_OF = ("messages", "message", "queues", "queue", "pulls", "pull", "groups", "group")
REDELIVERED = re.compile(
    r"(?<!at most )(?<!at least )(?<!about )(?<![\d,])(\d[\d,]*) messages? (?:was |were )?delivered again"
)
AT_MOST = re.compile(r"at most (\d[\d,]*) messages? (?:is |are |was |were )?delivered again")
MESSAGES = re.compile(r"(?<![\d,])(\d[\d,]*) messages?\b")
HELD = re.compile(r"held (\d[\d,]*) queues?\b")
PULLS = re.compile(r"(?<![\d,])(\d[\d,]*) pulls?\b")
MESSAGE = ("consumer_group", "topic", "queue_topic", "broker_name", "queue_id", "queue_offset")
QUEUES = ("consumer_group", "topic", "broker_name", "queue_id")
OFFSET_CHANGES = ("offset_reset", "offset_rewind", "offset_beyond_max")
DONE = ("CONSUME_SUCCESS", "SUCCESS", "COMMIT")


def contradictions(findings: list[Finding], table: Callable[[str], pl.DataFrame]) -> list[str]:
    """Return what does not add up, as text with the ids of the findings; nothing on a night without contradictions.

    ``table`` returns the rows of a table of the same night, by its name.
    """
    checks = (
        *_bad_numbers(findings),
        *_bad_causes(findings, table("silver.rebalance")),
        *_latest_causes(findings),
        *_outages_and_pulls(findings, table("gold.pull_route")),
        *_slave_pulls(findings),
        *_redeliveries(findings),
        *_held_queues(findings, table("gold.queue_owner")),
        *_delivered_again(findings, table("silver.consume")),
    )
    return sorted(checks)


def number(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the first number that the pattern finds, None if there is none."""
    hit = pattern.search(text)
    return None if hit is None else int(hit[1].replace(",", ""))


def message_count(finding: Finding) -> int:
    """Return the first number of messages in the summary, 0 if there is none."""
    return number(MESSAGES, finding["summary"]) or 0


def _bad_numbers(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        for hit in WRONG_NUMBER.findall(finding["summary"]):
            if hit[0] == "1" or hit.split()[1] in ZERO_OF:
                yield f"{_name(finding)} says {hit!r}"


def _bad_causes(findings: list[Finding], rebalance: pl.DataFrame) -> Iterator[str]:
    by_id = {finding["finding_id"]: finding for finding in findings}
    for effect in findings:
        if effect["follows_from"] is None:
            continue
        cause = by_id.get(effect["follows_from"])
        if cause is None or cause["follows_from"] is not None:
            yield f"{_name(effect)} follows from no first cause"
            continue
        early_s = (cause["from_ts"] - effect["from_ts"]).total_seconds()
        # Tries come before the dead letter that they end as.
        if early_s > BEFORE_CAUSE_S and effect["kind"] != "retry_growth":
            yield f"{_name(effect)} begins {early_s:.0f} s before its cause {_name(cause)}"
        brokers = {effect["broker_name"], cause["broker_name"]} - {None}
        if len(brokers) > 1 and not _members_changed(effect, rebalance):
            yield f"{_name(effect)} names another broker than its cause {_name(cause)}"
        groups = {effect["consumer_group"], cause["consumer_group"]} - {None}
        if len(groups) > 1:
            yield f"{_name(effect)} names another group than its cause {_name(cause)}"


def _latest_causes(findings: list[Finding]) -> Iterator[str]:
    """Of several changes of the same offsets, the latest before a message was delivered again is its cause."""
    changes = [f for f in findings if f["kind"] in OFFSET_CHANGES and f["follows_from"] is None]
    by_id = {finding["finding_id"]: finding for finding in changes}
    for effect in findings:
        cause = by_id.get(effect["follows_from"] or "")
        if cause is None or effect["kind"] != "duplicate_delivery":
            continue
        for later in changes:
            at_place = all(None in (later[name], effect[name]) or later[name] == effect[name] for name in QUEUES)
            if at_place and cause["from_ts"] < later["from_ts"] <= effect["from_ts"] and goes_back(later):
                yield f"{_name(effect)} follows from {_name(cause)}, not from the later {_name(later)}"


def goes_back(change: Finding) -> bool:
    """Return whether a change of offsets lets messages be delivered again."""
    return change["kind"] != "offset_beyond_max" and "ahead" not in change["summary"]


def _members_changed(effect: Finding, rebalance: pl.DataFrame) -> bool:
    """Return whether the group's members disagreed about themselves just before the effect.

    A broker that comes back knows only the members whose heartbeat it has received. Members that ask it for the list
    then take each other's queues, on all brokers.
    """
    since = effect["from_ts"] - dt.timedelta(seconds=BEFORE_CAUSE_S)
    seen = rebalance.filter(consumer_group=effect["consumer_group"]).filter(
        pl.col("ts").is_between(since, effect["to_ts"])
    )
    return seen["cid_all"].n_unique() > 1


def _outages_and_pulls(findings: list[Finding], pull_route: pl.DataFrame) -> Iterator[str]:
    """An outage of a master counts the pulls that failed over because of it: no other outage does, and none is left."""
    outages = [f for f in findings if f["kind"] == "broker_down" and f["broker_id"] == 0]
    gone = pull_route.filter(pl.col("cause") == "master_gone").select("broker_name", "request_ts")
    counted: dict[str, int] = defaultdict(int)
    for broker_name, request_ts in gone.rows():
        before = [f for f in outages if f["broker_name"] == broker_name and f["from_ts"] <= request_ts]
        counted[max(before, key=lambda f: f["from_ts"])["finding_id"] if before else broker_name] += 1
    effects = _effects(findings)
    for outage in outages:
        told = number(PULLS, outage["summary"]) or 0
        pulls = counted.pop(outage["finding_id"], 0)
        if told != pulls:
            yield f"{_name(outage)} counts {told} pulls, gold.pull_route {pulls}"
        failovers = [f for f in effects[outage["finding_id"]] if f["kind"] == "failover_pull"]
        if failovers and told != sum(number(PULLS, f["summary"]) or 0 for f in failovers):
            yield f"{_name(outage)} counts {told} pulls, its failover_pull findings another number"
    for broker_name, pulls in counted.items():
        yield f"{pulls} pulls of {broker_name} failed over without an outage"


def _slave_pulls(findings: list[Finding]) -> Iterator[str]:
    """A finding about reads from a slave counts the pulls of those below it, unless it counts refused ones."""
    effects = _effects(findings)
    for cause in findings:
        below = [f for f in effects[cause["finding_id"]] if f["kind"] == "slave_pull"]
        told = number(PULLS, cause["summary"])
        if cause["kind"] != "slave_pull" or not below or told is None or "refused" in cause["summary"]:
            continue
        pulls = sum(number(PULLS, f["summary"]) or 0 for f in below)
        if told != pulls:
            yield f"{_name(cause)} counts {told} pulls, those below it {pulls}"


def _redeliveries(findings: list[Finding]) -> Iterator[str]:
    """What a cause says was delivered again is what its duplicate deliveries say; a bound holds."""
    effects = _effects(findings)
    for cause in findings:
        if cause["follows_from"] is not None or cause["kind"] == "duplicate_delivery":
            continue
        own = effects[cause["finding_id"]]
        again = [f for f in own if f["kind"] == "duplicate_delivery"]
        messages = sum(message_count(f) for f in again)
        told = number(REDELIVERED, cause["summary"])
        if told is not None and told != messages:
            yield f"{_name(cause)} says {told} messages delivered again, its duplicates {messages}"
        bound = number(AT_MOST, cause["summary"])
        below = [number(AT_MOST, f["summary"]) for f in own]
        known = [bound] if bound is not None else [most for most in below if most is not None]
        if known and messages > sum(known):
            yield f"{_name(cause)}: at most {sum(known)} messages delivered again, its duplicates {messages}"


def _delivered_again(findings: list[Finding], consume: pl.DataFrame) -> Iterator[str]:
    """A finding counts no more messages than its group's log has at its place and time, nor do all of a group."""
    done = consume.filter(pl.col("status").is_in(DONE)).sort("ts", "client_id")
    several = done.filter(done.select(MESSAGE).is_duplicated())
    again = several.with_columns(pl.int_range(pl.len()).over(MESSAGE).alias("nth")).filter(pl.col("nth") > 0)
    told: dict[str, int] = defaultdict(int)
    for finding in findings:
        if finding["kind"] != "duplicate_delivery":
            continue
        place = {name: finding[name] for name in ("consumer_group", "topic", "broker_name", "queue_id")}
        of_place = again.filter(**{name: value for name, value in place.items() if value is not None})
        within = of_place.filter(pl.col("ts").is_between(finding["from_ts"], finding["to_ts"]))
        messages = message_count(finding)
        told[finding["consumer_group"]] += messages
        if not 0 < messages <= within.select(MESSAGE).n_unique():
            yield f"{_name(finding)} counts {messages} messages, the log {within.select(MESSAGE).n_unique()}"
    for group, messages in told.items():
        logged = again.filter(consumer_group=group).height
        if messages > logged:
            yield f"duplicates of {group} count {messages} messages, the log {logged}"


def _held_queues(findings: list[Finding], queue_owner: pl.DataFrame) -> Iterator[str]:
    """A lost consumer held as many queues as its owner intervals show; nobody counts the queues of retry topics."""
    held = queue_owner.filter(~pl.col("topic").str.starts_with("%"))
    for finding in findings:
        if finding["kind"] != "consumer_lost":
            continue
        until = finding["from_ts"] - dt.timedelta(seconds=2)
        of_client = held.filter(consumer_group=finding["consumer_group"], client_id=finding["client_id"])
        then = of_client.filter((pl.col("from_ts") <= finding["from_ts"]) & (pl.col("to_ts") >= until))
        queues = then.select("topic", "broker_name", "queue_id").n_unique()
        told = number(HELD, finding["summary"]) or 0
        if told != queues:
            yield f"{_name(finding)} counts {told} queues, gold.queue_owner {queues}"


def _effects(findings: list[Finding]) -> dict[str, list[Finding]]:
    effects: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding["follows_from"] is not None:
            effects[finding["follows_from"]].append(finding)
    return effects


def _name(finding: Finding) -> str:
    where = finding["consumer_group"] or finding["broker_name"] or finding["topic"]
    return f"{finding['kind']} {finding['finding_id'][:6]} of {where}"
