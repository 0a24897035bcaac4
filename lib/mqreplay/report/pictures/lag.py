"""Lag of consumer groups over the night: messages between the end of the queues and what the group committed."""

from __future__ import annotations

import polars as pl

from mqreplay.report.data import Row
from mqreplay.report.pictures.drawing import NIGHT_AXIS, Drawing, at, not_drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.picture import Picture
from mqreplay.report.pictures.queue_ends import ends_of_queues
from mqreplay.report.pictures.scales import LEFT, PLOT, TimeScale, ValueScale, path_through, round_up, short

TITLE = "Lag of the groups"
CAPTION = (
    "Messages that a group has not committed yet, over all queues of the topic. Each panel has its own scale. "
    "A line stops where the end of a queue or the committed offset is not known."
)
WHY_EMPTY = (
    "No committed offset and end of its queue are known at the same time. Record copies of consumerOffset.json, or "
    "offset commits, together with topic_stats or pulls; `mqreplay record` does."
)
SQL = "SELECT * FROM gold.group_status ORDER BY lag DESC"
SLOTS = 180
END_HOLDS_S = 60  # the end of a queue is not known for longer after it was last seen
MOST_GROUPS = 8
HEIGHT = 46
GROUP = ("consumer_group", "topic")


def draw_lag(view: PictureData) -> Picture:
    """Draw a panel for each group and topic: those with findings first, then those with the greatest lag."""
    chosen, total = _chosen(view)
    lags = _lags(view, chosen) if chosen else {}
    drawn = [pair for pair in chosen if any(v is not None for v in lags.get(pair, []))]
    if not drawn:
        return not_drawn(view, "lag", TITLE, CAPTION, WHY_EMPTY)
    drawing = Drawing(TITLE, TimeScale(view.night), words=view.words)
    for group, topic in drawn:
        findings = [f for f in view.findings_of(consumer_group=group, topic=topic) if f["consumer_group"] is not None]
        _panel(drawing, view, (group, topic), lags[group, topic], findings)
    drawing.time_axis(NIGHT_AXIS)
    drawing.legend([])
    left_out = total - len(drawn)
    others = [view.words.counted(left_out, "other group and topic", "other groups and topics")]
    cut = drawing.cut(others, "{left} not drawn: those with findings, then those with the greatest lag come first.")
    return drawing.picture("lag", TITLE, CAPTION, cut if left_out else None, SQL)


def _panel(
    drawing: Drawing, view: PictureData, pair: tuple[str, str], lags: list[float | None], findings: list[Row]
) -> None:
    filled = drawing.words.filled
    drawing.y += 5
    drawing.finding_strip(findings)
    top = drawing.y + 2
    most = max(v for v in lags if v is not None)
    scale = ValueScale(0, round_up(most), top, HEIGHT)
    peak = view.bucket_start(lags.index(most), SLOTS)
    drawing.place("group", pair[0], 8, top + 10, "p-t p-strong", LEFT - 50)
    drawing.place("topic", pair[1], 8, top + 25, "p-t p-small p-dim", LEFT - 50)
    drawing.text(8, top + 40, filled("{lag} at {time}", lag=short(most), time=at(peak)), "p-t p-small", LEFT - 50)
    drawing.add(
        '<text class="p-t p-small p-dim p-end" x="{x}" y="{y}">{t}</text>', x=LEFT - 6, y=top + 9, t=short(scale.high)
    )
    drawing.add('<text class="p-t p-small p-dim p-end" x="{x}" y="{y}">0</text>', x=LEFT - 6, y=top + HEIGHT)
    drawing.path(f"M{LEFT} {top:g}H{LEFT + PLOT}M{LEFT} {top + HEIGHT:g}H{LEFT + PLOT}", "p-rule")
    points = [None if v is None else (LEFT + (i + 0.5) * PLOT / SLOTS, scale.y(v)) for i, v in enumerate(lags)]
    rounded = [None if p is None else (round(p[0], 1), p[1]) for p in points]
    for run in _runs(rounded):
        area = f"{path_through(list(run))}V{top + HEIGHT:g}H{run[0][0]:g}Z"
        drawing.path(area, "p-area")
    text = "{group} on {topic}: at most {lag} messages at {time}"
    words = filled(text, group=pair[0], topic=pair[1], lag=f"{most:,.0f}", time=at(peak))
    drawing.path(path_through(rounded), "p-line", words)
    drawing.y = top + HEIGHT + 6


