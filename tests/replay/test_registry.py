"""The steps of a day fit each other, and a decision is understood from few files: lists derived from the code."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import polars as pl
import pytest

from mqreplay.decisions import decision as decision_module
from mqreplay.decisions.decision import Step
from mqreplay.decisions.registry import DECISIONS
from mqreplay.engines.passes import PassRunner
from mqreplay.lake.contract import load_contracts
from mqreplay.replay.context import Frames as SmallTables
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DESCRIPTIONS, INSTANTS, DayRows
from mqreplay.replay.evidence_steps import FINDING_EVIDENCE
from mqreplay.replay.plan import PASSES, STEPS
from mqreplay.settings.sections import FindingSettings, ReplaySettings

LIB = Path(decision_module.__file__).parents[1]
TABLES = (*INSTANTS, *DESCRIPTIONS)
# The values that plan.py gives, with their types.
VALUES: dict[str, Any] = {
    **get_type_hints(FindingSettings),
    **get_type_hints(ReplaySettings),
    **dict.fromkeys([*TABLES, *(f"raw_{name}" for name in TABLES)], pl.DataFrame),
    "context": ReplayContext,
    "small": SmallTables,
    "rows": DayRows,
    "runner": PassRunner,
    "cluster": str,
    "day": dt.date,
    "since": dt.datetime,
    "begin": dt.datetime,
    "end": dt.datetime,
    "judged": pl.Expr,
    "starts": Mapping[dt.datetime, dt.datetime],
    "missing": Sequence[str],
    "recorded_until": dt.datetime | None,
    "recorded_end": dt.datetime,
    "clocks_reach": dt.timedelta | None,
    "clocks": pl.DataFrame,
    "skewed": list[str],
    "stopped": Collection[tuple[str, str]],
}


@cache
def hints(function: Any) -> dict[str, Any]:
    return get_type_hints(
        function.__init__ if isinstance(function, type) else function, sys.modules[function.__module__].__dict__
    )


def given(name: str) -> Any:
    """Return the type of a frame; None if no step gives it."""
    if name in STEPS:
        step = STEPS[name]
        if isinstance(step, Step):
            return step.function if isinstance(step.function, type) else hints(step.function)["return"]
        return pl.DataFrame if isinstance(step, tuple) else given(step)
    if name in VALUES:
        return VALUES[name]
    owner, _, attribute = name.rpartition(".")
    return hints_of_fields(given(owner)).get(attribute) if owner else None


def hints_of_fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind) if isinstance(kind, type) else {}


def fits(gives: Any, takes: Any) -> bool:
    """Return whether a value of one type may be one of the other, by the classes alone."""
    if isinstance(takes, TypeVar):
        return any(fits(gives, each) for each in takes.__constraints__)
    if get_origin(takes) in (Union, UnionType):
        options = get_args(gives) if get_origin(gives) in (Union, UnionType) else (gives,)
        return all(any(fits(option, each) for each in get_args(takes)) for option in options)
    one, other = get_origin(gives) or gives, get_origin(takes) or takes
    return (
        takes is Any or one is other or (isinstance(one, type) and isinstance(other, type) and issubclass(one, other))
    )


def parameters() -> Iterator[tuple[str, str, Any, Any]]:
    """Yield the name of each step and of the frame of each of its parameters, and the types of both."""
    for name, step in [*STEPS.items(), ("finding evidence", FINDING_EVIDENCE)]:
        if isinstance(step, Step):
            for each in signature(step.function).parameters.values():
                frame = step.renamed.get(each.name, each.name)
                if each.name != "self" and (each.default is Parameter.empty or given(frame) is not None):
                    yield name, frame, given(frame), hints(step.function)[each.name]


def test_each_parameter_gets_a_frame_of_its_type() -> None:
    wrong = [(name, frame, gives, takes) for name, frame, gives, takes in parameters() if not fits(gives, takes)]
    assert wrong == []


def test_renamed_frames_are_those_of_parameters() -> None:
    steps = [step for step in (*STEPS.values(), FINDING_EVIDENCE) if isinstance(step, Step)]
    assert [step for step in steps if not step.renamed.keys() <= signature(step.function).parameters.keys()] == []


def test_appended_frames_and_attributes_exist() -> None:
    named = [
        (name, part)
        for name, step in STEPS.items()
        if not isinstance(step, Step)
        for part in ([step] if isinstance(step, str) else step)
    ]
    assert [each for each in named if given(each[1]) is None] == []


def test_no_step_hides_behind_a_table_or_a_setting() -> None:
    # The large lists are read when they are needed; limits of groups are no frame.
    assert STEPS.keys() & VALUES.keys() == {"consumer_list", "cluster_info", "groups", "heartbeat", "raw_heartbeat"}


def test_each_gold_table_of_a_decision_has_a_contract_and_a_writer() -> None:
    written = {table for step in PASSES for table in step.gold} | {name for name in STEPS if name.startswith("gold.")}
    assert DECISIONS.keys() <= load_contracts().keys()
    assert DECISIONS.keys() <= written


MADE = '''
"""gold.made_decision: a decision of a test."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.decisions.decision import Decision, by_name


def made_decision(broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each poll."""
    return broker_runtime.select("day", "ts", judgement=pl.lit("agree"), reason=pl.lit("made"))


MADE_DECISION: Final = Decision(
    table="gold.made_decision",
    instant="ts",
    one="made decision",
    many="made decisions",
    phrases=("poll of {ts}",),
    rows=by_name(made_decision),
)
'''
PROGRAM = """
import mqreplay.decisions
mqreplay.decisions.__path__.append({folder!r})
import polars as pl
from mqreplay.replay.frames import Frames
from mqreplay.replay.plan import STEPS
from mqreplay.report.coverage import DECISION_NAMES
from mqreplay.report.evidence_words import WORDINGS
polls = pl.DataFrame({{"day": [1], "ts": [2]}})
rows = Frames({{"broker_runtime": polls}}, STEPS)["gold.made_decision"]
print(rows.height, DECISION_NAMES["gold.made_decision"], WORDINGS["gold.made_decision"].instant)
"""


def test_a_new_decision_is_one_module_beside_its_contract(tmp_path: Path) -> None:
    (tmp_path / "made_decision.py").write_text(MADE)
    program = PROGRAM.format(folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1 made decisions ts\n", "")


def wiring(table: str) -> list[str]:
    """Return the files through which the rows of a table come about: its module, and those that name it."""
    module = f"mqreplay.decisions.{table.removeprefix('gold.')}"
    files = [file for room in ("decisions", "engines", "evidence", "replay") for file in (LIB / room).rglob("*.py")]
    names = {file: set(re.findall(r'from (mqreplay[.\w]+) import|"(gold\.\w+)"', file.read_text())) for file in files}
    own = LIB / "decisions" / f"{module.rpartition('.')[2]}.py"
    return sorted(
        str(file.relative_to(LIB)) for file in files if file == own or names[file] & {(module, ""), ("", table)}
    )


@pytest.mark.parametrize(
    ("table", "most"),
    [("gold.replay_gap", 3), ("gold.flow_control", 1), ("gold.slave_copy", 1), ("gold.failover_step", 2)],
)
def test_the_rows_of_a_table_come_about_in_few_files(table: str, most: int) -> None:
    assert len(wiring(table)) <= most, wiring(table)
