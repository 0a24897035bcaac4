"""`mqreplay advise` on the samples: each setting is proved by what whatif computes, and no finding is left out."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from mqreplay.cli.command_line import main

CLUSTER = "DefaultCluster"
ANSWERS: dict[tuple[str, ...], dict[str, Any]] = {}  # no command changes the night


def advised(night: Any, capsys: pytest.CaptureFixture[str], group: str, cluster: str = CLUSTER) -> dict[str, Any]:
    return answered(night, capsys, "advise", group, "--cluster", cluster)


def supposed(night: Any, capsys: pytest.CaptureFixture[str], command: str, cluster: str = CLUSTER) -> dict[str, Any]:
    """Return what whatif says for a command of an advice."""
    return answered(night, capsys, *shlex.split(command)[1:], "--cluster", cluster)


def answered(night: Any, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the JSON that a command prints of the night."""
    if words not in ANSWERS:
        assert main([*words, "--warehouse", night.root, "--json"]) == 0
        ANSWERS[words] = json.loads(capsys.readouterr().out)
    return ANSWERS[words]


def printed(night: Any, capsys: pytest.CaptureFixture[str], group: str) -> list[str]:
    assert main(["advise", group, "--cluster", CLUSTER, "--warehouse", night.root]) == 0
    *lines, page = (line.replace(night.root, "night") for line in capsys.readouterr().out.splitlines())
    assert page == f"Page: night/report/{CLUSTER}.html#group-{group}"
    return lines


def by_setting(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["supposition"]: each for each in found["advice"]}


def kinds(night: Any, cluster: str = CLUSTER) -> dict[str, str]:
    return dict(night.table("gold.finding", cluster).select("finding_id", "kind").rows())


def note_of(night: Any, found: dict[str, Any], kind: str, cluster: str = CLUSTER) -> dict[str, Any]:
    names = kinds(night, cluster)
    return next(each for each in found["notes"] if names[each["finding_id"]] == kind)


def test_a_command_to_copy_has_the_name_servers(night, capsys):
    note = note_of(night, advised(night, capsys, "bulk-group"), "slave_pull")
    assert "`mqadmin consumerProgress -g bulk-group -n '127.0.0.1:9876;127.0.0.1:9877'`" in note["next"]


def test_one_strategy_ends_a_conflict(night, capsys):
    found = advised(night, capsys, "mixalg-group")
    best = found["advice"][0]
    assert best["supposition"] == "strategy=AVG in mixalg-group"
    assert (len(best["removes"]), best["brings"], best["moved_max"]) == (3, [], 4)
    assert set(found["open"]).isdisjoint(best["removes"])
    assert set(found["open"]) | set(best["removes"]) == set(found["findings"])


def test_an_idle_consumer_needs_more_queues_or_fewer_consumers(night, capsys):
    found = by_setting(advised(night, capsys, "order-group"))
    assert set(found) == {
        "-1 consumer in order-group",
        "3 queues of order-topic on each broker",
        "4 queues of order-topic on each broker",
    }
    assert found["3 queues of order-topic on each broker"]["moved_max"] == 0


@pytest.mark.parametrize("group", ["mixalg-group", "order-group", "ship-circle-group"])
def test_settings_are_ranked_by_findings_then_price_then_size(night, capsys, group):
    ranks = [
        (-len(each["removes"]), len(each["brings"]), each["moved_max"], each["moved_min"], each["size"])
        for each in advised(night, capsys, group)["advice"]
    ]
    assert len(ranks) >= 3
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("group", ["mixalg-group", "order-group", "ship-circle-group"])
def test_the_price_of_a_setting_is_that_of_whatif(night, capsys, group):
    for each in advised(night, capsys, group)["advice"]:
        owners = [row for row in supposed(night, capsys, each["command"])["owners"] if row["consumer_group"] == group]
        moved = sum(row["change"] in ("moved", "may move") for row in owners)
        sure = sum(row["change"] == "moved" for row in owners)
        assert sure <= each["moved_min"] <= each["moved_max"] <= moved, each["supposition"]
        new = sum(row["change"] == "new" for row in owners)
        # whatif shows the topics that a setting concerns.
        shown = sum(row["change"] != "new" for row in owners)
        assert (each["new"], each["queues"] - shown) == (new, 2 if "--queues" in each["command"] else 0)


@pytest.mark.parametrize(
    ("cluster", "group"),
    [
        *((CLUSTER, f"{name}-group") for name in ("bulk", "crash", "grow", "mixsub", "pay-room", "refund", "reset")),
        *((CLUSTER, f"{name}-group") for name in ("mixalg", "order", "stuck")),
        ("grid-cluster", "meter-billing"),
        ("grid-cluster", "meter-archive"),
    ],
)
def test_each_finding_has_a_setting_or_a_note_with_a_next_step(night, capsys, cluster, group):
    found = advised(night, capsys, group, cluster)
    removed = {key for each in found["advice"] for key in each["removes"]}
    noted = [each["finding_id"] for each in found["notes"]]
    assert found["findings"] != []
    assert sorted([*removed, *noted]) == sorted(found["findings"])
    assert found["open"] == noted
    assert all(len(each["next"]) > 10 for each in found["notes"])


