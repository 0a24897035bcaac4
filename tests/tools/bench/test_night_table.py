"""The table of `make bench`: medians, sums of a peer's stages, ratios to the best peer and to the floor."""

from __future__ import annotations

from bench.night_table import table, with_sums


def test_a_peers_stages_are_summed_by_layer() -> None:
    stages = {"session": 1.0, "silver.pull": 2.0, "silver, the rest": 3.0, "gold.pull_route": 4.0}
    assert with_sums(stages) == {**stages, "ingest": 5.0, "replay": 4.0}


def test_medians_and_ratios_stand_beside_each_other() -> None:
    spark = [{"ingest": 30.0, "report": 1.0}, {"ingest": 10.0, "report": 3.0}, {"ingest": 20.0, "report": 2.0}]
    lines = table(
        {"spark": spark, "polars": [{"ingest": 5.0}], "plain": [{"ingest": 8.0, "peak MB": 70.0}]}, {"ingest": 4.0}
    )
    assert [line.split() for line in lines] == [
        ["seconds", "Spark", "polars", "plain", "Python", "floor", "x", "best", "peer", "x", "floor"],
        ["ingest", "20.0", "5.0", "8.0", "4.0", "4.00", "5.0"],
        ["report", "2.0"],
        ["peak", "MB,", "all", "processes", "70"],
    ]


def test_the_peers_part_of_the_night_has_a_ratio_of_its_own() -> None:
    told = {"spark": [{"all": 40.0}], "same": [{"all": 20.0}], "polars": [{"all": 5.0}]}
    assert [" ".join(line.split()) for line in table(told, {"all": 2.0})] == [
        "seconds Spark the same polars floor x best peer same x peer x floor",
        "all 40.0 20.0 5.0 2.0 8.00 4.00 20.0",
    ]


def test_processor_time_jobs_and_memory_have_lines_of_their_own() -> None:
    told = {
        "spark": [{"CPU s": 30.0, "Spark jobs": 90, "peak MB": 3000.0}],
        "polars": [{"CPU s": 6.0, "peak MB": 500.0}],
    }
    assert [" ".join(line.split()) for line in table(told, {})[1:]] == [
        "CPU seconds, all processes 30.0 6.0 5.00",
        "Spark jobs 90",
        "peak MB, all processes 3000 500 6.00",
    ]
