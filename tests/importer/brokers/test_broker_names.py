"""Which broker a path names: never a slave by the path alone, and in doubt nobody."""

from __future__ import annotations

import pytest

from mqreplay.importer.brokers.broker_names import NO_BROKER, BrokerNames, LogBroker


def found(names: BrokerNames, *hints: str, own_name: str | None = None) -> tuple[str, int] | None:
    named = names.find(hints, own_name=own_name)
    return None if named is None else named[:2]


def seen(*hints: str, option: tuple[str, int] | None = None) -> BrokerNames:
    names = BrokerNames(option)
    names.see(hints)
    return names


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        ("broker-a-0", ("broker-a", 0)),
        ("broker-a/0", ("broker-a", 0)),
        ("broker-a-master", ("broker-a", 0)),
        ("broker-0-master-0", ("broker-0", 0)),
        ("broker-0-master", ("broker-0", 0)),
        ("broker-0-replica-1-0", ("broker-0", 1)),
        ("broker-1-0", ("broker-1", 0)),
        ("broker-a-1", None),
        ("broker-a/1", None),
        ("broker-a-slave", None),
        ("broker-a-s", None),
        ("broker-0", None),
        ("broker-1", None),
        ("broker-master-0", None),
        ("broker-0-0-0", None),  # a pod of rocketmq-operator in CONTROLLER mode
        ("node-0", None),
    ],
)
def test_a_path_alone(hint: str, named: tuple[str, int] | None) -> None:
    names = seen(hint)
    assert found(names, hint) == named
    if named is None:
        assert "--broker" in names.why_unknown([hint])
    else:
        assert not names.find([hint]).confirmed


def test_folders_side_by_side_are_a_question() -> None:
    names = seen("broker-0", "broker-1", "broker-2")
    assert [found(names, hint) for hint in ("broker-0", "broker-1", "broker-2")] == [None] * 3
    why = {names.why_unknown([hint]) for hint in ("broker-0", "broker-1", "broker-2")}
    assert len(why) == 1, "one question for all"
    for word in ("broker-0, broker-1, broker-2", "clusterList", "--broker broker-2-0", "--broker broker-2"):
        assert word in next(iter(why))
    assert found(seen("broker-a-0", "broker-a-1"), "broker-a-0") is None


def test_an_option_names_one_of_them_alone() -> None:
    several = seen("broker-0", "broker-1", option=("broker-1", 0))
    assert found(several, "broker-0") is None
    assert "--broker names one broker" in several.why_unknown(["broker-0"])
    assert found(seen("broker-1", option=("broker-1", 0)), "broker-1") == ("broker-1", 0)
    assert found(seen("node-1", "node-2", option=("die", 0)), "node-1") == ("die", 0)
    assert found(seen("x", option=("die", 0)), "x", own_name="mint") is None, "its topics.json is of another broker"


def test_a_list_of_brokers_settles_it() -> None:
    masters = seen("broker-0", "broker-1", "broker-2")
    for number in range(3):
        masters.add(f"broker-{number}", 0)
    masters.complete()
    assert [found(masters, f"broker-{number}") for number in range(3)] == [
        (f"broker-{number}", 0) for number in range(3)
    ]
    slaves = seen("broker-0", "broker-1")
    slaves.add("broker", 0)
    slaves.add("broker", 1)
    slaves.complete()
    assert [found(slaves, "broker-0"), found(slaves, "broker-1")] == [("broker", 0), ("broker", 1)]
    both = seen("die-1")
    both.add("die", 0)
    both.add("die-1", 0)
    both.complete()
    assert found(both, "die-1") == ("die-1", 0), "id 1 of die is not in the list"


def test_logs_and_topics_name_it() -> None:
    names = seen("broker-1")
    names.add_logs([LogBroker("broker-1", None, None)])
    assert found(names, "broker-1") is None
    assert "nothing shows its brokerId" in names.why_unknown(["broker-1"], "broker-1")
    named = seen("broker-a-0")
    named.add_logs([LogBroker("broker-a-0", 0, "10.0.0.1:10911")])
    assert found(named, "broker-a-0") is None, "its log has another name than the folder"
    assert found(named, "10.0.0.1") == ("broker-a-0", 0)
    assert found(seen("broker-a-1"), "broker-a-1", own_name="broker-a") == ("broker-a", 1)


def test_an_elected_id_is_not_in_a_path() -> None:
    names = seen("broker-a-0")
    names.add_elected("broker-a", "DLedger elects its brokerId")
    assert found(names, "broker-a-0") is None
    assert "DLedger elects its brokerId" in names.why_unknown(["broker-a-0"])
    names.add("broker-a", 0)
    assert found(names, "broker-a-0") == ("broker-a", 0)
    assert found(names, "broker-a-1") is None


def test_without_any_name() -> None:
    assert seen("x").why_unknown(["x"]) == NO_BROKER
