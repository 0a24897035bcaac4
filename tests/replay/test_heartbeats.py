"""What is read of heartbeats is the same by the rows that a pass keeps, in whichever parts it gets them, as by all."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from each_case import for_each
from mqreplay.decisions.queue_start import OF_CONSUMER, consumers
from mqreplay.engines.passes import Pass
from mqreplay.engines.rows import FrameRows
from mqreplay.engines.shards import ALL, Shard
from mqreplay.evidence.brokers.broker_outages import broker_outages
from mqreplay.evidence.intervals import with_nearest_row
from mqreplay.evidence.members.client_languages import other_clients
from mqreplay.evidence.members.conflicts import subscription_conflicts, unsubscribed_topics
from mqreplay.evidence.members.dropped_clients import dropped_clients
from mqreplay.evidence.members.group_states import group_states
from mqreplay.evidence.members.member_gaps import unread_members
from mqreplay.evidence.members.membership import (
    membership,
    signs,
    subscribed_expressions,
    subscriptions,
    unshared_groups,
)
from mqreplay.evidence.members.ownership import subscribers
from mqreplay.lake.contract import arrow_schema, load_contracts
from mqreplay.replay import heartbeat_pass
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import Day
from mqreplay.settings import Settings
from mqreplay.words.keys import MEMBER
from silver_moments import BEGAN, at
from silver_rows import rows

HEARTBEAT = "silver.heartbeat"
Row = dict[str, Any]
SETTINGS = Settings()
SECONDS = 2_400


@dataclass
class Parts:
    """Runs a pass on parts of the rows, as an engine does."""

    parts: Sequence[pl.DataFrame]

    @property
    def source(self) -> FrameRows:
        return self.of(pl.concat(self.parts))

    @staticmethod
    def of(part: pl.DataFrame) -> FrameRows:
        columns = load_contracts()[HEARTBEAT].columns
        schema = arrow_schema((column.name, column.type) for column in columns if column.name != "cluster")
        return FrameRows({HEARTBEAT: schema}, {HEARTBEAT: part})

    def run(self, step: Pass[Any, Any], shards: Sequence[Shard], inputs: Any) -> Iterator[Any]:
        for part in self.parts:
            yield step.run(self.of(part), ALL, inputs, None)  # type: ignore[arg-type]

    def commit(self, replaced: object) -> None:
        """Write nothing."""


def beat(draw: random.Random, client: str, broker: str, second: float, groups: dict[str, Any], **more: Any) -> Row:
    data = [
        {"group_name": group, "consume_type": "CONSUME_PASSIVELY", "consume_from_where": "CONSUME_FROM_LAST_OFFSET"}
        | {"message_model": model, "subscriptions": topics}
        for group, (model, topics) in groups.items()
    ]
    took = draw.choice((0.005, 0.005, 0.005, 2))
    named = {"kind": "HEART_BEAT", "client_id": client, "broker_name": broker, "broker_id": 0, "ts": at(second)}
    answer: Row = {"response_ts": at(second + took), "response_code": 0}
    return named | answer | {"consumer_data_set": data} | more


def topics(draw: random.Random, group: str, version: int) -> list[Row]:
    """As a client lists them: a set, in any order."""
    names = [f"T-{group}", f"%RETRY%{group}"]
    draw.shuffle(names)
    return [{"topic": n, "sub_string": "*", "expression_type": "TAG", "sub_version": version} for n in names]


def night(seed: int) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Heartbeats of clients that come, go, restart and get no answers; in some nights members differ."""
    draw = random.Random(seed)
    brokers, found = ["b", "c"], list[Row]()
    downs = {broker: draw.uniform(100, SECONDS) for broker in brokers}
    boots = [{"broker_name": b, "broker_id": 0, "ts": at(s), "boot_ts": at(s)} for b, s in downs.items()]
    for number in range(6):
        group, client = f"g{number % 3}", f"10.0.0.{number}@7"
        # Often two clients of a group ask at the same time.
        began, ended = (
            30 * draw.randrange(10) + draw.randrange(3),
            draw.choice((SECONDS, SECONDS, draw.uniform(300, SECONDS))),
        )
        version = draw.choice((5, 6, 7))
        model = "BROADCASTING" if seed % 5 == 1 and group == "g2" else "CLUSTERING"
        stated = {group: (model, topics(draw, group, version))}
        if draw.random() < 0.3:
            stated["g0"] = (model, topics(draw, "g0", 5))
        changes_at = draw.uniform(0, SECONDS) if seed % 3 == 0 and number == 4 else SECONDS
        second = began
        while second < ended:
            if second > changes_at and len(stated[group][1]) == 2:
                stated[group] = (model, [*stated[group][1], {"topic": "U", "expression_type": "TAG", "sub_version": 9}])
            if draw.random() < 0.02:
                stated |= {
                    group: (model, [each | {"sub_version": each["sub_version"] + 3} for each in stated[group][1]])
                }
            short = {name: (of[0], None) for name, of in stated.items()} if seed % 4 == 1 and number == 3 else stated
            for broker in brokers:
                is_down = downs[broker] - 60 < second < downs[broker]
                failed: Row = {"error": "timeout", "response_ts": None, "response_code": None} if is_down else {}
                sent = second + draw.randrange(5) / 1000
                found.append(beat(draw, client, broker, sent, stated if second == began else short, **failed))
            if draw.random() < 0.01:
                left: Row = {"kind": "UNREGISTER_CLIENT", "consumer_data_set": None}
                left["unregistered_consumer_group"] = group
                found += [beat(draw, client, b, second + draw.choice((1, 4, 6)), {}) | left for b in brokers]
            if draw.random() < 0.005:
                closed: Row = {"kind": "CHANNEL_CLOSE", "source": "broker_log", "heard_ts": at(second)}
                found.append(beat(draw, client, "b", second + 1, {}) | closed | {"closed_consumer_group": group})
            second = round(second + draw.choice((30, 30, 30, 30, 30, 6, 100)), 3)
    logged: dict[str, Any] = {"g2": ("CLUSTERING", topics(draw, "g2", 1))}
    found += [beat(draw, "10.0.0.9@7", "b", 30 * n, logged, source="broker_log") for n in range(9)]
    found += [beat(draw, "producer", "b", s, {}, language="GO", consumer_data_set=[]) for s in range(0, SECONDS, 30)]
    small = {"broker_runtime": rows("silver.broker_runtime", {}, boots)}
    small |= {name: rows(f"silver.{name}", {}, []) for name in ("assignment", "consumer_connection", "rebalance")}
    return rows(HEARTBEAT, {"source": "heartbeat"}, found), small


