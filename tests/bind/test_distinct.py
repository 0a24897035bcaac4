"""Equal rows are found as Python would find them, and a law is asked once for each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.bind.faces import distinct_answers, law_values
from mqreplay.core.message_queue import MessageQueue
from mqreplay.evidence.arrays.distinct import distinct_rows

QUEUE = pa.struct([("topic", pa.string()), ("broker_name", pa.string()), ("queue_id", pa.int32())])
TABLE = pa.map_(pa.string(), pa.map_(pa.int64(), pa.string()))

names = st.sampled_from(["", "a", "b", "ab", "é", "\U0001f600"])
queues = st.none() | st.tuples(st.none() | names, st.none() | names, st.none() | st.integers(-1, 2))
addresses = st.dictionaries(st.integers(0, 2), st.none() | names, max_size=2).map(lambda d: list(d.items()))
tables = st.dictionaries(names, st.none() | addresses, max_size=2).map(lambda d: list(d.items()))
rows = st.lists(
    st.tuples(
        st.none() | st.lists(queues, max_size=3),
        st.none() | tables,
        st.none() | st.sampled_from([0, 1, 2**63 - 1, -(2**63)]),
        st.none() | st.booleans(),
        queues,
    ),
    max_size=30,
)
TYPES = [pa.list_(QUEUE), TABLE, pa.int64(), pa.bool_(), QUEUE]


def arrays(of: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [pa.array([row[i] for row in of], type=kind) for i, kind in enumerate(TYPES)]


@given(rows, st.integers(0, 3))
def test_rows_are_equal_as_in_python(of: list[tuple[Any, ...]], skipped: int) -> None:
    columns = [column.slice(skipped) for column in arrays(of)]
    of = of[skipped:]
    places, row_of = distinct_rows(columns)
    first = {repr(row): i for i, row in reversed(list(enumerate(of)))}
    assert [int(row_of[place]) for place in places] == [first[repr(row)] for row in of]
    assert len(row_of) == len(first)


@given(rows, st.integers(0, 3))
def test_arrow_values_are_the_rows_values(of: list[tuple[Any, ...]], skipped: int) -> None:
    queues_, tables_, longs, flags, single = (law_values(c.slice(skipped)) for c in arrays(of))
    for i, row in enumerate(of[skipped:]):
        assert queues_[i] == (None if row[0] is None else [as_queue(mq) for mq in row[0]])
        assert tables_[i] == (None if row[1] is None else {name: None if a is None else dict(a) for name, a in row[1]})
        assert (longs[i], flags[i]) == row[2:4]
        assert type(longs[i]) in (int, type(None))
        assert single[i] == as_queue(row[4])


def as_queue(mq: tuple[Any, ...] | None) -> MessageQueue | None:
    return mq and MessageQueue("" if mq[0] is None else mq[0], *mq[1:])  # no topic compares as empty


def test_a_law_is_asked_once_for_each_distinct_input() -> None:
    asked = []

    def answer(arguments: Any) -> Any:
        asked.append(arguments)
        return sum(arguments), None

    columns = [pa.array([1, 2, 1, 1, 2]), pa.array([5, 5, 5, 6, 5])]
    answers, places = distinct_answers(answer, columns)
    assert asked == [(1, 5), (2, 5), (1, 6)]
    assert [answers[place][0] for place in places] == [6, 7, 6, 7, 7]
    assert distinct_answers(answer, [column.slice(0, 0) for column in columns])[0] == []
