"""Nights of another real cluster of 5.3.3: a quiet one has no alarm; a reset by a broker is reported as such."""

from __future__ import annotations

import datetime as dt

from mqreplay.answers.outcome import outcome_of
from mqreplay.lake.warehouse import Warehouse
from night.made_nights import judged_night
from tests_shared import table_at

CLUSTER = "plant-7"


def at(clock: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"2026-11-23T{clock}")


def near(told: dt.datetime | str, clock: str, within_s: float) -> bool:
    instant = dt.datetime.fromisoformat(told) if isinstance(told, str) else told
    return abs(instant.replace(tzinfo=None) - at(clock)) <= dt.timedelta(seconds=within_s)


def test_a_quiet_night_alarms_nobody_and_all_of_it_is_judged():
    outcome = outcome_of(Warehouse(judged_night("quiet-5.3.3").root), CLUSTER)
    # Starts and stops hand over single messages that were on their way: no finding.
    assert [f["summary"] for f in outcome.findings] == []
    assert outcome.judgements == {
        "gold.allocation": {"agree": 175},
        "gold.pull_route": {"agree": 11_889},
        "gold.slave_suggestion": {"agree": 11_716},
        "gold.pull_answer": {"agree": 11_860},
        "gold.queue_start": {"agree": 70, "undetermined": 6},  # those of broadcasting clients
        "gold.queue_lock": {"agree": 202, "undetermined": 9},  # those of the first minute
        "gold.rebalance_round": {"agree": 2, "undetermined": 2},  # all clients stop at the end
        "gold.rebalance_step": {"agree": 258, "undetermined": 2},  # of broadcasting clients
        "gold.flow_control": {"agree": 774, "undetermined": 12},  # hooks do not record the thresholds of a client
        "gold.offset_commit": {"agree": 1_205},
        "gold.committed_offset": {"agree": 944, "undetermined": 273},  # filters exclude all messages of some queues
        "gold.pull_batch": {"agree": 11_352},
        "gold.replication": {"agree": 156},
        "gold.listed_route": {"agree": 157, "undetermined": 4},  # answers before the first lists of brokers were old
        "gold.slave_copy": {"agree": 77, "undetermined": 11},  # topics made just before, and a copy during a turn
        "gold.slave_sync": {"undetermined": 3},  # no recorder asked for GET_BROKER_HA_STATUS
    }
    assert outcome.quarantined == 0, "a broker's own notes of a broadcasting group are no orphan keys"


def test_resets_by_the_broker_and_an_offset_past_the_end():
    root = judged_night("resets-5.3.3").root
    outcome = outcome_of(Warehouse(root), CLUSTER)
    alarms = {f["kind"]: f for f in outcome.findings if f["severity"] != "info"}
    assert alarms.keys() == {"offset_reset", "offset_beyond_max"}
    reset = alarms["offset_reset"]
    assert (reset["consumer_group"], reset["topic"]) == ("welders", "weld-jobs")
    assert near(reset["from_ts"], "01:45:19.438", 2)
    assert "6 queues reset, back by up to 59 messages" in reset["summary"]
    follows = {f["kind"]: f for f in outcome.findings if f["follows_from"] == reset["finding_id"]}
    assert follows.keys() == {"offset_rewind", "duplicate_delivery"}
    assert "by an offset reset" in follows["offset_rewind"]["summary"]
    broken = table_at(root, "gold.offset_continuity").filter(broker_id=0, consumer_group="welders").to_dicts()
    # One copy was made before the client heard of it, one after it had gone on from there.
    assert {(r["kind"], r["cause"]) for r in broken} == {("rewind", "reset")}
    assert len(broken) == 6
    beyond = alarms["offset_beyond_max"]
    assert (beyond["consumer_group"], beyond["broker_name"], beyond["queue_id"]) == ("gaugers", "press", 0)
    assert "set to 5263, past the end of the queue at 267, by a change from outside" in beyond["summary"]
    assert near(beyond["from_ts"], "01:49:06.375", 5)
    assert near(beyond["to_ts"], "01:49:24", 6)