def in_parts(heartbeat: pl.DataFrame, seed: int) -> list[pl.DataFrame]:
    """Any part of the rows to any task."""
    draw = random.Random(seed)
    part = pl.Series([draw.randrange(1 + seed % 4) for _ in range(len(heartbeat))])
    return [heartbeat.filter(part == number) for number in sorted(part.unique())]


def reduced(heartbeat: pl.DataFrame, small: dict[str, pl.DataFrame], seed: int) -> heartbeat_pass.Heartbeats:
    day = Day("c", BEGAN.date(), dt.datetime.combine(BEGAN.date(), dt.time(), dt.UTC), is_first=True)
    context = ReplayContext(day, SETTINGS, {}, small, small, None)
    return heartbeat_pass.run_heartbeats(Parts(in_parts(heartbeat, seed)), context, None, small)


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert_frame_equal(one, other, check_row_order=False)


@pytest.fixture(autouse=True)
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat_pass, "FEW_ROWS", -1)


@for_each(range(30))
def test_the_rules_of_a_night_give_the_same(seed: int) -> None:
    heartbeat, small = night(seed)
    kept = reduced(heartbeat, small, seed)
    whole, short = (signs(each, small["rebalance"], small["assignment"]) for each in (heartbeat, kept.rows))
    silent_s = SETTINGS.findings.silent_s
    members = membership(whole, silent_s)
    same(members, membership(pl.concat([short, kept.signs]), silent_s))
    for read in READERS:
        same(read(heartbeat, small, members), read(kept.rows, small, members))
    no_pulls = heartbeat.select("broker_name", "broker_id", "ts", "record_id").clear()
    no_answers = kept.answers.clear()
    outages = [
        broker_outages(small["broker_runtime"], of, answers, no_pulls, no_pulls.drop("broker_id"), 10, 30)
        for of, answers in ((heartbeat, no_answers), (kept.rows, kept.answers))
    ]
    assert len(outages[0]) > 0
    same(*outages)
    known, by_kept = (group_states(each, small["broker_runtime"]) for each in (heartbeat, kept.rows))
    assert known == by_kept


READERS = (
    lambda beats, small, members: subscription_conflicts(beats, members, 30),
    lambda beats, small, members: unsubscribed_topics(beats, members),
    lambda beats, small, members: subscribers(members, beats, small["rebalance"].clear(), NO_OWNERS),
    lambda beats, small, members: subscribed_expressions(beats),
    lambda beats, small, members: other_clients(small["consumer_connection"], beats),
    lambda beats, small, members: dropped_clients(beats, small["broker_runtime"], 60),
    lambda beats, small, members: unread_members(members, beats, small["assignment"], small["rebalance"]),
    lambda beats, small, members: unshared_groups(beats, small["rebalance"], small["assignment"], NO_PULLS, set()),
    lambda beats, small, members: first_statements(beats),
    lambda beats, small, members: consumers_at_pulls(beats, members),
)
NO_OWNERS = pl.DataFrame(schema=dict.fromkeys((*MEMBER, "topic"), pl.String))
NO_PULLS = pl.DataFrame(schema={"consumer_group": pl.String, "commits": pl.Boolean})


def first_statements(beats: pl.DataFrame) -> pl.DataFrame:
    """When never_consumed counts messages of a topic from."""
    return subscriptions(beats).explode("topics").group_by("consumer_group", "topics").agg(pl.col("ts").min())


def consumers_at_pulls(beats: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """What queue_start knows of the consumer at a pull, in each second."""
    instants = pl.DataFrame({"ts": [at(second) for second in range(0, SECONDS, 7)]}).cast({"ts": beats["ts"].dtype})
    asked = members.select(MEMBER).unique().join(instants, how="cross")
    known = consumers(beats).rename({"ts": "beat_ts"})
    return with_nearest_row(asked, known, MEMBER, "ts", "beat_ts", OF_CONSUMER).select(*MEMBER, "ts", *OF_CONSUMER)


def test_most_rows_of_a_quiet_night_go() -> None:
    draw = random.Random(1)
    stated = {"g": ("CLUSTERING", topics(draw, "g", 5))}
    sent = [beat(draw, f"c{n}", b, 30 * t, stated) for t in range(200) for n in range(5) for b in ("b", "c")]
    _, small = night(1)
    kept = reduced(rows(HEARTBEAT, {}, sent), {**small, "broker_runtime": small["broker_runtime"].clear()}, 0)
    assert len(kept.rows) == 5 * 2 * 5
    assert kept.signs.select("from_ts", "to_ts").unique().rows() == [(at(0), at(30 * 199))]


def test_few_rows_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat, small = night(2)
    monkeypatch.setattr(heartbeat_pass, "FEW_ROWS", len(heartbeat))
    kept = reduced(heartbeat, small, 3)
    same(kept.rows, heartbeat)
    assert kept.signs.is_empty()
    assert kept.answers.is_empty()
