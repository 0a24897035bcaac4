"""The tables depend only on the files that the recordings hold now, whatever came before and in whatever order.

Each seed is one story: files come late, change, are renamed and vanish, folders move, and after every few operations an
ingest runs. Each is compared with a plain model of the present files, and the last one with a new warehouse of them.
A seed gives the same story each time: `pytest tests/reliability/test_any_order.py -k "seed-17]"`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, assume, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mqreplay.settings import load_settings
from reliability import recording_folders as made
from reliability.model_rows import tables_of, without_copies
from reliability.plain_model import TABLES, Row, day_of, differences, expected_tables, kind_of
from reliability.recording_folders import BROKERS, KINDS, LINES, MOMENTS, STATES, Recordings
from tests_shared import files_of, run

SHORT, LONG = 1, 200
OPERATIONS_PER_RUN = 4
RUNS = {"short": 4, "long": 6}
CLUSTER = "c"
# Of so few rows, all may be refused.
SETTINGS = dataclasses.replace(load_settings(), ingest=dataclasses.replace(load_settings().ingest, refused_share=1.0))
ANY = st.integers(0, 999)  # picks one of what is there
NUMBERS = st.lists(st.integers(0, LINES - 1), min_size=0, max_size=5)
KIND, BROKER = st.sampled_from(KINDS), st.sampled_from(BROKERS)
PART, MOMENT, STATE = st.integers(1, 3), st.integers(0, MOMENTS - 1), st.integers(0, STATES - 1)
SOMETIMES = st.sampled_from([False, False, False, True])


class AnyOrder(RuleBasedStateMachine):
    """Operations on the files of up to three recordings of one cluster, and ingests into one warehouse."""

    folder: ClassVar[Path]
    most_runs: ClassVar[int]
    compares_with_new: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        # Hypothesis tells a story again if it fails.
        self.place = self.folder / str(len(list(self.folder.iterdir())))
        self.place.mkdir()
        self.recordings = Recordings(self.place)
        self.warehouse = str(self.place / "warehouse")
        self.operations = self.runs = 0
        self.ended = True

    @initialize(chance=st.integers(0, 2**30))
    def begin(self, chance: int) -> None:
        assume(chance)  # Hypothesis tries the simplest story first, which is the same for each seed
        name = self.recordings.add()
        self.recordings.put((name, "pull_log.0001.jsonl"), made.lines("pull_log", [0, 1, 2]), "lines 0 1 2")
        for broker in BROKERS:
            path = made.snapshot_path(broker, MOMENTS // 2, 0, "consumerOffset.json")
            self.recordings.put((name, path), made.offsets(1), "offsets 1")
        self.ended = False

    def _recording(self, which: int) -> str:
        return self.recordings.names[which % len(self.recordings.names)]

    def _one_of(self, places: list[made.Place], which: int) -> made.Place | None:
        self.operations += 1
        return places[which % len(places)] if places else None

    @rule(which=ANY, kind=KIND, part=PART, numbers=NUMBERS, broken=SOMETIMES, zipped=SOMETIMES)
    def write_lines(self, which: int, kind: str, part: int, numbers: list[int], broken: bool, zipped: bool) -> None:
        """A new part, or a corrected one in the same place."""
        place = self._recording(which), f"{kind}.{part:04}.jsonl{'.gz' if zipped else ''}"
        what = f"lines {' '.join(map(str, numbers))}{' and a broken one' if broken else ''}"
        self.recordings.put(place, made.lines(kind, numbers, broken=broken, zipped=zipped), what)
        self.operations += 1

    @rule(which=ANY, other=ANY, recording=ANY, part=PART)
    def copy_lines(self, which: int, other: int, recording: int, part: int) -> None:
        """The bytes of a file in another place, in that of another file where one lies there."""
        if place := self._one_of(self.recordings.line_files(), which):
            zipped = ".gz" if place[1].endswith(".gz") else ""
            to = self._recording(recording), f"{kind_of(place[1])}.{part:04}.jsonl{zipped}"
            if to != place:
                self.recordings.put(to, self.recordings.files[place], f"the bytes of {'/'.join(place)}")

    @rule(which=ANY, at=st.integers(0, 5), part=PART)
    def split_lines(self, which: int, at: int, part: int) -> None:
        """A file keeps its first lines, another is given the rest."""
        if (place := self._one_of(self.recordings.line_files(), which)) and not place[1].endswith(".gz"):
            all_lines = self.recordings.files[place].splitlines(keepends=True)
            rest = place[0], f"{kind_of(place[1])}.{part + 3:04}.jsonl"
            if rest != place:
                self.recordings.put(rest, b"".join(all_lines[at:]), f"{'/'.join(place)} from line {at + 1} on")
                self.recordings.put(place, b"".join(all_lines[:at]), f"its first {at} lines")

    @rule(which=ANY, percent=st.integers(0, 99))
    def truncate_lines(self, which: int, percent: int) -> None:
        if (place := self._one_of(self.recordings.line_files(), which)) and not place[1].endswith(".gz"):
            self.recordings.put(place, made.torn(self.recordings.files[place], percent), f"cut to {percent} %")

    @rule(which=ANY, earlier=ANY)
    def restore(self, which: int, earlier: int) -> None:
        """A place is given what it held before, even if no file lies there now."""
        known = sorted(self.recordings.earlier)
        place = self._one_of([p for p in known if p[0] in self.recordings.names], which)
        if place and not self.recordings.elsewhere(place):
            contents = self.recordings.earlier[place]
            self.recordings.put(place, contents[earlier % len(contents)], "an earlier content")

    @rule(which=ANY, part=st.integers(7, 9))
    def rename_lines(self, which: int, part: int) -> None:
        if place := self._one_of(self.recordings.line_files(), which):
            path = f"{kind_of(place[1])}.{part:04}.jsonl{'.gz' if place[1].endswith('.gz') else ''}"
            if (place[0], path) not in self.recordings.files:
                self.recordings.rename(place, path)

    @rule(which=ANY)
    def delete(self, which: int) -> None:
        places = self.recordings.line_files() + self.recordings.snapshots()
        place = self._one_of(places, which)
        # A folder without a file to replay is no recording.
        if place and any(p[0] == place[0] for p in places if p != place):
            self.recordings.remove(place)

    @rule(which=ANY, broker=BROKER, moment=MOMENT, state=STATE, cut=SOMETIMES, bak=SOMETIMES)
    def write_offsets(self, which: int, broker: str, moment: int, state: int, cut: bool, bak: bool) -> None:
        """A consumerOffset.json, late or not; torn, or its .bak."""
        data = made.torn(made.offsets(state), 15 * state) if cut else made.offsets(state)
        what = f"offsets {state}{', torn' if cut else ''}"
        self._snapshot(which, broker, moment, f"consumerOffset.json{'.bak' if bak else ''}", data, what)

    @rule(which=ANY, broker=BROKER, moment=MOMENT, state=STATE)
    def write_topics(self, which: int, broker: str, moment: int, state: int) -> None:
        self._snapshot(which, broker, moment, "topics.json", made.topics(state), f"topics {state}")

    def _snapshot(self, which: int, broker: str, moment: int, file_name: str, data: bytes, what: str) -> None:
        name = self._recording(which)
        place = name, made.snapshot_path(broker, moment, self.recordings.names.index(name), file_name)
        self.operations += 1
        if not self.recordings.elsewhere(place):  # two contents of one moment: nobody knows which is right
            self.recordings.put(place, data, what)

    @precondition(lambda self: len(self.recordings.names) > 1)
    @rule(which=ANY, recording=ANY)
    def copy_snapshot(self, which: int, recording: int) -> None:
        """The same snapshot lies in two recordings."""
        if place := self._one_of(self.recordings.snapshots(), which):
            to = self._recording(recording), place[1]
            if to not in self.recordings.files:
                self.recordings.put(to, self.recordings.files[place], f"a copy of {place[0]}'s")

    @precondition(lambda self: 0 < len(self.recordings.names) < 3)
    @rule(numbers=NUMBERS, state=STATE)
    def add_recording(self, numbers: list[int], state: int) -> None:
        """Another recording of the cluster; the second is of the day before."""
        name, index = self.recordings.add(), len(self.recordings.names) - 1
        self.recordings.put((name, "pull_log.jsonl"), made.lines("pull_log", numbers), f"lines {numbers}")
        path = made.snapshot_path(BROKERS[0], index, index, "consumerOffset.json")
        self.recordings.put((name, path), made.offsets(state), f"offsets {state}")
        self.operations += 1

    @precondition(lambda self: self.recordings.given)
    @rule(which=ANY)
    def move_recording(self, which: int) -> None:
        """A run knows a moved recording by its files: none of them changes before or after in the same run."""
        name = self._recording(which)
        if name in self.recordings.given - self.recordings.changed:
            self.recordings.move(name)
            self._ingest(list(self.recordings.names))

    @precondition(lambda self: self.operations > 1 and len(self.recordings.names) > 1)
    @rule(which=ANY)
    def ingest_one(self, which: int) -> None:
        """A run is given one recording, while the others are as the last run saw them, or were never given."""
        name = self._recording(which)
        if not (self.recordings.changed & self.recordings.given) - {name}:
            self._ingest([name])

    @invariant()
    def ingest_all(self) -> None:
        if self.operations >= OPERATIONS_PER_RUN and self.runs < self.most_runs:
            self._ingest(list(self.recordings.names))

    def teardown(self) -> None:
        if self.ended:
            return
        self._ingest(list(self.recordings.names))
        before = files_of(self.warehouse)
        for _ in range(2):
            self._run(self.warehouse, self.recordings.names)
        assert files_of(self.warehouse) == before, self._told(["the same input again writes files"])
        if self.compares_with_new:
            self._run(new := str(self.place / "new"), self.recordings.names)
            found, fresh = tables_of(self.warehouse, CLUSTER), tables_of(new, CLUSTER)
            self._compare(found, fresh, "not as in a new warehouse")

    def _ingest(self, names: list[str]) -> None:
        self.operations, self.runs, self.ended = 0, self.runs + 1, True
        self.recordings.log.append(f"ingest {' '.join(names)}")
        self._run(self.warehouse, names)
        self.recordings.ran(names)
        expected = expected_tables(self.recordings.known_files())
        found = tables_of(self.warehouse, CLUSTER)
        if set(names) != self.recordings.given:
            # Which of two equal files counts as read is settled when both recordings are given.
            found, expected = without_copies(found), without_copies(expected)
        self._compare(found, expected, "not as the files say")
        self.ended = False

    def _run(self, warehouse: str, names: list[str]) -> None:
        folders = [str(self.place / name) for name in names]
        try:
            run("ingest", warehouse, SETTINGS, lambda text: None, recordings=folders, cluster=CLUSTER)
        except Exception as error:
            self.ended = True
            first = next(iter(str(error).splitlines()), "")
            raise AssertionError(self._told([f"the run fails: {type(error).__name__}: {first}"])) from error

    def _compare(self, found: dict[str, list[Row]], expected: dict[str, list[Row]], what: str) -> None:
        wrong = {name: differences(found[name], expected[name]) for name in TABLES}
        told = [f"{name} is {what}:\n    " + "\n    ".join(rows) for name, rows in wrong.items() if rows]
        self.ended = self.ended or bool(told)
        assert not told, self._told(told)

    def _told(self, wrong: list[str]) -> str:
        return "\n".join(["after these operations:", *(f"  {text}" for text in self.recordings.log), *wrong])


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, id=f"seed-{n}", marks=[pytest.mark.long] if n >= SHORT else []) for n in range(LONG)],
)
def test_the_tables_depend_only_on_the_present_files(tmp_path, number):
    runs = RUNS["short" if number < SHORT else "long"]
    told = {"folder": tmp_path, "most_runs": runs, "compares_with_new": number % 4 == 0}
    story = seed(number)(type("Story", (AnyOrder,), told))
    run_state_machine_as_test(
        story,
        settings=settings(
            max_examples=1,
            stateful_step_count=OPERATIONS_PER_RUN * (runs - 1) + 2,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_model_is_not_blind() -> None:
    """A row too much, too few or changed is a difference."""
    row = {"record_id": "a", "ts": 1}
    assert differences([row], [row]) == []
    for found in ([], [row, row], [row | {"ts": 2}]):
        assert differences(found, [row])
    assert day_of(made.MIDNIGHT - 1) != day_of(made.MIDNIGHT)
