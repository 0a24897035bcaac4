"""The data of a cluster's page, with the states of its last night."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import ENGLISH
from mqreplay.moment.instant import Recorded
from mqreplay.moment.night_states import night_states
from mqreplay.night.anonymise.warehouse import AnonymisedWarehouse
from mqreplay.report.collect import collect
from mqreplay.report.data import ReportData
from mqreplay.report.pictures.night import recorded_nights


def anonymised_data(
    tables: AnonymisedWarehouse, cluster: str, since: dt.date | None = None, lang: str = ENGLISH
) -> ReportData:
    """Read what the page of a cluster needs, with replaced names. ``cluster`` is the real name."""
    return replace(page_data(tables, tables.anonymised(cluster), since, lang), is_anonymised=True)


def page_data(warehouse: Warehouse, cluster: str, since: dt.date | None = None, lang: str = ENGLISH) -> ReportData:
    """Read what the page of a cluster needs of the days from ``since`` on; of all days if it is None.

    ``lang`` is the language of the page, one of LANGUAGES.
    """
    nights = recorded_nights(warehouse, cluster)
    if not nights:
        return collect(warehouse, cluster, since, lang=lang)
    states = night_states(Recorded(warehouse, cluster, nights[-1].first, nights[-1].last))
    return collect(warehouse, cluster, since, states, lang)
