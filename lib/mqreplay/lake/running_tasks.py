"""What Spark is at, for people who wait."""

from __future__ import annotations

from pyspark.sql import SparkSession


def running_tasks(spark: SparkSession) -> str:
    """Of the stages that run now, how many tasks are done, in words."""
    tracker = spark.sparkContext.statusTracker()
    # A stage may end between the two questions.
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    done, all_ = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
    return f"{done} of {all_} tasks done" if all_ else "planning"
