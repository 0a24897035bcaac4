"""Client ids that several processes use."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from evidence_keys import evidence_of
from mqreplay.evidence.members.duplicate_clients import DUPLICATES
from mqreplay.findings.duplicate_ids import duplicate_id_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at

DISPUTE_S = 45
NOBODY = pl.DataFrame(schema={"consumer_group": pl.String})


def found(unshared: pl.DataFrame = NOBODY, **differs: object) -> list[dict[str, Any]]:
    row = {"consumer_group": "g", "client_id": "ip@w", "from_ts": at(0), "to_ts": at(118), "processes": 2}
    row |= {"certain": True, "addresses": ["h:1", "h:2"]}
    row |= {"tables": ["silver.consumer_connection", "silver.consumer_list"]} | differs
    made = duplicate_id_findings(pl.DataFrame([row], DUPLICATES), unshared, "c", DISPUTE_S)
    assert dict(made.schema) == SCHEMA
    return made.to_dicts()


def test_processes_with_one_id_are_named_with_their_addresses():
    (row,) = found()
    assert (row["kind"], row["severity"], row["client_id"]) == ("duplicate_client_id", "warning", "ip@w")
    assert (row["from_ts"], row["to_ts"]) == (at(0), at(118))
    assert row["summary"] == "2 processes used client id ip@w of group g (h:1, h:2): they take the same queues."
    assert row["evidence"] == [
        evidence_of("silver.consumer_connection", consumer_group="g"),
        evidence_of("silver.consumer_list", consumer_group="g"),
    ]


def test_a_connection_may_not_be_closed_yet():
    assert found(certain=False, addresses=[], tables=["silver.consumer_list"]) == []


@pytest.mark.parametrize(("seconds", "reported"), [(45, False), (46, True)])
def test_to_connect_again_takes_a_while(seconds: int, reported: bool):
    assert bool(found(to_ts=at(seconds))) == reported


def test_processes_of_a_broadcasting_group_may_have_one_id():
    assert found(pl.DataFrame({"consumer_group": ["g"]})) == []


def test_an_id_at_two_hosts_in_one_list_is_info_that_says_what_would_prove_it():
    (row,) = found(certain=False, unconfirmed=True, to_ts=at(0), tables=["silver.consumer_connection"])
    assert (row["severity"], row["confidence"]) == ("info", 0.6)
    assert "was listed at several hosts (h:1, h:2)" in row["summary"]
    assert "three minutes" in row["advice"]
    assert found(pl.DataFrame({"consumer_group": ["g"]}), certain=False, unconfirmed=True) == []
