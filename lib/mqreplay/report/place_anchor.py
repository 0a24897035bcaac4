"""Findings, groups, brokers and topics as places that the page links to."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple


class Place(NamedTuple):
    """A group, a broker or a topic by name."""

    kind: str
    name: str


def anchor(place: Place) -> str:
    """Return the id of a place's part; names that an address cannot hold get a digest.

    >>> anchor(Place("group", "order-group")), anchor(Place("group", "a b"))
    ('group-order-group', 'group-a-b-c8687a08')
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "-", place.name)
    if plain == place.name and len(plain) <= 80:
        return f"{place.kind}-{plain}"
    digest = hashlib.sha256(place.name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{place.kind}-{plain[:40]}-{digest}"


def finding_anchor(finding_id: str) -> str:
    """Return the id of a finding on the page."""
    return f"f-{finding_id}"
