"""Known vulnerabilities of components, from a database that speaks the API of OSV (Open Source Vulnerabilities)."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence

from audit.components import Component

AT_ONCE = 500  # questions in one request; the database takes 1,000
PATIENCE_S = 30


def known_vulnerabilities(components: Sequence[Component], service: str) -> dict[str, list[str]]:
    """Return the identifiers of known vulnerabilities by purl of the component. Raises OSError, ValueError."""
    found: dict[str, list[str]] = {}
    for start in range(0, len(components), AT_ONCE):
        part = components[start : start + AT_ONCE]
        asked = {"queries": [{"package": {"purl": component.purl}} for component in part]}
        request = urllib.request.Request(
            f"{service}/v1/querybatch", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            results = json.load(answer)["results"]
        for component, result in zip(part, results, strict=True):
            if result.get("vulns"):
                found[component.purl] = sorted(each["id"] for each in result["vulns"])
    return found
