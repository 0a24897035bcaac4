"""Judge all days again if a table that is made from silver is damaged."""

from __future__ import annotations

from mqreplay.lake.kept_days import first_days
from mqreplay.lake.table_versions import DamagedTable
from mqreplay.night.nightly_run import NightlyRun
from mqreplay.night.steps import Steps


def remove_damaged(night: NightlyRun, *, judges: bool) -> bool:
    """Remove damaged tables that the days of silver can make again; let each day be judged again. Return whether any.

    ``judges``: the run judges days. Raises DamagedTable for other tables.
    """
    warehouse, damaged = night.warehouse, dict[str, DamagedTable]()
    for name in warehouse.contracts:
        try:
            warehouse.check(name, checksums=False)
        except DamagedTable as error:
            damaged[name] = error
    if not damaged:
        return False
    if all(warehouse.version(name) is None for name in warehouse.contracts):
        warehouse.note_versions(damaged)  # somebody has removed all tables, to start again
        return False
    lasting = [reason for name, reason in damaged.items() if not (judges and warehouse.contracts[name].is_judged)]
    if lasting:
        raise lasting[0]
    clusters = night.clusters(None)
    if any("silver" in first_days(warehouse, cluster) for cluster in clusters):
        raise next(iter(damaged.values()))  # not all days can be made again
    for cluster in clusters:
        Steps(warehouse, cluster).again()
    for name, reason in damaged.items():
        night.progress(f"{reason.what}; all days are judged again")
        warehouse.drop(name)
    return True
