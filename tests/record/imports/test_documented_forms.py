"""docs/recording.md names every form that an import recognises."""

from __future__ import annotations

import pytest

from mqreplay.decode.logs import broker_log, client_log, lock_log, namesrv_log, stats_log
from tests_shared import ROOT

PAGE = (ROOT / "docs/recording.md").read_text(encoding="utf-8")
LOGS = (broker_log, client_log, lock_log, namesrv_log, stats_log)
# Beginnings of the same message in other versions.
ALSO = {
    "ClientManageProcessor: ": "registerConsumer info changed ",
    "heartBeatV2 ClientManageProcessor: ": "registerConsumer info changed ",
    "sendHeartbeatToAllBrokerV2 send heart beat to broker[": "send heart beat to broker[",
    "unregisterBroker, remove from brokerLiveTable OK, ": "unregisterBroker, ",
    "[persist": "[persist]",
}


@pytest.mark.parametrize("start", sorted(start for log in LOGS for start in log.STARTS))
def test_each_message_of_a_log_is_named(start: str) -> None:
    assert f"`{ALSO.get(start, start)}" in PAGE
