"""The data of a cluster's page, with the states of its last night."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from mqreplay.answers.mutes import Mute, mark_text, marked
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import ENGLISH
from mqreplay.moment.instant import Recorded
from mqreplay.moment.night_states import night_states
from mqreplay.report.collect import collect
from mqreplay.report.data import ReportData
from mqreplay.report.pictures.night import recorded_nights


def page_data(
    warehouse: Warehouse,
    cluster: str,
    since: dt.date | None = None,
    lang: str = ENGLISH,
    mutes: Sequence[Mute] = (),
) -> ReportData:
    """Read what the page of a cluster needs of the days from ``since`` on; of all days if it is None.

    ``lang`` is the language of the page, one of LANGUAGES; ``mutes`` are those that hold.
    """
    nights = recorded_nights(warehouse, cluster)
    states = night_states(Recorded(warehouse, cluster, nights[-1].first, nights[-1].last)) if nights else None
    data = collect(warehouse, cluster, since, states, lang)
    notes = {row["finding_id"]: text for row in marked(data.findings, mutes) if (text := mark_text(row))}
    return replace(data, mutes=notes)