def _runs(points: list[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if len(run) > 1]


def _chosen(view: PictureData) -> tuple[list[tuple[str, str]], int]:
    """Return the groups and topics to draw, the worst first, and how many there are."""
    worst = (
        view.spans("gold.group_status")
        .group_by(GROUP)
        .agg(pl.col("lag").max())
        .filter(~pl.col("topic").str.starts_with("%"))
        .sort(-pl.col("lag").fill_null(-1), *GROUP)
        .collect()
    )
    known = {(g, t): None for g, t, _ in worst.iter_rows()}
    of_group: dict[str, list[tuple[str, str]]] = {}
    for pair in known:
        of_group.setdefault(pair[0], []).append(pair)
    first: dict[tuple[str, str], None] = {}
    for finding in view.findings:
        for pair in of_group.get(finding["consumer_group"] or "", []):
            if finding["severity"] != "info" and finding["topic"] in (None, pair[1]):
                first[pair] = None
    return list({**first, **known})[:MOST_GROUPS], len(known)


def _lags(view: PictureData, chosen: list[tuple[str, str]]) -> dict[tuple[str, str], list[float | None]]:
    """Return the lag in each time slot; None where it is not known for a queue that was committed before."""
    pairs = pl.LazyFrame(chosen, schema=list(GROUP), orient="row")
    queue = ["topic", "broker_name", "queue_id"]
    slots = pl.LazyFrame({"slot": range(SLOTS)}, schema={"slot": pl.Int32})
    topics = sorted({t for _, t in chosen})
    held = max(int(END_HOLDS_S / view.night.seconds * SLOTS), 1)
    ends = ends_of_queues(view, topics, SLOTS)
    of_master = view.rows("silver.offset_change", "to_ts").filter(
        pl.col("broker_id") == 0, pl.col("topic").is_in(topics)
    )
    copies = of_master.select(*GROUP, "broker_name", "queue_id", ts="to_ts", offset="new_offset")
    updates = view.rows("silver.offset_commit", "ts").filter(
        pl.col("topic").is_in(topics), pl.col("kind") == "UPDATE", pl.col("commit_offset").is_not_null()
    )
    commits = updates.select(*GROUP, "broker_name", "queue_id", "ts", offset="commit_offset")
    known = pl.concat([copies, commits]).join(pairs, on=list(GROUP), how="semi").sort("ts", "offset")
    in_slot = known.group_by(*GROUP, "broker_name", "queue_id", slot=view.bucket("ts", SLOTS)).agg(
        pl.col("offset").last(), pl.lit(True).alias("seen")
    )
    queues = in_slot.select(*GROUP, "broker_name", "queue_id").unique()
    line = [*GROUP, "broker_name", "queue_id"]
    lag = (
        queues.join(slots, how="cross")
        .join(in_slot, on=[*line, "slot"], how="left")
        .join(ends, on=[*queue, "slot"], how="left")
        .sort(*line, "slot")
        .with_columns(
            pl.col("offset").forward_fill().over(line),
            pl.col("end").forward_fill(held).over(line),
            pl.col("seen").forward_fill().over(line),
        )
        .filter("seen")
        # The lag of a queue with a negative offset is not known: a broker takes it for none.
        .with_columns(lag=pl.when(pl.col("offset") >= 0).then(pl.col("end") - pl.col("offset")).clip(lower_bound=0))
        .group_by(*GROUP, "slot")
        .agg(pl.when(pl.col("lag").is_not_null().all()).then(pl.col("lag").sum()))
        .collect()
    )
    found: dict[tuple[str, str], list[float | None]] = {pair: [None] * SLOTS for pair in chosen}
    for group, topic, slot, value in lag.iter_rows():
        found[group, topic][slot] = value
    return found
