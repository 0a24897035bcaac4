"""Answers to pulls that may be those of a reset: a part of pull_answer.py.

A broker of 5.x answers the first pull after a reset with the offset of the reset, not with that of the pull. Packets
and hooks show the status OFFSET_RESET of that answer. The log of a client lacks it: other records of the reset
decide, and without them such an answer is undetermined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from mqreplay.core.pull_answer import (
    OFFSET_RESET,
    PULL_OFFSET_MOVED,
    may_be_reset_answer,
    uses_server_side_reset,
)
from mqreplay.core.slave_suggestion import SLAVE
from mqreplay.errors import IllegalArgument
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES, properties_of
from mqreplay.evidence.offsets.held_resets import ResetEvidence, with_reset_evidence

RECORDED: Final = "a recorded reset set the group's offset"
UNRECORDED: Final = (
    "the broker may have reset the group's offset: its broker.log, or packets of its port, would show the reset"
)
SETTING: Final = "useServerSideResetOffset"


def keeps_resets(broker: pl.DataFrame) -> pl.Series:
    """Return for each row of silver.broker whether it answers pulls with reset offsets; null where it may or not."""
    described = broker.with_columns(pl.col("properties").cast(PROPERTIES))
    return pl.Series("keeps_resets", [_keeps_resets(row) for row in described.iter_rows(named=True)], pl.Boolean)


def with_resets(judged: pl.DataFrame, offset_change: pl.DataFrame, known: ResetEvidence) -> pl.DataFrame:
    """Return the answers of a shard, in their order; those that can be of a reset have the verdict that follows.

    ``judged`` has the columns of gold.pull_answer, and response_ts, broker_role and keeps_resets. An answer that
    differs from the rule without a status agrees if a reset to its offset was recorded. It still differs if resets were
    recorded then, and none explains it.
    """
    moved = judged.with_row_index("_row").filter(pl.col("response_code") == PULL_OFFSET_MOVED)
    is_open = pl.Series("is_open", [_may_be_reset(row) for row in moved.iter_rows(named=True)], pl.Boolean)
    answered = moved.with_columns(is_open).filter(pl.col("is_open") | (pl.col("remark") == OFFSET_RESET))
    if not answered["is_open"].any():
        return judged
    found = with_reset_evidence(answered, offset_change, known)
    other = found.filter(pl.col("is_open") & (pl.col("is_reset") | ~pl.col("is_logged"))).select("_row", "is_reset")
    all_rows = judged.with_row_index("_row").join(other, "_row", how="left", maintain_order="left")
    is_reset, stays = pl.col("is_reset"), pl.col("is_reset").is_null()
    code = pl.when(is_reset).then(pl.col("response_code"))
    nothing = pl.lit(None, pl.Int64)
    return all_rows.with_columns(
        pl.when(stays).then("expected_code").otherwise(code).alias("expected_code"),
        pl.when(stays).then("expected_next_offset").otherwise(nothing).alias("expected_next_offset"),
        pl.when(stays).then("judgement").otherwise(_text(is_reset, "agree", "undetermined")).alias("judgement"),
        pl.when(stays).then("reason").otherwise(_text(is_reset, RECORDED, UNRECORDED)).alias("reason"),
    ).select(judged.columns)


def _text(condition: pl.Expr, if_true: str, if_false: str) -> pl.Expr:
    return pl.when(condition).then(pl.lit(if_true)).otherwise(pl.lit(if_false))


def _may_be_reset(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer, a row of `with_resets`, differs from the rule and can be that of a reset.

    Slaves refuse resets (AdminBrokerProcessor#resetOffsetInner).
    """
    is_slave = (answer["broker_role"] or (SLAVE if answer["broker_id"] else "")) == SLAVE
    if answer["judgement"] != "differ" or answer["remark"] is not None or is_slave or answer["keeps_resets"] is False:
        return False
    after = answer["next_begin_offset"]
    return after is not None and may_be_reset_answer(answer["response_code"], after, answer["max_offset"])


def _keeps_resets(described: Mapping[str, Any]) -> bool | None:
    # A description need not have all settings: what it lacks may differ from the setting as shipped.
    setting = properties_of(described).get(SETTING)
    uses = (False, True) if setting is None else (setting.lower() == "true",)
    try:
        possible = {uses_server_side_reset(described["rocketmq_version"] or "", use) for use in uses}
    except IllegalArgument:  # not a version
        return None
    return possible.pop() if len(possible) == 1 else None
