"""Small captures, for tests, and their import."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

from mqreplay.importer.import_command import import_evidence
from tests_shared import ROOT

NIGHT = ROOT / "data/sample/orders-4.9.7"
CAPTURE = NIGHT / "wire.pcap.gz"


def import_captures(captures: list[Path], folder: Path) -> dict[str, Any]:
    """Make a recording of captures in ``folder``; return the report."""
    out = StringIO()
    import_evidence([str(path) for path in captures], str(folder), out, as_json=True)
    report: dict[str, Any] = json.loads(out.getvalue())
    return report
