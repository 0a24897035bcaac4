"""Recorded nights of made clusters, each judged once, and what was done to them."""

from __future__ import annotations

import datetime as dt
import json
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import load_settings
from night.finding_sums import Finding, message_count
from tests_shared import made_once, run, unpack

DATA = Path(__file__).parents[1] / "data"
CAPTURES = "hooked-"  # archives of packets and logs, of which `mqreplay import` makes a recording
NEAR_S = 30
PLACE = ("consumer_group", "topic", "broker_name", "broker_id", "queue_id", "client_id")


@dataclass(frozen=True)
class JudgedNight:
    """A night after ingest and replay: its warehouse and its findings, in order of time."""

    root: str
    findings: list[Finding]

    def table(self, name: str) -> pl.DataFrame:
        """Return the rows of a table; none if the night has none."""
        return Warehouse(self.root).read(name).collect()

    def alarms(self) -> list[Finding]:
        """Return the findings that are warning or critical."""
        return [finding for finding in self.findings if finding["severity"] != "info"]


@cache
def judged_night(name: str, within: str | Collection[str] = "") -> JudgedNight:
    """Return the judged night of ``name``.tar.xz, without validation and report. Tests must not write to it.

    ``within`` is the folder of the archive that is read, or the names of the files; empty: all of it.
    """
    archive = DATA / f"{name}.tar.xz"
    part = within.strip("/") if isinstance(within, str) else "files"
    kept = "-".join(filter(None, ("judged", name, part)))
    folder = made_once(kept, lambda made: _judge(archive, made, within), archive)
    return _night_at(folder / "warehouse")


def _judge(archive: Path, folder: Path, within: str | Collection[str]) -> None:
    with tarfile.open(archive) as packed:
        wanted = [member for member in packed.getmembers() if _is_within(member.name, within)]
        assert isinstance(within, str) or len(wanted) == len(within)
        unpack(packed, folder / "recording", wanted)
    judge_folder(folder)


def _is_within(name: str, within: str | Collection[str]) -> bool:
    return name.startswith(within) if isinstance(within, str) else name.removeprefix("./") in within


def judge_folder(folder: Path) -> JudgedNight:
    """Judge the recording in the folder ``recording`` of ``folder``, without validation and report."""
    root = folder / "warehouse"
    for step in ("ingest", "replay"):
        run(step, str(root), load_settings(), lambda what: None, recordings=[str(folder / "recording")])
    return _night_at(root)


def _night_at(root: Path) -> JudgedNight:
    findings = Warehouse(str(root)).read("gold.finding").sort("from_ts", "finding_id").collect()
    return JudgedNight(str(root), findings.to_dicts())


def truth_of(name: str) -> dict[str, Any]:
    """Return ``name``.truth.json: faults with the finding that each must give, clients and events."""
    truth: dict[str, Any] = json.loads((DATA / f"{name}.truth.json").read_text(encoding="utf-8"))
    return truth


def findings_of_fault(fault: dict[str, Any], findings: list[Finding]) -> list[Finding]:
    """Return the findings of the fault's kind, severity and place that began when it was injected and say its cause.

    Times agree within NEAR_S seconds; a fault that takes effect later has ``after_s``. With ``ends`` the finding's end
    agrees with the fault's. Each of ``words`` is in the summary or the advice. ``messages`` are the least and the most
    that the summary may count.
    """
    return [finding for finding in findings if not differences(fault, finding)]


def differences(fault: dict[str, Any], finding: Finding) -> list[str]:
    """Return what of the finding is not as the fault demands, as text."""
    wanted = fault["finding"]
    found = [name for name in ("severity", *PLACE) if name in wanted and wanted[name] != finding[name]]
    if finding["kind"] not in wanted["kinds"]:
        found.append("kind")
    late_s = epoch_ms(finding["from_ts"]) / 1000 - fault["at"] / 1000
    if not -NEAR_S <= late_s <= NEAR_S + wanted.get("after_s", 0):
        found.append(f"begins {late_s:.0f} s after the fault")
    if "ends" in wanted:
        late_s = epoch_ms(finding["to_ts"]) / 1000 - fault[wanted["ends"]] / 1000
        if abs(late_s) > NEAR_S:
            found.append(f"ends {late_s:.0f} s after the fault")
    if "messages" in wanted:
        least, most = wanted["messages"]
        counted = message_count(finding)
        if not least <= counted <= most:
            found.append(f"counts {counted} messages")
    text = f"{finding['summary']} {finding['advice']}"
    return found + [f"does not say {word}" for word in wanted["words"] if word not in text]


def unmatched(fault: dict[str, Any], findings: list[Finding]) -> str:
    """Return how each finding of the fault's kinds differs from it, a line each, for the message of a failed test."""
    of_kind = [finding for finding in findings if finding["kind"] in fault["finding"]["kinds"]]
    lines = [f"{finding['summary']} ({', '.join(differences(fault, finding)) or 'matches'})" for finding in of_kind]
    return "\n".join([f"{fault['fault']}:", *lines])


def epoch_ms(instant: dt.datetime) -> int:
    """Return milliseconds since the epoch of a UTC instant."""
    return round(instant.replace(tzinfo=dt.UTC).timestamp() * 1000)
