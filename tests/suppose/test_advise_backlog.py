"""Which setting advise derives from a backlog: when members were too few, were not there, or stood still."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from decisions.test_suppositions import rebalances
from mqreplay.decisions.supposed_shares import lists_seen
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.moment.offsets import ends_between
from mqreplay.suppose.advise_backlog import Backlog, backlog_of, text_of_backlog
from mqreplay.suppose.backlog import Progress
from mqreplay.suppose.instants import RECENT, stored_rates
from suppose.test_backlog import RESETS, at, steady

QUEUES = [{"broker_name": "broker-a", "queue_id": number} for number in (0, 1)]
SINCE, LASTS = -61, 60  # seconds after test_backlog.BEGIN: the hottest queue gets 57 % of the messages
TIME = pl.Datetime("us", "UTC")
KEY = {"broker_name": pl.String, "topic": pl.String, "queue_id": pl.Int32}
NUMBER = "their number is not shown to be the cause"


@pytest.fixture(scope="module")
def sample(night: Any) -> Recorded:
    return recorded(Warehouse(night.root), "DefaultCluster")


def lists(members: int) -> pl.DataFrame:
    """Return what members of a group saw of the sample's bulk-topic, which has 2 queues."""
    rows = rebalances(*(f"c{number}" for number in range(1, members + 1)))
    queues = pl.lit(QUEUES, pl.List(pl.Struct({"broker_name": pl.String, "queue_id": pl.Int32})))
    return lists_seen(rows.with_columns(pl.lit("bulk-topic").alias("topic"), queues.alias("mq_all")))


def backlog(
    sample: Recorded,
    kind: str,
    part: float,
    members: int = 1,
    until: float = 60,
    lasts: float = LASTS,
    are_recorded: bool = True,
) -> Backlog:
    """Return the backlog of a finding of ``lasts`` seconds, in which each member finished this part of what arrived.

    Members were there from 100 s before it, ``until`` that many seconds after its begin.
    """
    since, end = at(SINCE), at(SINCE + lasts)
    arrived = stored_rates(ends_between(sample, since - RECENT, end, "bulk-topic"))["stored"].sum()
    every = [
        queue | {"topic": "bulk-topic", "client_id": f"c{number % members + 1}"} for number, queue in enumerate(QUEUES)
    ]
    finished = steady(part * arrived * members / 2, SINCE - 100, SINCE + 100)
    commits = [each | {"committed": offset, "committed_ts": at(ts)} for each in every for ts, offset in finished]
    owners = pl.DataFrame(
        [each | {"from_ts": at(SINCE - 100), "to_ts": at(SINCE + until)} for each in every],
        KEY | {"client_id": pl.String, "from_ts": TIME, "to_ts": TIME},
    )
    frame = pl.DataFrame(commits, KEY | {"committed": pl.Int64, "committed_ts": TIME}).sort("committed_ts")
    sessions = owners.select("client_id", "from_ts", "to_ts")
    known = Progress(sample, frame, owners, sessions if are_recorded else sessions.clear(), RESETS)
    row = {"kind": kind, "topic": "bulk-topic", "consumer_group": "g", "from_ts": since, "to_ts": end}
    return backlog_of(known, row, lists(members), 30, {}, 10)


def test_members_that_are_too_few_at_their_best(sample):
    found = backlog(sample, "disk_bound_catchup", 0.8)
    assert found.setting == "+1 consumer in g"
    assert text_of_backlog(found)[0] == "needs 2 consumers; 1 was connected"


def test_members_that_fell_behind_while_they_advanced(sample):
    found = backlog(sample, "lag_grows", 0.8)
    assert found.setting == "+1 consumer in g"
    assert text_of_backlog(found)[0] == "needs 2 consumers; 1 was connected"


def test_members_that_stood_still_get_no_setting(sample):
    found = backlog(sample, "stuck_queue", 0.8)
    assert (found.setting, found.suppositions) == ("", ())
    assert text_of_backlog(found)[0] == "needs 2 consumers or more; 1 was connected, and a queue stood still"


def test_members_that_were_enough_get_no_setting(sample):
    found = backlog(sample, "disk_bound_catchup", 1.2)
    assert found.setting == ""
    assert text_of_backlog(found)[0] == f"needs 1 consumer; 1 was connected: {NUMBER}"


def test_more_queues_where_one_is_too_hot(sample):
    found = backlog(sample, "disk_bound_catchup", 0.4)
    assert found.setting == "+2 consumers in g, 3 queues of bulk-topic on each broker"


@pytest.mark.parametrize("kind", ["lag_grows", "disk_bound_catchup"])
def test_members_that_left_before_are_needed_again(sample, kind):
    found = backlog(sample, kind, 0.8, members=2, until=1)
    assert found.setting == "2 consumers connected in g"
    assert text_of_backlog(found)[0] == "2 consumers would have kept up; none was connected"


def test_members_that_left_in_between_are_not_the_only_cause(sample):
    found = backlog(sample, "stuck_queue", 0.8, members=2, until=31)
    assert found.setting == ""
    connected = "members were connected for 31 of 60 s, and a queue stood still"
    assert text_of_backlog(found)[0] == f"needs 2 consumers or more; {connected}: {NUMBER}"


def test_a_short_finding_had_its_members(sample):
    found = backlog(sample, "disk_bound_catchup", 1.8, lasts=15)  # commits come every 5 s
    assert text_of_backlog(found)[0] == f"needs 1 consumer; 1 was connected: {NUMBER}"


@pytest.mark.parametrize("kind", ["lag_grows", "disk_bound_catchup"])
@pytest.mark.parametrize("until", [1, 60])
def test_members_that_nobody_recorded_are_not_absent(sample, kind, until):
    found = backlog(sample, kind, 0.8, members=2, until=until, are_recorded=False)
    assert (found.setting, found.rates.members) == ("", None)
    assert "; how many were connected is not known" in text_of_backlog(found)[0]