def test_no_setting_of_shares_helps_against_different_subscriptions(night, capsys):
    found = advised(night, capsys, "mixsub-group")
    note = note_of(night, found, "subscription_conflict")
    assert note["lines"] == []
    assert note["next"] == "Give all members of the group the same subscriptions, or each a group of its own."
    refused = note_of(night, found, "pull_refused")
    assert refused["next"] == f"follows from subscription_conflict {note['finding_id'][:8]}"


def test_a_group_without_members_needs_some(night, capsys):
    found = advised(night, capsys, "mixsub-group")
    (best,) = found["advice"]
    assert best["supposition"] == "1 consumer connected in mixsub-group"
    assert [kinds(night)[key] for key in best["removes"]] == ["lag_grows"]
    assert (best["moved_min"], best["moved_max"]) == (0, 0)  # nobody owned the queues
    backlog = found["backlogs"][best["removes"][0]]
    assert backlog["members"] == 0
    assert backlog["arrived"] < backlog["fastest_minute_of_a_member"]
    assert backlog["least"] == {"members": 1, "queues": None}
    assert "fastest minute" in found["assumption"]


def test_members_that_stand_still_do_not_need_others(night, capsys):
    found = advised(night, capsys, "stuck-group")
    assert found["advice"] == []
    line, rates = note_of(night, found, "stuck_queue")["lines"]
    number = "their number is not shown to be the cause"
    assert line == f"needs 1 consumer or more; 1 was connected, and a queue stood still: {number}"
    assert rates.startswith("1.9/s arrived, 1.0/s of it in one queue; a member finished 1.0/s; the fastest minute")
    assert "`jstack PID`" in note_of(night, found, "slow_listener")["next"]


def test_a_queue_from_disk_needs_as_many_as_both_rates_say(night, capsys):
    found = advised(night, capsys, "bulk-group")
    (backlog,) = found["backlogs"].values()
    assert backlog["least"] == {"members": 1, "queues": None}
    assert backlog["most"] == {"members": 3, "queues": 3}
    # One queue got more than a member finished: members alone do not help.
    assert backlog["arrived_in_one_queue"] > backlog["finished_by_a_member"]
    assert 2 < backlog["arrived"] / backlog["finished_by_a_member"] <= 3


@pytest.mark.parametrize(
    ("cluster", "group", "ratio"),
    [
        (CLUSTER, "bulk-group", 2),
        (CLUSTER, "mixsub-group", 2),
        ("grid-cluster", "meter-billing", 2),  # nobody would have got to the slave, which subtracts 10
    ],
)
def test_a_ratio_that_keeps_a_group_on_the_master_by_whatif(night, capsys, cluster, group, ratio):
    note = note_of(night, advised(night, capsys, group, cluster), "slave_pull", cluster)
    assert note["command"].startswith(f"mqreplay whatif --set ratio={ratio} --broker ")
    (line,) = note["lines"]
    assert f"accessMessageInMemoryMaxRatio={ratio} on " in line
    assert "would have kept it on the master" in line
    pulls = [
        row for row in supposed(night, capsys, note["command"], cluster)["pulls"] if row["consumer_group"] == group
    ]
    assert sum(row["to_slave"] for row in pulls) > 0
    assert sum(row["to_slave_max"] for row in pulls) == 0
    less = note["command"].replace(f"ratio={ratio}", f"ratio={ratio - 1}")
    pulls = [row for row in supposed(night, capsys, less, cluster)["pulls"] if row["consumer_group"] == group]
    assert sum(row["to_slave_max"] for row in pulls) > 0


def test_the_text_is_aligned_and_names_the_price(night, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    first, head, best, *others, command, why, left = printed(night, capsys, "ship-circle-group")
    assert first == "DefaultCluster: ship-circle-group, 2 findings on 2026-11-21"
    assert head == "  setting                                queues moved   raises   removes"
    assert best == "  4 queues of ship-topic on each broker  2 of 7, 3 new  nothing  idle_consumer 432008a1"
    assert len(others) == 2
    options = "--queues 4 --topic ship-topic --cluster DefaultCluster --warehouse night"
    assert command == f"  who would own which queue: mqreplay whatif {options}"
    assert why == "  no setting of strategy, consumers or queues is shown to remove:"
    assert left == "  duplicate_delivery 42a25a8e  follows from broker_down 701391d9"


def test_a_group_without_findings(night, capsys):
    assert printed(night, capsys, "pay-group") == ["DefaultCluster: pay-group, no findings on 2026-11-21"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("order-grop", "did you mean order-group?"),
        ("pay*", "a pattern is no name: name one of pay-config-group, pay-group, pay-room-group"),
    ],
)
def test_an_unknown_group(night, capsys, name, hint):
    assert main(["advise", name, "--cluster", CLUSTER, "--warehouse", night.root]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"mqreplay: nothing is recorded of the group {name}; {hint}"
