"""Which setting of brokers would have kept a group on the master, decided again as whatif does."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.decisions.suppositions import RATIO, SLAVE_READ, BrokerSetting, text_of
from mqreplay.lake.row_filter import RowFilter
from mqreplay.moment.instant import Recorded

SLAVE_SUBTRACTS: Final = 10  # BrokerStartup#buildBrokerController
SETTING_OPTIONS: Final = {RATIO: "ratio", SLAVE_READ: SLAVE_READ}


@dataclass(frozen=True)
class Kept:
    """A setting, and how many answers sent the group to a slave: in the night, and with it (bounds)."""

    setting: BrokerSetting
    to_slave: int
    after_min: int
    after_max: int

    @property
    def text(self) -> str:
        """Return what the setting would have done."""
        low, high = self.after_min, self.after_max
        after = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        kept = "would have kept" if high == 0 else "is not shown to keep"
        counts = f"{after} answers would name a slave, {self.to_slave:,} did"
        return f"{text_of(self.setting)} {kept} it on the master: {counts}; price: the master reads from its disk"

    @property
    def command(self) -> str:
        """Return the options of whatif that show it."""
        broker = f" --broker {shlex.quote(self.setting.broker_name)}" if self.setting.broker_name else ""
        return f"mqreplay whatif --set {SETTING_OPTIONS[self.setting.name]}={self.setting.value}{broker}"


def kept_on_master(
    night: Recorded, day: dt.date, group: str, broker: str | None, predict: Callable[[BrokerSetting], pl.DataFrame]
) -> Kept | None:
    """Return the smallest ratio that would have kept a group on the masters, or slaveReadEnable=false.

    ``predict`` returns the frame of `supposed_suggestions`. If none is proved to, the last one with its bounds; None if
    no answer of the broker to the group can be decided again.
    """
    found = None
    for setting in _settings(night, day, group, broker):
        pulls = predict(setting)
        if pulls.is_empty():
            continue
        counts = [int(pulls[name].sum()) for name in ("to_slave", "to_slave_min", "to_slave_max")]
        found = Kept(setting, *counts)
        if found.after_max == 0:
            break
    return found


def _settings(night: Recorded, day: dt.date, group: str, broker: str | None) -> Iterator[BrokerSetting]:
    judged = night.warehouse.read("gold.slave_suggestion", RowFilter(night.cluster, days=frozenset({day})))
    of = (pl.col("consumer_group") == group) & (
        pl.lit(value=True) if broker is None else pl.col("broker_name") == broker
    )
    share = pl.when(pl.col("effective_ratio") > 0).then(pl.col("memory") / pl.col("effective_ratio")).max()
    rows = judged.filter(of).select(share.over("broker_name").alias("percent"), "diff_max")
    wanted = rows.select((pl.col("diff_max") / pl.col("percent")).ceil().clip(1).max()).collect().item()
    if wanted is not None:
        ratios = (int(wanted), int(wanted) + SLAVE_SUBTRACTS)
        yield from (BrokerSetting(RATIO, str(ratio), broker) for ratio in ratios if ratio <= 100)
    yield BrokerSetting(SLAVE_READ, "false", broker)
