"""One cause, one finding: what follows from another finding names it, and is info."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.shape import EVIDENCE_ROWS, HIDDEN, evidence_rows, row_key, with_values

# Links in a chain, at most: a blocked lock, by a stuck queue, by a slow broker, by refused pulls, by a storm of
# rebalances, by a client id that two members have; and reads from one slave by those of another.
LONGEST_CHAIN = 6
LINK = {"effect_id": pl.String, "follows_from": pl.String, "number": pl.Int64, "near_ms": pl.Int64}


def with_causes(findings: pl.DataFrame, kinds: Iterable[FindingKind]) -> pl.DataFrame:
    """Return the findings with ``follows_from``: the finding_id of the first cause, null for a cause itself.

    Where the evidence shows the cause (``cause_id``), this is the cause; elsewhere, time and place decide. A finding
    that follows from another is info. A cause gets its effects as evidence, beside its own first rows, and its summary
    says how many messages they delivered again: a bound of this number is left out. Columns: those of gold.finding,
    without shape.HIDDEN.
    """
    linked = _first_causes(pl.concat([_shown_causes(findings), _nearest_causes(findings, kinds)]))
    ids = linked.select("follows_from", pl.col("effect_id").alias("finding_id"))
    keys = row_key("finding_id").sort().implode()
    effects = (
        ids.join(findings.select("finding_id", "redelivered"), on="finding_id", how="left")
        .group_by(pl.col("follows_from").alias("first_id"))
        .agg(evidence_rows("gold.finding", keys).alias("effects"), pl.col("redelivered").sum().alias("again"))
    )
    causes = linked.select(pl.col("effect_id").alias("finding_id"), "follows_from")
    known = findings.join(causes, on="finding_id", how="left").join(
        effects, left_on="finding_id", right_on="first_id", how="left"
    )
    own = pl.col("evidence").list.head(EVIDENCE_ROWS)
    linked_findings = known.with_columns(
        pl.when(pl.col("follows_from").is_not_null()).then(pl.lit("info")).otherwise("severity").alias("severity"),
        pl.when(pl.col("again") > 0).then("again").alias("delivered_again"),
        pl.when(_is_counted(known)).then(pl.lit(True)).alias("is_counted"),
        pl.when(pl.col("effects").is_null()).then(own).otherwise(pl.concat_list(own, "effects")).alias("evidence"),
    )
    valued = with_values(linked_findings, ["delivered_again", "is_counted"])
    return valued.select(*[name for name in findings.columns if name not in HIDDEN], "follows_from")


def _is_counted(known: pl.DataFrame) -> pl.Expr:
    """Return whether the log of the group counts the messages that a finding may have delivered again."""
    counted_groups = known.filter(pl.col("redelivered") > 0).select("follows_from", "consumer_group").unique()
    of_effect = pl.struct("follows_from", "consumer_group").is_in(
        counted_groups.select(pl.struct(pl.all())).to_series().implode()
    )
    return (pl.col("again") > 0) | (pl.col("follows_from").is_not_null() & of_effect)


def with_renamed_causes(renamed: pl.DataFrame, ids_before: str) -> pl.DataFrame:
    """Return the findings, ``cause_id`` by the ids that they have now; column ``ids_before`` has the earlier ones."""
    ids = renamed.select(pl.col(ids_before).alias("cause_id"), pl.col("finding_id").alias("id_now"))
    known = renamed.join(ids, on="cause_id", how="left")
    return known.with_columns(pl.coalesce("id_now", "cause_id").alias("cause_id")).drop("id_now", ids_before)


def _shown_causes(findings: pl.DataFrame) -> pl.DataFrame:
    """Return effect_id and follows_from of the findings whose evidence shows their cause."""
    causes = findings.select(pl.col("finding_id").alias("follows_from"))
    shown = findings.select(pl.col("finding_id").alias("effect_id"), pl.col("cause_id").alias("follows_from"))
    return shown.join(causes, on="follows_from", how="semi")


def _nearest_causes(findings: pl.DataFrame, kinds: Iterable[FindingKind]) -> pl.DataFrame:
    """Return effect_id and follows_from, one row an effect, of the findings whose evidence shows no cause.

    Of several causes it is the first in the order of the effect's kind, then the nearest in time, then by finding_id.
    """
    by_kind = {str(name): of_kind for (name,), of_kind in findings.partition_by("kind", as_dict=True).items()}
    pairs = [
        _pairs(by_kind[kind.name].filter(pl.col("cause_id").is_null()), by_kind[cause.name], cause, number)
        for kind in kinds
        for number, cause in enumerate(kind.causes)
        if kind.name in by_kind and cause.name in by_kind
    ]
    found = pl.concat([pl.DataFrame(schema=LINK), *pairs]).sort("number", "near_ms", "follows_from")
    return found.unique("effect_id", keep="first").select("effect_id", "follows_from")


def _pairs(effects: pl.DataFrame, causes: pl.DataFrame, cause: Cause, number: int) -> pl.DataFrame:
    """Return each effect with each of its causes of one kind, of LINK's columns."""
    if cause.critical:
        effects = effects.filter(pl.col("severity") != "critical")
        causes = causes.filter(pl.col("severity") == "critical")
    if cause.of_master:
        causes = causes.filter(pl.col("broker_id") == 0)
    began, ended = (pl.col(ts).dt.epoch("ms") for ts in ("from_ts", "to_ts"))
    latest = pl.max_horizontal(began, ended) if cause.overlaps else began
    effect = effects.select(
        *cause.same, pl.col("finding_id").alias("effect_id"), began.alias("began_ms"), latest.alias("latest_ms")
    )
    by = causes.select(
        *cause.same, pl.col("finding_id").alias("follows_from"), began.alias("since_ms"), ended.alias("until_ms")
    )
    # A place that is not known is null and meets nothing.
    left, right = effect.lazy(), by.lazy()
    met = left.join(right, on=cause.same) if cause.same else left.join(right, how="cross")
    after_cause = pl.col("began_ms") - pl.col("since_ms")
    early_enough = pl.col("began_ms") - pl.col("until_ms") <= cause.after_s * 1000
    late_enough = pl.col("latest_ms") - pl.col("since_ms") >= -cause.before_s * 1000
    near = met.filter(late_enough & early_enough).select(
        "effect_id", "follows_from", pl.lit(number, pl.Int64).alias("number"), after_cause.abs().alias("near_ms")
    )
    return near.collect(engine="streaming")  # nearly all pairs are too far apart in time: they are never kept


def _first_causes(linked: pl.DataFrame) -> pl.DataFrame:
    """Replace a cause that has a cause of its own by that one: the first is the one to fix."""
    above = linked.select(pl.col("effect_id").alias("follows_from"), pl.col("follows_from").alias("above"))
    for _ in range(1, LONGEST_CHAIN):
        linked = linked.join(above, on="follows_from", how="left").select(
            "effect_id", pl.coalesce("above", "follows_from").alias("follows_from")
        )
    return linked
