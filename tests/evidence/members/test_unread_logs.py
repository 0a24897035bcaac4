"""Members that only a broker's log shows: their queues are unknown."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.gap_rows import GAP
from mqreplay.evidence.members.member_gaps import unpulled_members, unread_members, unwatched_gaps
from mqreplay.evidence.members.membership import SIGNS, membership, signs
from mqreplay.evidence.members.observed_clients import unwatched
from mqreplay.evidence.recorder_holes import HOLES
from silver_moments import at
from silver_rows import rows

SILENT_S = 90


def named(client: str, source: str = "broker_log") -> list[dict[str, object]]:
    data = ("g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, [("T", "*", "TAG", 1)])
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data], "source": source}
    return [row | {"ts": at(seconds)} for seconds in (0, 60, 100)]


def logged(client: str, group: str = "g") -> dict[str, object]:
    held = [("T", "b", 0, False, *[None] * 7)]
    return {"consumer_group": group, "client_id": client, "ts": at(1), "queues": held, "source": "client_log"}


def unread(beats: list[dict[str, object]], held: list[dict[str, object]]) -> pl.DataFrame:
    heartbeat, assignment, rebalance = (
        rows("silver.heartbeat", {}, beats),
        rows("silver.assignment", {}, held),
        rows("silver.rebalance", {}, []),
    )
    members = membership(signs(heartbeat, rebalance, assignment), SILENT_S)
    return unread_members(members, heartbeat, assignment, rebalance)


def test_only_members_without_a_log_of_their_own_are_unread():
    beats = [*named("10.0.0.1@7#1"), *named("10.0.0.2@7#2"), *named("10.0.0.3@7#3", "heartbeat")]
    found = unread(beats, [logged("10.0.0.1@7#1")])
    assert found.rows() == [("g", "10.0.0.2@7#2", at(0), at(100), None)]


def test_a_log_that_names_no_queue_of_the_group_was_read():
    assert unread(named("10.0.0.1@7#1"), [logged("10.0.0.1@7#9", "another")]).is_empty()


def test_each_group_has_one_gap_for_each_kind_of_finding():
    spans = unread([*named("10.0.0.1@7#1"), *named("10.0.0.2@7#2")], [])
    gaps = unwatched_gaps(spans, 45).sort("decision")
    assert gaps.schema == pl.Schema(GAP)
    assert gaps["decision"].to_list() == ["finding idle_consumer", "finding orphan_queue"]
    assert set(gaps.select("from_ts", "to_ts", "decisions").rows()) == {(at(0), at(100), 2)}
    assert "2 members of the group" in gaps["reason"][0]
    assert unwatched_gaps(spans, 100).is_empty()


def test_a_gap_says_why_a_client_that_was_polled_did_not_name_its_queues():
    shared = [("T", "b", -1, False, 0, None)]
    polls = [
        {"client_id": "c1", "pop_queues": shared},
        {"client_id": "c2", "error": "b did not answer"},
        {"client_id": "c3", "pop_queues": [], "queues": []},
    ]
    asked = {"consumer_group": "g", "ts": at(70), "source": "running_info"}
    signs_of = [("g", f"c{i}", at(0), at(100), "listed") for i in (1, 2, 3)]
    members = membership(pl.DataFrame(signs_of, SIGNS, orient="row"), SILENT_S)
    spans = unwatched(members, rows("silver.assignment", asked, polls), pl.DataFrame(schema=HOLES))
    gaps = unwatched_gaps(spans, 45)
    of_kind = gaps.filter(pl.col("decision") == "finding orphan_queue").sort("reason")
    unknown = "the queues of 1 member of the group are not known"
    assert [reason.removeprefix(unknown)[:5] for reason in of_kind["reason"]] == [". Nex", ": POP", ": gRP"]


def test_a_group_that_sends_heartbeats_and_pulls_its_retry_topic_alone_is_not_watched():
    beats = [*named("10.0.0.1@7#1", "heartbeat"), *named("10.0.0.2@7#2", "heartbeat")]
    heartbeat = rows("silver.heartbeat", {}, beats)
    assignment, rebalance = rows("silver.assignment", {}, []), rows("silver.rebalance", {}, [])
    members = membership(signs(heartbeat, rebalance, assignment), SILENT_S)
    held = {"consumer_group": "g", "client_id": "10.0.0.1@7#1", "broker_name": "b", "queue_id": 0}
    held |= {"from_ts": at(0), "to_ts": at(90), "source": "pull"}
    nobody = pl.DataFrame(schema={"consumer_group": pl.String})

    def unknown(topic: str, unshared: pl.DataFrame = nobody) -> list[str]:
        owners = rows("gold.queue_owner", held, [{"topic": topic}])
        found = unpulled_members(members, owners, assignment, rebalance, unshared)
        return sorted(found["client_id"].to_list())

    assert unknown("%RETRY%g") == ["10.0.0.1@7#1", "10.0.0.2@7#2"]
    assert unknown("T") == []
    assert unknown("%RETRY%g", pl.DataFrame({"consumer_group": ["g"]})) == []
