"""Pictures of a night as inline SVG, on one time axis, linked to the findings.

night.py has the night that is shown, scales.py places and labels, drawing.py shapes and panels; the other modules draw
a picture each. templates/pictures.css has their colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.report.data import Row
from mqreplay.report.pictures.allocations import draw_allocations
from mqreplay.report.pictures.brokers import draw_brokers
from mqreplay.report.pictures.drawing import Picture
from mqreplay.report.pictures.failovers import draw_failovers
from mqreplay.report.pictures.finding_times import draw_finding_times
from mqreplay.report.pictures.lag import draw_lag
from mqreplay.report.pictures.night import PictureData, recorded_nights
from mqreplay.report.pictures.night_comparison import draw_nights
from mqreplay.report.pictures.offsets import draw_offsets
from mqreplay.report.pictures.owners import draw_owners
from mqreplay.report.pictures.slave_reads import draw_slave_reads

if TYPE_CHECKING:
    from mqreplay.moment.night_states import NightStates

NIGHT_PICTURES: tuple[Callable[[PictureData], Picture], ...] = (
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
    warehouse: Warehouse,
    cluster: str,
    findings: Sequence[Row],
    words: Language | None = None,
    states: NightStates | None = None,
) -> list[Picture]:
    """Return the pictures of the last night and of all nights side by side; none if nothing was recorded.

    ``findings`` are the rows of gold.finding that the page shows: pictures link to these alone. ``words`` has the
    language of the texts. ``states`` are those of the last night; without them, no lag and no ends of queues are drawn.
    """
    nights = recorded_nights(warehouse, cluster)
    if not nights:
        return []
    words = words or in_english()
    view = PictureData.of_night(warehouse, cluster, nights[-1], findings, words, states)
    drawn = [draw(view) for draw in NIGHT_PICTURES]
    side_by_side = draw_nights(nights, findings, words)
    return drawn if side_by_side is None else [*drawn, side_by_side]
