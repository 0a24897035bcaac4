"""Share of pulls that a slave served, and how far behind the readers were, against the memory of the broker."""

from __future__ import annotations

import polars as pl

from mqreplay.report.pictures.drawing import TEXTS, Drawing, Picture, at, drawn
from mqreplay.report.pictures.night import PictureData
from mqreplay.report.pictures.scales import LEFT, PLOT, ByteScale, in_bytes, path_through
from mqreplay.report.text import number

ABOUT = TEXTS["slaves"]
SLOTS = 90
SHARE, DISTANCE = 26, 46  # heights
LOWEST = 4_096.0  # bytes; less is drawn at the bottom


def draw_slave_reads(view: PictureData) -> Picture:
    """Draw a panel for each broker name: those with findings first, then those with the most pulls from slaves."""
    shares = _shares(view)
    marked = {f["broker_name"] for f in view.findings_of(ABOUT.kinds)}
    order = sorted(shares, key=lambda b: (b not in marked, -sum(s for _, s in shares[b].values()), b))
    shown = sorted(order[: ABOUT.most])
    distances, memories = _distances(view, shown) if shown else ({}, {})

    def panel(drawing: Drawing, broker: str) -> None:
        _panel(drawing, view, broker, shares[broker], distances.get(broker, {}), memories.get(broker, []))

    return drawn(view, "slaves", shown, panel, len(order) - len(shown))


def _shares(view: PictureData) -> dict[str, dict[int, tuple[int, int]]]:
    """Return for each broker the pulls from master and slave in each time slot."""
    pulls = view.rows("gold.pull_route", "request_ts").filter(pl.col("from_slave").is_not_null())
    by_slot = pulls.group_by("broker_name", slot=view.bucket("request_ts", SLOTS)).agg(
        master=(~pl.col("from_slave")).sum(), slave=pl.col("from_slave").sum()
    )
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for broker, slot, master, slave in by_slot.sort("broker_name", "slot").collect().iter_rows():
        found.setdefault(broker, {})[slot] = (master, slave)
    return found


def _distances(view: PictureData, brokers: list[str]) -> tuple[dict[str, dict[int, int]], dict[str, list[int]]]:
    """Return the greatest distance in each time slot, and the memory that it is compared with."""
    here = pl.col("broker_name").is_in(brokers)
    reads = view.rows("gold.slave_suggestion", "request_ts").filter(here)
    by_slot = reads.filter(pl.col("diff_max").is_not_null()).group_by(
        "broker_name", slot=view.bucket("request_ts", SLOTS)
    )
    distances: dict[str, dict[int, int]] = {}
    for broker, slot, diff in by_slot.agg(pl.col("diff_max").max()).sort("broker_name", "slot").collect().iter_rows():
        distances.setdefault(broker, {})[slot] = diff
    memories: dict[str, list[int]] = {}
    of_master = (
        reads.filter(pl.col("memory") > 0).group_by("broker_name", "memory").agg(pl.len()).sort("broker_name", "memory")
    )
    for broker, memory, _ in of_master.collect().iter_rows():
        memories.setdefault(broker, []).append(memory)
    return distances, memories


def _panel(
    drawing: Drawing,
    view: PictureData,
    broker: str,
    shares: dict[int, tuple[int, int]],
    distances: dict[int, int],
    memories: list[int],
) -> None:
    filled = drawing.words.filled
    drawing.y += 5
    drawing.finding_strip([f for f in view.findings_of(ABOUT.kinds) if f["broker_name"] == broker])
    top = drawing.y + 3
    master, slave = (sum(each[i] for each in shares.values()) for i in (0, 1))
    drawing.place("broker", broker, 8, top + 11, "p-t p-strong", LEFT - 60)
    drawing.text(8, top + 27, filled("{n} from the master", n=number(master)), "p-t p-small p-dim")
    drawing.text(8, top + 43, filled("{n} from slaves", n=number(slave)), "p-t p-small p-dim")
    step = PLOT / SLOTS
    for label, y in (("100 %", top + 9), ("0", top + SHARE)):
        drawing.text(LEFT - 6, y, label, "p-t p-small p-dim p-end")
    _bars(drawing, top, step, shares)
    drawing.path(f"M{LEFT} {top + SHARE:g}H{LEFT + PLOT}", "p-rule")
    y = top + SHARE + 14
    if distances:
        high = max([*distances.values(), *memories]) * 1.3
        scale = ByteScale(LOWEST, max(high, LOWEST * 16), y, DISTANCE)
        places = [
            (round(LEFT + (slot + 0.5) * step, 1), scale.y(distances[slot])) if slot in distances else None
            for slot in range(SLOTS)
        ]
        for memory in memories:
            limit = scale.y(memory)
            text = "{broker}: a reader more than {bytes} behind is sent to a slave"
            words = filled(text, broker=broker, bytes=in_bytes(memory))
            drawing.path(f"M{LEFT} {limit:g}H{LEFT + PLOT}", "p-limit", words)
            drawing.text(LEFT - 6, limit + 4, in_bytes(memory), "p-t p-small p-end")
        worst = max(distances, key=lambda slot: distances[slot])
        when = at(view.bucket_start(worst, SLOTS))
        text = "{broker}: at most {bytes} behind, at {time}"
        words = filled(text, broker=broker, bytes=in_bytes(distances[worst]), time=when)
        drawing.path(path_through(places), "p-line", words)
        for place in places:
            if place is not None:
                drawing.path(f"M{place[0]:g} {place[1]:g}h.1", "p-dot")
        drawing.path(f"M{LEFT} {y + DISTANCE:g}H{LEFT + PLOT}", "p-rule")
        drawing.text(LEFT - 6, y + DISTANCE, f"≤ {in_bytes(LOWEST)}", "p-t p-small p-dim p-end")
        y += DISTANCE
    drawing.y = max(y + 8, top + 52)


def _bars(drawing: Drawing, top: float, step: float, shares: dict[int, tuple[int, int]]) -> None:
    """Draw the shares; neighbouring slots without a pull from a slave are one bar."""
    run: list[int] = []
    for slot in [*sorted(shares), SLOTS + 1]:
        if run and (slot != run[-1] + 1 or shares.get(slot, (0, 1))[1]):
            drawing.rect(LEFT + run[0] * step, top, len(run) * step, SHARE, "p-up")
            run = []
        if slot not in shares:
            continue
        master, slave = shares[slot]
        if not slave:
            run.append(slot)
            continue
        height = SHARE * slave / (master + slave)
        x = LEFT + slot * step
        drawing.rect(x, top, step, SHARE - height, "p-up")
        pulls = drawing.words.counted(slave, "pull")
        words = drawing.words.filled("{pulls} from a slave, {n} from the master", pulls=pulls, n=number(master))
        drawing.rect(x, top + SHARE - height, step, height, "p-slave", words)
        if height > 4:
            drawing.hatch(x, top + SHARE - height, step, height, "p-slave-hatch")
