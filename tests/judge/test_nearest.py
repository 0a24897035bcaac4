"""Nearest rows by sorted numbers, against a plain search."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.judge.nearest import NOWHERE, common_codes, nearest, ranks

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-(2**62), -5, 0, 1, 2, 3, 7, 2**62])), max_size=12)


def plain(key, at, known, side):
    meets = {
        "before": lambda t: t <= at,
        "strictly_before": lambda t: t < at,
        "after": lambda t: t >= at,
    }[side]
    found = [(t, i if side != "after" else -i) for i, (k, t) in enumerate(known) if k == key and meets(t)]
    if not found:
        return NOWHERE
    return abs((min if side == "after" else max)(found, key=lambda f: (f[0], -f[1]) if side == "after" else f)[1])


@given(ROWS, ROWS, st.sampled_from(["before", "strictly_before", "after"]))
def test_as_a_plain_search(asked, known, side):
    columns = [np.array([row[i] for row in rows], np.int64) for rows in (asked, known) for i in (0, 1)]
    want = [plain(key, at, known, side) for key, at in asked]
    assert nearest(*columns, side=side).tolist() == want


@given(ROWS)
def test_ranks_are_the_order_of_pairs(rows):
    columns = [np.array([row[i] for row in rows], np.int64) for i in (0, 1)]
    order = sorted(set(rows))
    assert ranks(*columns).tolist() == [order.index(row) for row in rows]


def test_codes_are_equal_where_keys_are_null_among_them():
    left = [pa.array(["a", None, "b"]), pa.chunked_array([[1], [1, 2]])]
    right = [pa.array([None, "b", "c"]), pa.array([1, 2, 2])]
    of_left, of_right = common_codes(left, right)
    assert of_left[1] == of_right[0]
    assert of_left[2] == of_right[1]
    assert len({*of_left.tolist(), *of_right.tolist()}) == 4
