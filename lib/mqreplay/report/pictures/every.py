"""All pictures of a cluster, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.report.data import Row
from mqreplay.report.pictures.allocations import draw_allocations
from mqreplay.report.pictures.brokers import draw_brokers
from mqreplay.report.pictures.failovers import draw_failovers
from mqreplay.report.pictures.finding_times import draw_finding_times
from mqreplay.report.pictures.lag import draw_lag
from mqreplay.report.pictures.night import PictureData, recorded_nights
from mqreplay.report.pictures.night_comparison import draw_nights
from mqreplay.report.pictures.offsets import draw_offsets
from mqreplay.report.pictures.owners import draw_owners
from mqreplay.report.pictures.picture import Picture
from mqreplay.report.pictures.slave_reads import draw_slave_reads

OF_A_NIGHT: tuple[Callable[[PictureData], Picture], ...] = (
    draw_finding_times,
    draw_brokers,
    draw_failovers,
    draw_lag,
    draw_offsets,
    draw_owners,
    draw_allocations,
    draw_slave_reads,
)


def pictures(
    warehouse: Warehouse, cluster: str, findings: Sequence[Row], words: Language | None = None
) -> list[Picture]:
    """Return the pictures of the last night and of all nights side by side; none if nothing was recorded.

    ``findings`` are the rows of gold.finding that the page shows: pictures link to these alone. ``words`` has the
    language of the texts.
    """
    nights = recorded_nights(warehouse, cluster)
    if not nights:
        return []
    words = words or in_english()
    view = PictureData.of_night(warehouse, cluster, nights[-1], findings, words)
    drawn = [draw(view) for draw in OF_A_NIGHT]
    side_by_side = draw_nights(nights, findings, words)
    return drawn if side_by_side is None else [*drawn, side_by_side]
