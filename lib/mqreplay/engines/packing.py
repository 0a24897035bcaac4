"""Values as bytes, between the driver and tasks."""

from __future__ import annotations

import pickle
from typing import Any

from isal import isal_zlib


def packed(value: Any) -> bytes:
    """Return a value as compressed bytes: frames repeat names."""
    return isal_zlib.compress(pickle.dumps(value), 1)


def unpacked(data: bytes) -> Any:
    """Return a packed value."""
    return pickle.loads(isal_zlib.decompress(data))
