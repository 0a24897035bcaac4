from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core import consumer_offset_manager as manager
from mqreplay.core.offset_store import (
    MEMORY_FIRST_THEN_STORE,
    READ_FROM_MEMORY,
    READ_FROM_STORE,
    RemoteBrokerOffsetStore,
    compare_and_increase_only,
)
from mqreplay.errors import IllegalArgument, MQBrokerError, OffsetNotFound, RocketMQError

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(LONGS, st.lists(LONGS))
def test_an_offset_that_only_increases_ends_at_the_greatest(start: int, values: list[int]) -> None:
    target = start
    for value in values:
        moved, after = compare_and_increase_only(target, value)
        assert moved == (after != target)
        target = after
    assert target == max([start, *values])


def failing(error: type[RocketMQError]) -> int:
    raise error


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        ("4.9.8", MQBrokerError, -1),
        ("4.9.8", IllegalArgument, -2),
        ("5.3.3", OffsetNotFound, -1),
        ("5.3.3", MQBrokerError, -2),
    ],
)
def test_what_a_failure_to_ask_means(version: str, error: type[RocketMQError], expected: int) -> None:
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore(version)
    assert store.read_offset("q", READ_FROM_STORE, lambda: failing(error)) == expected
    assert store.offset_table == {}


def test_memory_first_asks_only_once() -> None:
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore()
    assert store.read_offset("q", READ_FROM_MEMORY, lambda: 7) == -1
    assert store.read_offset("q", MEMORY_FIRST_THEN_STORE, lambda: 7) == 7
    assert store.read_offset("q", MEMORY_FIRST_THEN_STORE, lambda: 9) == 7
    assert store.read_offset("q", READ_FROM_STORE, lambda: 5) == 5
    store.remove_offset("q")
    assert store.read_offset("q", READ_FROM_MEMORY, lambda: 7) == -1


def test_a_queue_that_is_null() -> None:
    store: RemoteBrokerOffsetStore[str] = RemoteBrokerOffsetStore()
    store.update_offset(None, 5, True)
    store.remove_offset(None)
    assert store.read_offset(None, READ_FROM_STORE, lambda: 7) == -1
    assert RemoteBrokerOffsetStore("5.3.3").read_offset(None, READ_FROM_STORE, lambda: 7) == -3


def parse(text: str) -> manager.OffsetTable:
    """Quoted keys only: enough for the tests of load."""
    try:
        table = json.loads(text)["offsetTable"]
    except ValueError as error:
        raise IllegalArgument(text) from error
    return {key: {int(q): offset for q, offset in queues.items()} for key, queues in table.items()}


GOOD, BROKEN = '{"offsetTable":{"T@g":{"0":1}}}', '{"offsetTable":{'


@pytest.mark.parametrize(
    ("file", "bak", "ok", "found"),
    [
        (GOOD, BROKEN, True, True),
        (BROKEN, GOOD, True, True),
        ("", GOOD, True, True),
        (None, GOOD, True, True),
        (None, None, True, False),
        (BROKEN, "", True, False),
        (BROKEN, None, True, False),
        (BROKEN, BROKEN, False, False),
    ],
)
def test_load(file: str | None, bak: str | None, ok: bool, found: bool) -> None:
    assert manager.load(file, bak, parse) == (ok, {"T@g": {0: 1}} if found else {})


@given(st.dictionaries(st.text("T@g%中\n", max_size=5), st.dictionaries(st.integers(0, 5), LONGS), max_size=5))
def test_both_forms_say_the_same(table: manager.OffsetTable) -> None:
    pretty = manager.encode(table, pretty_format=True)
    assert pretty.replace("\n", "").replace("\t", "") == manager.encode(table)


def test_what_was_there_becomes_the_backup() -> None:
    table = {"T@g": {0: 1}}
    assert manager.persist(table, "", "older") == (manager.encode(table, True), "")


def test_a_text_that_holds_no_object_is_an_empty_table() -> None:
    for loaded in (manager.load("null", "x", lambda text: None), manager.load(None, "null", lambda text: None)):
        assert loaded == manager.Loaded(True, {})
