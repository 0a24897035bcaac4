"""Brokers up and down over the night, and slaves that serve the clients of a lost master."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import polars as pl

from mqreplay.language.language import Language
from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, at, drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.scales import LEFT, PLOT, text_width
from mqreplay.report.text import lasting

ABOUT = TEXTS["brokers"]
SLOTS = 240  # time slots of the failed-over pulls
GAP_S = 30  # a longer time without an answer or an error is unknown
BAR = 15


@dataclass
class _Broker:
    name: str
    broker_id: int
    runs: list[Row] = field(default_factory=list)
    served: list[tuple[dt.datetime, dt.datetime, int]] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)

    def role(self, words: Language) -> str:
        return words.filled("master" if self.broker_id == 0 else "slave, id {broker_id}", broker_id=self.broker_id)


def draw_brokers(view: PictureData) -> Picture:
    """Draw a row for each broker."""
    brokers = _brokers(view)
    shown = sorted(sorted(brokers, key=_badness)[: ABOUT.most], key=lambda b: (b.name, b.broker_id))
    return drawn(view, "brokers", shown, _draw_row, len(brokers) - len(shown))


def _badness(broker: _Broker) -> tuple[bool, bool, str, int]:
    return not broker.findings, all(r["up"] for r in broker.runs), broker.name, broker.broker_id


def _draw_row(drawing: Drawing, broker: _Broker) -> None:
    top, filled = drawing.y, drawing.words.filled
    role = broker.role(drawing.words)
    drawing.y += 3
    drawing.finding_strip(broker.findings)
    y = drawing.y + 2
    drawing.place("broker", broker.name, 8, y + 8, "p-t p-strong", LEFT - 20)
    drawing.text(8, y + 23, role, "p-t p-small p-dim")
    drawing.path(f"M{LEFT} {y + BAR / 2:g}H{LEFT + PLOT}", "p-unknown")
    for run in broker.runs:
        begin, end = drawing.times.x(run["begin"]), drawing.times.x(run["end"])
        width = max(end - begin, 2)
        lasted = lasting(run["begin"], run["end"], drawing.words)
        words = filled("{begin} – {end}, {lasted}", begin=at(run["begin"]), end=at(run["end"]), lasted=lasted)
        if run["up"]:
            text = filled("{broker} ({role}) answered {span}", broker=broker.name, role=role, span=words)
            drawing.rect(begin, y, width, BAR, "p-up", text)
        else:
            text = filled("{broker} ({role}) did not answer {span}", broker=broker.name, role=role, span=words)
            drawing.rect(begin, y, width, BAR, "p-down", text)
            drawing.hatch(begin, y, width, BAR, "p-hatch")
            label = filled("down {lasted}", lasted=lasted)
            room = text_width(label, 12) + 8
            if width > room:
                drawing.rect(begin + (width - room) / 2, y + 1, room, BAR - 2, "p-plate")
                drawing.text(begin + width / 2, y + 12, label, "p-t p-small p-mid")
        if run["restarted"]:
            x = max(begin, LEFT + 1)
            text = filled("{broker} restarted", broker=broker.name)
            drawing.path(f"M{x:g} {y - 1:g}v{BAR + 2}l6 -{(BAR + 2) / 2:g}Z", "p-restart", text)
    for since, until, pulls in broker.served:
        begin, end = drawing.times.x(since), drawing.times.x(until)
        words = filled(
            "{pulls} from {broker} ({role}) in place of the master, {begin} – {end}",
            pulls=drawing.words.counted(pulls, "pull"),
            broker=broker.name,
            role=role,
            begin=at(since),
            end=at(until),
        )
        drawing.rect(begin, y + BAR + 3, max(end - begin, 3), 6, "p-over", words)
    drawing.y = max(y + BAR + 13, top + 34)
    drawing.rule()


def _brokers(view: PictureData) -> list[_Broker]:
    found: dict[tuple[str, int], _Broker] = {}

    def broker(name: str, broker_id: int) -> _Broker:
        return found.setdefault((name, broker_id), _Broker(name, broker_id))

    for run in _runs(view).iter_rows(named=True):
        broker(run["broker_name"], run["broker_id"]).runs.append(run)
    for name, broker_id, first, last, pulls in _served(view).iter_rows():
        one = broker(name, broker_id)
        since, until = view.bucket_start(first, SLOTS), view.bucket_start(last + 1, SLOTS)
        if one.served and one.served[-1][1] >= since:
            since, pulls = one.served[-1][0], pulls + one.served.pop()[2]
        one.served.append((since, until, pulls))
    for finding in view.findings_of(ABOUT.kinds):
        if finding["broker_name"] is not None:
            broker(finding["broker_name"], finding["broker_id"] or 0).findings.append(finding)
    return list(found.values())


def _runs(view: PictureData) -> pl.DataFrame:
    """Return times in which a broker answered, or did not; an unknown time lies between two runs that do not touch."""
    each = ["broker_name", "broker_id"]
    asked = view.rows("silver.broker_runtime", "ts").select(*each, "ts", "boot_ts", up=pl.col("error").is_null())
    before = pl.col("ts").diff().over(each)
    unknown = before > pl.max_horizontal(5 * before.median().over(each), pl.lit(dt.timedelta(seconds=GAP_S)))
    boot = pl.col("boot_ts").forward_fill().over(each)
    restarted = (boot != boot.shift(1).over(each)).fill_null(False)
    starts = (unknown | (pl.col("up") != pl.col("up").shift(1).over(each)) | restarted).fill_null(True)
    return (
        asked.sort(*each, "ts")
        .with_columns(unknown=unknown.fill_null(True), restarted=restarted, run=starts.cum_sum())
        .group_by("run")
        .agg(pl.col(*each, "up", "restarted", "unknown").first(), begin=pl.col("ts").min(), last=pl.col("ts").max())
        .sort("run")
        .with_columns(next=pl.col("begin").shift(-1).over(each), touches=~pl.col("unknown").shift(-1).over(each))
        .with_columns(end=pl.when(pl.col("touches")).then(pl.col("next")).otherwise(pl.col("last")))
        .collect()
    )


def _served(view: PictureData) -> pl.DataFrame:
    """Return the time slots in which a slave served pulls because the master was gone."""
    pulls = view.rows("gold.pull_route", "request_ts").filter(pl.col("from_slave") & (pl.col("cause") == "master_gone"))
    slots = pulls.group_by("broker_name", "actual_broker_id", slot=view.bucket("request_ts", SLOTS)).agg(pl.len())
    return (
        slots.sort("broker_name", "actual_broker_id", "slot")
        .select("broker_name", "actual_broker_id", "slot", last="slot", pulls="len")
        .collect()
    )
