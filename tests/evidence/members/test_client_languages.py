"""Clients in other languages: the rules of the Java client are not theirs."""

from __future__ import annotations

import polars as pl
import pytest

from mqreplay.decode.capture.headers import JSON, ROCKETMQ, read_header
from mqreplay.evidence.members.client_languages import other_clients, without_other_languages
from silver_rows import rows

ELSEWHERE = ("undetermined", "the client's language is GO, and the rule is that of the Java client")


@pytest.mark.parametrize(
    ("connected", "beats", "language"),
    [
        (["GO"], [], "GO"),
        ([], ["RUST"], "RUST"),
        (["JAVA"], [], None),
        (["GO", "JAVA"], [], None),  # two clients share the id
        (["JAVA"], ["CPP"], None),
        ([None], [None], None),
    ],
)
def test_the_language_that_connections_and_requests_state(
    connected: list[str], beats: list[str], language: str | None
) -> None:
    polls = [{"connections": [("c1", "h:1", each, 1)]} for each in connected]
    sent = [{"language": each} for each in beats]
    found = other_clients(
        rows("silver.consumer_connection", {"consumer_group": "g"}, polls),
        rows("silver.heartbeat", {"client_id": "c1", "kind": "HEART_BEAT"}, sent),
    )
    assert found.rows() == ([] if language is None else [("c1", language)])


def test_a_grpc_client_states_java_and_has_code_of_its_own() -> None:
    polls = [{"connections": [("host@7@1@abc", "h:1", "JAVA", 1)]}]
    found = other_clients(rows("silver.consumer_connection", {}, polls), rows("silver.heartbeat", {}, []))
    assert found.rows() == [("host@7@1@abc", "gRPC")]


def test_only_differences_of_their_clients_change() -> None:
    judged = [("c1", "differ", "why"), ("c1", "agree", "ok"), ("c2", "differ", "why")]
    frame = pl.DataFrame(judged, ["client_id", "judgement", "reason"], orient="row")
    found = without_other_languages(frame, pl.DataFrame({"client_id": ["c1"], "language": ["GO"]}))
    assert found.columns == frame.columns
    assert found.rows() == [("c1", *ELSEWHERE), judged[1], judged[2]]


def test_a_captured_request_states_its_language() -> None:
    assert read_header(JSON, b'{"code":34,"language":"GO","opaque":7}').language == "GO"
    binary = bytes.fromhex("00220c000000000007000000000000000000000000")
    assert read_header(ROCKETMQ, binary).language == "RUST"
