"""A part of a warehouse that this user may not read: one line names it, with status 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from made_warehouse import made_warehouse

RUNS = """
import contextlib, io, json, os, sys
from mqreplay.cli.command_line import main
root, *parts = sys.argv[1:]
for part in parts:
    mode = os.stat(part).st_mode
    os.chmod(part, 0)
    for command in (["findings"], ["sql", "SELECT finding_id FROM gold.finding"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([*command, "--warehouse", root])
        print(json.dumps([part, status, out.getvalue(), err.getvalue()]))
    os.chmod(part, mode)
"""
# Root reads everything: these rights are taken from it.
RIGHTS = "-dac_override,-dac_read_search"
AS_USER = ["setpriv", "--bounding-set", RIGHTS, "--inh-caps", RIGHTS] if os.geteuid() == 0 else []


def check_runs(root: Path, parts: list[Path]) -> None:
    """Run commands while one part after the other may not be read."""
    command = [*AS_USER, sys.executable, "-c", RUNS, str(root), *map(str, parts)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2 * len(parts)
    advice = "change its mode or owner, or run mqreplay as a user who may read it"
    for part, status, out, err in answers:
        expected = f"mqreplay: {part} cannot be read: Permission denied; {advice}\n"
        assert (status, out, err) == (2, "", expected)


def made_table(root: Path) -> tuple[Path, Path]:
    """Return the folder of a table, and its data file."""
    made_warehouse(root, {"gold.finding": [{"finding_id": "f1", "kind": "broker_down"}]})
    table = root / "gold/finding"
    [data] = table.rglob("*.parquet")
    return table, data


def test_a_part_that_may_not_be_read_is_one_line(tmp_path: Path) -> None:
    table, data = made_table(tmp_path)
    log = table / "_delta_log"
    inner = [log, *sorted(log.glob("0*.json")), data.parent, data]
    check_runs(tmp_path, [tmp_path, tmp_path / ".mqreplay.versions", tmp_path / "gold", table, *inner])


def test_a_data_file_without_a_checksum_is_one_line(tmp_path: Path) -> None:
    """Spark's files have no checksum in their names."""
    table, data = made_table(tmp_path)
    plain = data.with_name("part-0.zstd.parquet")
    data.rename(plain)
    for commit in (table / "_delta_log").glob("0*.json"):
        commit.write_text(commit.read_text().replace(data.name, plain.name))
    (tmp_path / ".mqreplay.versions").unlink()
    check_runs(tmp_path, [plain])
