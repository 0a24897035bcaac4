"""The nearest row before and after, against a plain search."""

from __future__ import annotations

import random

from chispa import assert_df_equality
from pyspark.sql import functions as F

from mqreplay.replay.as_of import as_of


def nearest(known, key, at, after):
    found = [(t, v) for k, t, v in known if k == key and (t >= at if after else t <= at)]
    return (min(found) if after else max(found))[1] if found else None


def test_both_ways_as_a_plain_search(spark):
    rng = random.Random(7)
    known = [(rng.choice("ab"), t, f"v{t}") for t in rng.sample(range(200), 60)]
    asked = [(i, rng.choice("abc"), rng.randrange(200)) for i in range(120)]
    right = spark.createDataFrame(known, "k STRING, at INT, v STRING")
    left = spark.createDataFrame(asked, "i INT, k STRING, at INT")
    for after in (False, True):
        got = as_of(left, right, ["k"], "at", F.col("v"), "found", after=after)
        want = [(i, k, at, nearest(known, k, at, after)) for i, k, at in asked]
        expected = spark.createDataFrame(want, "i INT, k STRING, at INT, found STRING")
        assert_df_equality(got, expected, ignore_row_order=True)


def test_what_is_null_neither_asks_nor_answers(spark):
    right = spark.createDataFrame([("a", 1, None), ("a", None, "x")], "k STRING, at INT, v STRING")
    left = spark.createDataFrame([(1, "a", 5), (2, "a", None)], "i INT, k STRING, at INT")
    got = as_of(left, right, ["k"], "at", F.col("v"), "found").orderBy("i").collect()
    assert [r.found for r in got] == [None, None]


def test_both_sides_may_come_from_one_frame(spark):
    rows = [("a", i, i * 10, i % 3) for i in range(9)]
    whole = spark.createDataFrame(rows, "k STRING, at INT, v INT, kind INT")
    asked, known = (
        whole.where("kind = 1"),
        whole.where("kind <> 1").select("k", "at", "v").unionByName(whole.where("kind = 0").select("k", "at", "v")),
    )
    got = as_of(asked, known, ["k"], "at", F.col("v"), "found").orderBy("at").collect()
    assert [(r.at, r.v, r.kind, r.found) for r in got] == [(1, 10, 1, 0), (4, 40, 1, 30), (7, 70, 1, 60)]
