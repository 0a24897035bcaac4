"""Rules of a client that differ by its version: defaults, error page, isolation of brokers."""

from __future__ import annotations

from typing import Any

from mqreplay.core.faq_url import client_exception
from mqreplay.core.fault_strategy import FaultItem, default_settings, update_fault_item
from mqreplay.core.send_retry import retry_response_codes

NOW = 1_700_000_000_000


def client_rules(asked: dict[str, Any], version: str) -> dict[str, Any]:
    if asked["case"] == "defaults":
        settings = default_settings(version)
        return {
            "latencyMax": list(settings.latency_max),
            "notAvailableDuration": list(settings.not_available_duration),
            "retryResponseCodes": sorted(retry_response_codes(version)),
            "exception": client_exception(1, "no route", version).message,
        }
    if asked["case"] == "faults":
        items: dict[str, FaultItem] = {}
        for broker, latency, isolation in asked["sends"]:
            items = update_fault_item(items, broker, latency, isolation, NOW, version=version)
        return {
            "latency_unavailableForSeconds": {
                name: [item.current_latency, max(0, (item.start_timestamp - NOW) // 1000)]
                for name, item in items.items()
            }
        }
    raise NotImplementedError(asked["case"])


FILES = {"client_rules": client_rules}
