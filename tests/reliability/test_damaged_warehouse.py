"""A damaged file of a warehouse never gives another answer in silence, and never an unexpected error.

Each damage of the campaign has a number, which gives the same damage each time. The short form takes some of them on a
night without its expectations, the long one the count of docs/reliability.md.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from reliability.damaged_warehouse import Counts, DamagedWarehouse
from reliability.recordings import Recordings
from reliability.warehouse_damage import KINDS, damages

SHORT, LONG, SEED = 3, 500, 1


def test_some_damages(recordings: Recordings, tmp_path: Path) -> None:
    warehouse, counts = DamagedWarehouse(recordings, tmp_path), Counts()
    for damage in islice(damages(SEED), SHORT):
        warehouse.run(damage, counts)
    assert not counts.failures
    assert counts.ends.total() > SHORT * 3 // 4  # the others cannot happen to any file


@pytest.mark.long
def test_damages_of_every_kind_of_file(recordings: Recordings, tmp_path: Path) -> None:
    warehouse, counts = DamagedWarehouse(recordings, tmp_path, ["nightly"]), Counts()
    for damage in damages(SEED):
        warehouse.run(damage, counts)
        if counts.ends.total() == LONG:
            break
    print(counts.table())
    assert not counts.failures
    assert {kind for kind, _, _ in counts.ends} == KINDS.keys()
