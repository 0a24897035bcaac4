"""Copies of a slave's topics, groups and delay offsets against what its master had."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions import slave_copy as judged
from mqreplay.decisions.slave_copy import slave_copy, stored_rows
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
ALIVE = ((0, 0, 900), (1, 0, 900))
TOPIC = {"read_queue_nums": 4, "write_queue_nums": 4, "perm": 6}


def of(seconds: float, broker_id: int, **values: object) -> Row:
    place = {"source_name": f"b-{broker_id}", "broker_name": "b", "broker_id": broker_id}
    return place | {"ts": at(seconds), "change": "first"} | values


def topic(seconds: float, broker_id: int, name: str = "t", **differs: object) -> Row:
    return of(seconds, broker_id, topic=name) | TOPIC | differs


def delay(seconds: float, broker_id: int, offset: int, level: int = 3) -> Row:
    return of(seconds, broker_id, delay_level=level, offset=offset)


def copied(file_name: str, *times: tuple[float, int]) -> list[Row]:
    return [of(seconds, broker_id, file_name=file_name) for seconds, broker_id in times]


def polls(*spans: tuple[int, int, int], boots: dict[int, float] | None = None) -> pl.DataFrame:
    asked = [(n, s) for n, since, until in spans for s in range(since, until + 1, 10)]
    booted = {n: at(s) for n, s in (boots or {}).items()}
    answers = [{"broker_id": n, "ts": at(s), "boot_ts": booted.get(n)} for n, s in asked]
    return rows("silver.broker_runtime", {"broker_name": "b"}, answers)


def verdicts(
    copies: list[Row],
    topics: list[Row] | None = None,
    groups: list[Row] | None = None,
    delays: list[Row] | None = None,
    runtime: pl.DataFrame | None = None,
    version: str | None = "4.9.7",
    settings: dict[str, str] | None = None,
) -> pl.DataFrame:
    broker = {"broker_name": "b", "broker_id": 1, "ts": at(0), "rocketmq_version": version}
    described = [broker | {"properties": settings or {}}]
    return slave_copy(
        rows("silver.topic_config", {}, topics or []),
        rows("silver.subscription_group", {}, groups or []),
        rows("silver.delay_offset", {}, delays or []),
        rows("silver.snapshot", {}, copies),
        polls(*ALIVE) if runtime is None else runtime,
        rows("silver.broker", {}, described),
    )


def last(*args: Any, **known: Any) -> tuple[str, str, list[str] | None]:
    row = verdicts(*args, **known).sort("ts").rows(named=True)[-1]
    return row["judgement"], row["reason"], row["names"] or None


AGREES = ("agree", judged.HAD, None)
CHANGED = [topic(0, 0), topic(0, 1), topic(100, 0, perm=4, change="changed")]


def topics_copied(*of_slave: float) -> list[Row]:
    return copied("topics.json", (0, 0), (100, 0), (0, 1), *((seconds, 1) for seconds in of_slave))


def test_a_copy_may_be_as_old_as_a_turn_of_the_schedule() -> None:
    assert last(topics_copied(112), CHANGED) == AGREES
    assert last(topics_copied(120), CHANGED) == ("differ", judged.LACKS, ["t"])
    # 5.x copies about once a minute, and so may a slave of unknown version.
    for version in ("5.3.3", None):
        assert last(topics_copied(160), CHANGED, version=version) == AGREES
        assert last(topics_copied(180), CHANGED, version=version)[0] == "differ"


def test_a_slave_that_copied_the_change_agrees() -> None:
    followed = [*CHANGED, topic(108, 1, perm=4, change="changed")]
    assert verdicts(topics_copied(108, 400), followed)["judgement"].to_list() == ["agree"] * 3
    # Its copy may show the change before the recorder copied the master's file.
    earlier = [*CHANGED, topic(60, 1, perm=4, change="changed")]
    assert last(topics_copied(60), earlier) == AGREES


def test_an_entry_that_the_slave_lacks_differs() -> None:
    topics = [topic(0, 0, "u"), topic(0, 1, "u"), topic(50, 0)]
    assert last(topics_copied(120), topics) == ("differ", judged.LACKS, ["t"])
    groups = [of(0, 0, consumer_group="g"), of(0, 1, consumer_group="h")]
    files = copied("subscriptionGroup.json", (0, 0), (0, 1), (60, 1))
    assert last(files, groups=groups) == ("differ", judged.LACKS, ["g"])


def test_a_removed_entry_and_what_only_the_slave_has_are_not_compared() -> None:
    assert last(topics_copied(300), [topic(0, 0), topic(0, 1), topic(0, 1, "own")]) == AGREES
    gone = [topic(0, 0), topic(0, 1), of(100, 0, topic="t", change="removed")]
    assert last(topics_copied(300), gone) == AGREES
    # Each broker makes these itself.
    assert last(topics_copied(300), [topic(0, 0, "%RETRY%g"), topic(0, 1, "u")]) == AGREES


def test_without_a_copy_of_the_master_nothing_is_known() -> None:
    assert last(copied("topics.json", (0, 1)), [topic(0, 1)]) == ("undetermined", judged.NO_MASTER, None)
    early = verdicts(copied("topics.json", (0, 1), (5, 0)), [topic(0, 1), topic(5, 0)])
    assert early["judgement"].to_list() == ["undetermined"]


@pytest.mark.parametrize(
    "runtime",
    [
        polls((0, 0, 900), (1, 0, 60)),
        polls((0, 0, 60), (1, 0, 900)),
        polls(*ALIVE, boots={1: 110}),
        polls(*ALIVE, boots={0: 110}),
    ],
)
def test_a_difference_is_open_if_one_of_the_two_may_not_have_run(runtime: pl.DataFrame) -> None:
    found = verdicts(topics_copied(120), CHANGED, runtime=runtime).sort("ts").rows(named=True)[-1]
    assert (found["judgement"], found["reason"]) == ("undetermined", judged.COPY_INTERRUPTED)


def test_a_change_between_two_copies_leaves_open_what_was_there() -> None:
    # The slave has perm 2. The master had 6, then 4, and perhaps 2 in between.
    topics = [topic(0, 0), topic(100, 0, perm=4, change="changed"), topic(0, 1), topic(50, 1, perm=2)]
    assert last(topics_copied(90), topics) == ("undetermined", judged.BETWEEN, None)
    # The slave's own value is new: somebody may have written it there since its last turn.
    own = [topic(0, 0), topic(0, 1), topic(195, 1, perm=2, change="changed")]
    assert last(topics_copied(200), own) == ("undetermined", judged.BETWEEN, None)
    assert last(topics_copied(195, 300), own)[0] == "differ"


DELAY_FILES = copied("delayOffset.json", (0, 0), (50, 0), (100, 0), (0, 1), (60, 1), (140, 1))


def test_a_delay_offset_is_one_between_two_of_the_master() -> None:
    of_master = [delay(0, 0, 3), delay(50, 0, 9), delay(100, 0, 30)]
    followed = verdicts(DELAY_FILES, delays=[*of_master, delay(0, 1, 3), delay(60, 1, 12), delay(140, 1, 30)])
    assert followed["judgement"].to_list() == ["agree"] * 3
    early = copied("delayOffset.json", (0, 0), (50, 0), (100, 0), (0, 1), (110, 1))
    assert last(early, delays=[*of_master, delay(0, 1, 3)], version="5.3.3") == AGREES
    late = copied("delayOffset.json", (200, 1))
    assert last([*DELAY_FILES, *late], delays=[*of_master, delay(0, 1, 3)], version="5.3.3")[::2] == ("differ", ["3"])
    assert last([*DELAY_FILES, *late], delays=of_master, version="5.3.3")[::2] == ("differ", ["3"])
    # The recording may have no later copy of the master.
    ahead = [*of_master, delay(0, 1, 3), delay(60, 1, 31)]
    assert last(DELAY_FILES, delays=ahead, version="5.3.3") == ("undetermined", judged.BETWEEN, None)


def test_a_slave_of_4_may_answer_polls_by_old_delay_offsets() -> None:
    old = [delay(0, 0, 3), delay(50, 0, 9), delay(0, 1, 3)]
    assert last(DELAY_FILES, delays=old)[:2] == ("undetermined", judged.AT_START)


def test_only_copies_that_do_not_agree_are_kept() -> None:
    found = verdicts(topics_copied(60, 300), CHANGED)
    kept = stored_rows(found).rows(named=True)
    assert found["judgement"].to_list() == ["agree", "agree", "differ"]
    assert [(row["ts"], row["master_ts"], row["allowed_ms"], row["differing"], row["part"]) for row in kept] == [
        (at(300), at(100), 15_000, 1, "topicConfig")
    ]


@pytest.mark.parametrize(
    ("version", "settings", "judgement"),
    [
        ("5.3.3", {}, "agree"),
        ("5.3.3", {"enableControllerMode": "true"}, "differ"),
        ("5.3.3", {"enableDLegerCommitLog": "true"}, "differ"),
        (None, {"enableControllerMode": "true"}, "agree"),
    ],
)
def test_a_slave_of_an_elected_master_copies_every_12_s(version: str | None, settings: Row, judgement: str) -> None:
    """ReplicasManager#handleSlaveSynchronize: every 3 s, if the last time is more than 10 s ago."""
    changed = topics_copied(130), CHANGED
    assert last(*changed, version=version, settings=settings)[0] == judgement
