"""A pull or commit of a client's log is one that a capture has, or another one."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.importer.captures import captured_requests
from mqreplay.importer.captures.captured_requests import NEAR_MS, CapturedRequests

STEM = "pull_log"
# Of hooked-4.9.7: an offset past the end. The client logs the answer 2 ms after it.
CAPTURED: dict[str, Any] = {
    **{"request_ts": 1795697850592, "response_ts": 1795697850602, "client_id": "10.7.2.2@25740#85684795438000"},
    **{"consumer_group": "keepers", "topic": "coin-melted", "broker_name": "die-1", "broker_id": 0, "queue_id": 1},
    **{"queue_offset": 99999, "response_code": 21, "response_name": "PULL_OFFSET_MOVED", "next_begin_offset": 12},
    **{"min_offset": 0, "max_offset": 12, "opaque": 1215},
}
LOGGED = CAPTURED | {"request_ts": 1795697850604, "response_ts": 1795697850604, "source": "client_log"}


def test_it_is_the_same_pull_once() -> None:
    pulls = CapturedRequests()
    pulls.add(STEM, CAPTURED)
    assert [pulls.take(STEM, LOGGED), pulls.take(STEM, LOGGED)] == [True, False], "a second line is a second pull"


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        pytest.param({"response_ts": CAPTURED["response_ts"] - NEAR_MS}, True, id="a clock that is late"),
        pytest.param({"response_ts": CAPTURED["response_ts"] + NEAR_MS + 1}, False, id="another time"),
        pytest.param({"queue_id": 0}, False, id="another queue"),
        pytest.param({"next_begin_offset": 13}, False, id="another answer"),
        pytest.param({"consumer_group": "others"}, False, id="another group"),
        pytest.param({"client_id": "10.7.2.3@25740#1"}, True, id="a log names no client: it is inferred"),
    ],
)
def test_what_makes_it_another_pull(changed: dict[str, Any], is_same: bool) -> None:
    pulls = CapturedRequests()
    pulls.add(STEM, CAPTURED)
    assert pulls.take(STEM, LOGGED | changed) is is_same


def test_other_records_are_no_pulls() -> None:
    pulls = CapturedRequests()
    pulls.add("pop_log", CAPTURED)
    pulls.add(STEM, CAPTURED | {"response_name": "SUCCESS"})
    assert not pulls.take(STEM, LOGGED)
    assert not pulls.take(STEM, LOGGED | {"response_name": "SUCCESS"})
    assert not pulls.take("offset_commits", LOGGED)


COMMITTED: dict[str, Any] = {
    **{"ts": 1795697855010, "kind": "UPDATE", "client_id": "10.7.2.2@25740#85684795438000"},
    **{"consumer_group": "keepers", "topic": "coin-melted", "broker_name": "die-1", "queue_id": 1, "commit_offset": 12},
}


def test_a_client_commits_the_same_offset_every_5_s() -> None:
    """Captured three times, and logged as often, 2 ms later; the fourth line is of a commit that the capture lacks."""
    requests = CapturedRequests()
    for beat in range(3):
        requests.add("offset_commits", COMMITTED | {"ts": COMMITTED["ts"] + beat * 5_000})
    logged = [COMMITTED | {"ts": COMMITTED["ts"] + beat * 5_000 + 2} for beat in range(4)]
    assert [requests.take("offset_commits", line) for line in logged] == [True, True, True, False]


@pytest.mark.parametrize("changed", [{"commit_offset": 13}, {"client_id": "other"}, {"kind": "QUERY"}])
def test_what_makes_it_another_commit(changed: dict[str, Any]) -> None:
    requests = CapturedRequests()
    requests.add("offset_commits", COMMITTED)
    assert not requests.take("offset_commits", COMMITTED | changed)


def test_requests_that_end_in_another_order_are_found() -> None:
    requests = CapturedRequests()
    for beat in (2, 0, 1):
        requests.add("offset_commits", COMMITTED | {"ts": COMMITTED["ts"] + beat * 20_000})
    assert all(
        requests.take("offset_commits", COMMITTED | {"ts": COMMITTED["ts"] + beat * 20_000}) for beat in range(3)
    )


def test_a_flood_of_such_answers_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_requests, "MOST_REQUESTS", 3)
    pulls = CapturedRequests()
    for _ in range(5):
        pulls.add(STEM, CAPTURED)
    assert [pulls.take(STEM, LOGGED) for _ in range(5)] == [True, True, True, False, False]
