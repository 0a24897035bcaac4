"""Reasons of undetermined decisions, in plain words, and what would help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Undetermined:
    """A reason of the judge, in plain words, and the kind of file or the advice that would help."""

    pattern: re.Pattern[str]
    plain: str
    kind: str = ""
    advice: str = ""


def _reason(pattern: str, plain: str, kind: str = "", advice: str = "") -> Undetermined:
    return Undetermined(re.compile(pattern), plain, kind, advice)


OLDER: Final = "give the recording of the time before, too: all folders to the same `mqreplay nightly`"
UNDETERMINED_REASONS: Final = (
    _reason(
        "^brokers.json does not describe this broker",
        "brokers.json is missing or lacks the broker",
        advice="add brokers.json with physical_memory_bytes, or run `mqreplay record` with --physical-memory",
    ),
    _reason(
        "^brokers.json lacks slaveReadEnable",
        "brokers.json lacks slaveReadEnable of the broker",
        advice="add the output of mqadmin getBrokerConfig with `mqreplay import`",
    ),
    _reason(
        "^no subscriptionGroup.json", "no subscriptionGroup.json of the broker has the group", "subscription_groups"
    ),
    _reason(
        "memory or ratio is not known",
        "the broker's physical memory is not known",
        advice="add physical_memory_bytes to brokers.json",
    ),
    _reason(
        "^diff lies between",
        "the reader's distance was too close to the memory limit",
        advice="record the brokers' figures (broker_runtime) more often, such as with --every 1s",
    ),
    _reason(
        "^no reading of SCHEDULE_TOPIC_XXXX",
        "the number of delayed messages was not recorded",
        advice="run `mqreplay record` without --group and --topic",
    ),
    _reason(
        "^no answer of this master to GET_BROKER_HA_STATUS",
        "no answer of a master states what its slaves have confirmed",
        advice="run `mqreplay record`",
    ),
    _reason("^the client is older than the recording", "the client started before the recording", advice=OLDER),
    _reason("^the client's route was not recorded", "the client's route was not recorded", "routes"),
    _reason("^(the end of .* not known|a queue's end is not known)", "the end of a queue is not known", "topic_stats"),
    _reason(
        "^the committed offset of .* is negative",
        "the committed offset of a queue is negative",
        advice="set it with mqadmin resetOffsetByTime",
    ),
    _reason("^no heartbeat tells", "the groups' subscriptions are not known", "heartbeats"),
    _reason("^no commit tells", "the groups' commits were not recorded", "offset_commits"),
    _reason(
        "^the thresholds of the client were not recorded",
        "the thresholds of the clients' caches were not recorded",
        advice="run `mqreplay record`",
    ),
    _reason("left no log of deliveries", "some consumers recorded no deliveries", "consume_log"),
    _reason("^the recording lacks the lists", "the lists that the client used were not recorded", "rebalance_log"),
    _reason("^the recording lacks", "the client's strategy or queues were not recorded", "assignments"),
    _reason(
        r"^not judged: \[strategies",
        "the configuration does not describe the group's strategy completely",
        advice="complete [strategies.groups] in the file for --conf (docs/settings.md)",
    ),
)


def plain_reason(text: str) -> str:
    """Return a reason of an undetermined decision in the words of a reader.

    >>> plain_reason("diff lies between N and N bytes, memory is N")
    "the reader's distance was too close to the memory limit"
    """
    known = reason_of(text)
    return text if known is None else known.plain


def reason_of(text: str) -> Undetermined | None:
    """Return the record of a reason."""
    return next((known for known in UNDETERMINED_REASONS if known.pattern.search(text)), None)
