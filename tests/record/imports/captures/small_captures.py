"""Small captures, for tests."""

from __future__ import annotations

from tests_shared import ROOT

NIGHT = ROOT / "data/sample/orders-4.9.7"
CAPTURE = NIGHT / "wire.pcap.gz"
