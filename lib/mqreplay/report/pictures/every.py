"""All pictures of a cluster's last night, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.data import Row
from mqreplay.report.pictures.brokers import draw_brokers
from mqreplay.report.pictures.lag import draw_lag
from mqreplay.report.pictures.night import NightView, recorded_nights
from mqreplay.report.pictures.picture import Picture

OF_A_NIGHT: tuple[Callable[[NightView], Picture], ...] = (draw_brokers, draw_lag)


def pictures(warehouse: Warehouse, cluster: str, findings: Sequence[Row]) -> list[Picture]:
    """Return the pictures of the last night; none if nothing was recorded.

    ``findings`` are the rows of gold.finding that the page shows: pictures link to these alone.
    """
    nights = recorded_nights(warehouse, cluster)
    if not nights:
        return []
    view = NightView.of_night(warehouse, cluster, nights[-1], findings)
    return [draw(view) for draw in OF_A_NIGHT]
