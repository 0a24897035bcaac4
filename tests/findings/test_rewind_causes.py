"""Causes of rewinds that no commit shows: handovers, restarts of brokers, commits that overtake each other."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from findings.offset_breaks import GAP_S, HANDOVER_S, NO_RESETS, breaks, broke, down, held, owned
from mqreplay.evidence.offsets.break_causes import with_explained_rewinds
from mqreplay.findings.offsets import offset_findings
from silver_moments import at

SPANS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([0, 0, 1]), st.integers(0, 30), st.integers(0, 12)), max_size=8
)


# The first client holds the queue throughout, the others one after the other.
@example([("a", 0, 0, 100), ("b", 0, 10, 10), ("c", 0, 30, 10)], [(41, 3)], 0)
@given(SPANS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), min_size=1, max_size=6), st.integers(0, 6))
def test_two_clients_held_the_queue(spans, moments, handover_s):
    owners = [held("g", client, since, since + long, queue_id=queue) for client, queue, since, long in spans]
    for to, long in moments:
        row = broke("g", to, 7, from_ts=at(to - long))
        near = row["from_ts"] - dt.timedelta(seconds=handover_s)
        here = [o for o in owners if o["queue_id"] == 0 and o["from_ts"] <= row["to_ts"] and o["to_ts"] >= near]
        (finding,) = offset_findings(breaks([row]), owned(owners), "c", 1, handover_s, NO_RESETS).to_dicts()
        assert ("changed hands" in finding["summary"]) == (len({o["client_id"] for o in here}) > 1)


def test_a_broker_that_was_killed_comes_back_with_older_offsets():
    rewinds = breaks([broke("g", 50, 7, 7, cause="unknown"), broke("h", 10, 7, 7, cause="unknown")])
    rewinds = with_explained_rewinds(rewinds, owned([]), down((46, 49)), HANDOVER_S)
    found = offset_findings(rewinds, owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).sort("consumer_group")
    restarted, unknown = found["summary"].to_list()
    assert "by a restart of the broker, which had not saved its latest offsets" in restarted
    assert "by an unknown cause" in unknown


@pytest.mark.parametrize(("seconds", "severity"), [(40, "warning"), (90, "info")])
def test_an_overtaken_commit_explains_its_own_queue_alone(seconds, severity):
    rows = [broke("g", 50, 1, 1, cause="overtaken"), broke("g", seconds, 40, 40, cause="unknown", queue_id=1)]
    known = with_explained_rewinds(breaks(rows), owned([]), down(), HANDOVER_S)
    found = offset_findings(known, owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).filter(
        pl.col("queue_id").ne_missing(1)
    )
    assert found["severity"].to_list() == [severity]


@pytest.mark.parametrize(("other", "severity"), [("overtaken", "info"), ("handover", "info"), ("unknown", "warning")])
def test_an_overtaken_commit_is_no_warning_alone(other, severity):
    rows = breaks([broke("g", 50, 1, 1, cause="overtaken"), broke("g", 50, 2, 2, cause=other, queue_id=1)])
    (found,) = offset_findings(rows, owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).to_dicts()
    assert "two commits of a client that the broker took in the wrong order" in found["summary"]
    assert found["severity"] == severity


@pytest.mark.parametrize(
    ("outages", "owners", "words", "severity"),
    [
        (down(), [], "by an unknown cause", "warning"),
        (down(), [held("g", "a", 0, 48), held("g", "b", 48, 90)], "between which queues changed hands", "info"),
        (down((46, 49)), [held("g", "a", 0, 48), held("g", "b", 48, 90)], "by a restart of the broker", "warning"),
    ],
)
def test_without_recorded_commits_owners_show_a_handover(outages, owners, words, severity):
    rewind = breaks([broke("g", 50, 1, 1, cause="unknown")])
    rewind = with_explained_rewinds(rewind, owned(owners), outages, HANDOVER_S)
    (found,) = offset_findings(rewind, owned(owners), "c", GAP_S, HANDOVER_S, NO_RESETS).to_dicts()
    assert words in found["summary"]
    assert found["severity"] == severity
