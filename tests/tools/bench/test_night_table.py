"""The table of `make bench`: medians, sums of a peer's stages, ratios to the best peer and to the floor."""

from __future__ import annotations

from bench.night_table import table, with_sums


def test_a_peers_stages_are_summed_by_layer() -> None:
    stages = {"session": 1.0, "silver.pull": 2.0, "silver, the rest": 3.0, "gold.pull_route": 4.0}
    assert with_sums(stages) == {**stages, "ingest": 5.0, "replay": 4.0}


def test_medians_and_ratios_are_beside_each_other() -> None:
    spark = [{"ingest": 30.0, "report": 1.0}, {"ingest": 10.0, "report": 3.0}, {"ingest": 20.0, "report": 2.0}]
    lines = table(
        {"spark": spark, "polars": [{"ingest": 5.0}], "plain": [{"ingest": 8.0, "peak MB": 70.0}]}, {"ingest": 4.0}
    )
    assert [line.split() for line in lines] == [
        ["seconds", "Spark", "polars", "plain", "Python", "floor", "Spark", "/", "peer", "Spark", "/", "floor"],
        ["ingest", "20.0", "5.0", "8.0", "4.0", "4.00", "5.0"],
        ["report", "2.0"],
        ["peak", "MB,", "all", "processes", "70"],
    ]


def test_each_engine_of_ours_has_a_ratio_to_the_best_peer() -> None:
    runs = {
        "spark": [{"all": 40.0}],
        "same": [{"all": 20.0}],
        "local": [{"all": 25.0}],
        "same-local": [{"all": 10.0}],
        "polars": [{"all": 5.0}],
        "duckdb": [{"all": 6.0}],
    }
    peers = "Spark / peer same, Spark / peer local / peer same, local / peer"
    assert [" ".join(line.split()) for line in table(runs, {"all": 2.0})] == [
        f"seconds Spark same, Spark local same, local polars DuckDB floor {peers} Spark / floor",
        "all 40.0 20.0 25.0 10.0 5.0 6.0 2.0 8.00 4.00 5.00 2.00 20.0",
    ]


def test_without_spark_the_local_night_is_compared_with_the_floor() -> None:
    runs = {"local": [{"session": 0.0, "all": 25.0}], "polars": [{"all": 5.0}]}
    assert [" ".join(line.split()) for line in table(runs, {"all": 2.0})] == [
        "seconds local polars floor local / peer local / floor",
        "session start 0.0",
        "all 25.0 5.0 2.0 5.00 12.5",
    ]


def test_peers_alone_have_no_ratio() -> None:
    lines = table({"polars": [{"all": 5.0}], "duckdb": [{"all": 6.0}]}, {})
    assert [" ".join(line.split()) for line in lines] == ["seconds polars DuckDB floor", "all 5.0 6.0"]


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
