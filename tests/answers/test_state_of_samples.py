"""`mqreplay at` equals an independent reading of the samples' files at random moments of each."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from answers.plain_reading import PlainReading
from mqreplay.answers.state import State, state_at
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.moment.offsets import committed_at
from mqreplay.moment.queues import members_at, owners_at
from tests_shared import SAMPLE

CLUSTERS = {"orders-4.9.7": "DefaultCluster", "bulk-5.3.3": "grid-cluster"}


@pytest.fixture(scope="module", params=list(CLUSTERS))
def sample(request, night) -> tuple[Recorded, PlainReading]:
    return recorded(Warehouse(night.root), CLUSTERS[request.param]), PlainReading(SAMPLE / request.param)


def moments(night: Recorded, count: int) -> list[dt.datetime]:
    span = int((night.last - night.first).total_seconds() * 1000)
    return [night.first + dt.timedelta(milliseconds=ms) for ms in random.Random(37).sample(range(span), count)]


def by_queue(rows: list[dict], value: str) -> dict:
    return {(r["consumer_group"], r["topic"], r["broker_name"], r["queue_id"]): r[value] for r in rows}


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.long)])
def test_owners_offsets_and_members_are_those_of_the_files(sample, count):
    night, files = sample
    owned = offsets = members = 0
    for at in moments(night, count):
        ms = round(at.timestamp() * 1000)
        owners = by_queue(owners_at(night, at).collect().to_dicts(), "owners")
        assert {queue: set(held) for queue, held in owners.items()} == files.owners(ms), at
        committed = by_queue(committed_at(night, at).collect().to_dicts(), "committed")
        assert committed == files.committed(ms), at
        there = members_at(night, at).select("consumer_group", "client_id").rows()
        assert set(there) == files.members(ms), at
        owned, offsets, members = owned + len(owners), offsets + len(committed), members + len(there)
    assert min(owned, offsets, members) > count  # moments at which there is something to compare


def test_the_whole_state_is_consistent(sample):
    night, _ = sample
    state: State = state_at(night, night.first + (night.last - night.first) / 2)
    groups = {row["consumer_group"]: row for row in state.groups.to_dicts()}
    assert set(groups) >= set(state.members["consumer_group"])
    for row in state.queues.to_dicts():
        known = row["end_offset"] is not None and row["committed"] is not None
        assert (row["lag"] is not None) == known
        assert row["lag"] is None or row["lag"] == max(row["end_offset"] - row["committed"], 0)
    assert all(row["up"] for row in state.brokers.to_dicts())
    assert (state.findings["from_ts"] <= state.at).all()
