"""One cause, one finding: what follows from another finding says so, and is told as info."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.findings.shape import EVIDENCE_ROWS


@dataclass(frozen=True)
class Link:
    """Findings of kind ``effect`` follow from one of kind ``cause`` at the same place, up to ``after_s`` s after it."""

    effect: str
    cause: str
    same: tuple[str, ...]
    after_s: int = 60
    before_s: int = 30  # a cause is seen a little later than what it did: polls and copies are seconds apart
    critical: bool = False  # only a critical finding is the cause, and only of a lesser one


GROUP, BROKER, TOPIC = ("consumer_group",), ("broker_name",), ("consumer_group", "topic")
LINKS = (
    *(
        Link(effect, cause, GROUP)
        for cause in ("strategy_conflict", "subscription_conflict")
        for effect in (
            "orphan_queue",
            "double_owned_queue",
            "idle_consumer",
            "uneven_allocation",
            "duplicate_delivery",
            "stuck_queue",
        )
    ),
    *(Link(effect, "consumer_lost", GROUP, 150) for effect in ("orphan_queue", "duplicate_delivery", "stuck_queue")),
    Link("failover_pull", "broker_down", BROKER, 120),
    Link("slave_pull", "broker_down", BROKER, 120),
    Link("stale_slave_offsets", "broker_down", BROKER, 120),
    Link("offset_rewind", "broker_down", BROKER, 180),
    Link("stuck_queue", "broker_down", BROKER, 120),
    Link("consumer_lost", "broker_down", (), 0),
    # A queue lost with its broker is fought for wherever its group is: the finding may span brokers.
    Link("orphan_queue", "broker_down", (), 120),
    Link("double_owned_queue", "broker_down", (), 120),
    Link("duplicate_delivery", "broker_down", (), 180),
    Link("duplicate_delivery", "double_owned_queue", GROUP),
    Link("offset_rewind", "double_owned_queue", TOPIC),
    Link("offset_rewind", "offset_reset", TOPIC, 30),
    Link("offset_jump", "offset_reset", TOPIC, 30),
    # The rewind first: a reset ahead gives nothing again, and one that goes back shows as a rewind.
    Link("duplicate_delivery", "offset_rewind", GROUP, 180),
    Link("duplicate_delivery", "offset_reset", GROUP, 180),
    Link("duplicate_delivery", "offset_beyond_max", GROUP, 180),
    Link("retry_growth", "dead_letter", GROUP, 600, before_s=3600),  # tries end as a dead letter
    # A slave that refuses: what was sent to it, and what waits for it.
    Link("stuck_queue", "slave_pull", BROKER, 120, critical=True),
    Link("slave_pull", "slave_pull", BROKER, critical=True),
    Link("stuck_queue", "double_owned_queue", TOPIC),
)


LONGEST = 3  # links in a chain, at most: a duplicate, by a rewind, by two owners, by a broker gone


def with_causes(findings: DataFrame) -> DataFrame:
    """The findings, with ``follows_from`` (finding_id of the cause, null for a cause) and severities set by it.

    A cause gets its effects as evidence. ``findings`` must be kept (persisted): it is read three times.
    """
    linked = _first_causes(_linked(findings).localCheckpoint())
    effects = linked.groupBy("follows_from").agg(
        F.array_sort(
            F.collect_list(
                F.struct(
                    F.lit("gold.finding").alias("table_name"),
                    F.concat(F.lit("finding_id="), F.col("effect_id")).alias("key"),
                )
            )
        ).alias("_effects")
    )
    known = findings.join(
        F.broadcast(linked.select(F.col("effect_id").alias("finding_id"), "follows_from")), "finding_id", "left"
    ).join(
        F.broadcast(effects.withColumnRenamed("follows_from", "_cause")), F.col("finding_id") == F.col("_cause"), "left"
    )
    own = F.slice("evidence", 1, EVIDENCE_ROWS)
    columns: dict[str, Column] = {
        "severity": F.when(F.col("follows_from").isNotNull(), "info").otherwise(F.col("severity")),
        "evidence": F.concat(
            own, F.coalesce("_effects", F.array().cast("array<struct<table_name:string,key:string>>"))
        ),
    }
    return known.withColumns(columns).select(*findings.columns, "follows_from")


def _linked(findings: DataFrame) -> DataFrame:
    """effect_id, follows_from: each effect with its cause; of several, the first in LINKS, then the nearest in time.

    Both sides are joined by link and place: every pair of findings would be millions on a bad night.
    """
    rows = [(number, *_link_row(link)) for number, link in enumerate(LINKS)]
    links = F.broadcast(findings.sparkSession.createDataFrame(rows, _LINK))
    kinds = findings.select("cluster", "finding_id", "kind", "severity", *_PLACES, "from_ts", "to_ts")
    effects = _placed(kinds.join(links, F.col("kind") == F.col("effect"))).alias("e")
    causes = _placed(kinds.join(links, F.col("kind") == F.col("cause"))).alias("c")
    since = F.unix_millis("e.from_ts") - F.unix_millis("c.from_ts")
    late = F.unix_millis("e.from_ts") - F.unix_millis("c.to_ts")
    graver = (F.col("c.severity") == "critical") & (F.col("e.severity") != "critical")
    met = [F.col(f"e.{name}") == F.col(f"c.{name}") for name in ("cluster", "number", "place")]
    began = (since >= -F.col("e.before_ms")) & (late <= F.col("e.after_ms"))
    found = effects.join(causes, [*met, began, ~F.col("e.critical") | graver]).select(
        F.col("e.finding_id").alias("effect_id"),
        F.struct(F.col("e.number"), F.abs(since).alias("near"), F.col("c.finding_id").alias("id")).alias("by"),
    )
    return (
        found.groupBy("effect_id")
        .agg(F.min("by").alias("by"))
        .select("effect_id", F.col("by.id").alias("follows_from"))
    )


_LINK = "number INT, effect STRING, cause STRING, same STRING, after_ms BIGINT, before_ms BIGINT, critical BOOLEAN"
_PLACES = ("consumer_group", "broker_name", "topic")


def _link_row(link: Link) -> tuple[str, str, str, int, int, bool]:
    """A link as a row of _LINK, without its number."""
    same = " ".join(link.same)
    return link.effect, link.cause, same, link.after_s * 1000, link.before_s * 1000, link.critical


def _placed(linked: DataFrame) -> DataFrame:
    """Adds ``place``: where both must lie by the link, as text; null, which meets nothing, where it is not known."""
    place = F.lit(None).cast("string")
    for same in dict.fromkeys(link.same for link in LINKS):
        # concat is null as soon as one of its columns is.
        here = F.concat(F.lit(""), *[F.concat(F.col(name), F.lit("\u001f")) for name in same])
        place = F.when(F.col("same") == " ".join(same), here).otherwise(place)
    return linked.withColumn("place", place)


def _first_causes(linked: DataFrame) -> DataFrame:
    """The same, where a cause that has a cause of its own gives way to that one: the first is the one to mend."""
    above = linked.select(F.col("effect_id").alias("follows_from"), F.col("follows_from").alias("_above"))
    for _ in range(1, LONGEST):
        linked = linked.join(F.broadcast(above), "follows_from", "left").select(
            "effect_id", F.coalesce("_above", "follows_from").alias("follows_from")
        )
    return linked
