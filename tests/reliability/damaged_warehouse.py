"""A warehouse that is damaged again and again: what readers and the next run answer, compared with the whole one."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from mqreplay.cli.command import BAD_INPUT, DONE, FAILED
from mqreplay.cli.command_line import main
from mqreplay.lake import data_checksums, delta_table, table_files, table_log
from mqreplay.lake.journal import Journal
from mqreplay.lake.warehouse import Warehouse
from reliability.recordings import Recordings, State
from reliability.table_rows import NOT_COMPARED, Tables, difference
from reliability.warehouse_damage import TABLE, Damage, copied, put_back

AT, GROUP = "2026-11-21T02:49:30", "meter-billing"
STEPS = ("ingest", "replay", "report")  # a night without its expectations, which take most of its time
WAY_ON = re.compile(
    r"put \S+ back|run nightly|give a new --warehouse|run it again|run `mqreplay maintain`|remove |move "
)
UNEXPECTED = re.compile(r"Traceback|panicked|did not expect", re.IGNORECASE)
LINK = re.compile(r"^Page: .*\n", re.MULTILINE)  # printed if the page has the finding
REMOVAL = re.compile(r"remove W/(\S+), and")  # what the line says to do
SAME, MENDED, REPAIRED = "no difference", "refused, then mended by a run", "judged again by a run"
REMOVED, PUT_BACK = "removed as advised, judged again", "refused until put back"
ENDS = (SAME, MENDED, REPAIRED, REMOVED, PUT_BACK, LIMIT := "stated limit")
LIMITS = {("journal", "removed")}  # docs/reliability.md: no run knows then that one was interrupted


class Answer(NamedTuple):
    """The answer of a command: its exit status, and what it printed, with no folder of the warehouse in it."""

    status: int
    out: str
    errors: str


@dataclass
class Counts:
    """How many damages of each kind ended in which way, and what failed."""

    ends: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the counts as a table of Markdown."""
        kinds = dict.fromkeys(kind for kind, _, _ in sorted(self.ends))
        rows = [["kind of file", "damages", *ENDS]]
        for kind in kinds:
            ends = Counter[str]()
            for (of, _, of_end), count in self.ends.items():
                ends[of_end] += count if of == kind else 0
            rows.append([kind, *(str(n) for n in (ends.total(), *(ends[end] for end in ENDS)))])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class DamagedWarehouse:
    """A warehouse of two nights, an older state of it, and one whose last run was interrupted."""

    def __init__(self, recordings: Recordings, folder: Path, steps: Sequence[str] = STEPS) -> None:
        """``steps`` are the commands of a night."""
        self._folder, self._steps = folder, steps
        self._settings = folder / "one.toml"
        self._settings.write_text("[local]\nprocesses = 1\n")
        self.whole, self.older, self.interrupted = folder / "whole", folder / "older", folder / "interrupted"
        with recordings.placed(State(0)) as night:
            self._night(self.whole, night)
        self._asked(["maintain"], self.whole)
        shutil.copytree(self.whole, self.older)
        shutil.copytree(self.older, folder / "copied")
        self.recording = folder / "night"
        with recordings.placed(State(1)) as night:
            shutil.copytree(night, self.recording)
        self._night(self.whole, str(self.recording))
        copied(self.whole, self.interrupted)
        _interrupt(self.interrupted)
        finding = ["sql", "SELECT finding_id FROM gold.finding LIMIT 1", "--format", "csv"]
        self._finding = self._asked(finding, self.whole).out.split()[-1]
        self._answers: dict[tuple[bool, tuple[str, ...]], Answer] = {}

    def _night(self, root: Path, recording: str) -> None:
        for answer in self._rerun(root, recording):
            assert answer.status == DONE, answer

    def _rerun(self, root: Path, recording: str) -> Iterator[Answer]:
        for step in self._steps:
            named = [recording] if step in ("ingest", "nightly") else []
            yield self._asked([step, *named, "--conf", str(self._settings), "--engine", "local"], root)

    def run(self, damage: Damage, counts: Counts) -> None:
        """Inflict one damage, if a file can have it, and judge what came of it."""
        whole = self.interrupted if damage.kind == "journal" else self.whole
        root = copied(whole, self._folder / f"case-{damage.number}")
        try:
            place = damage.place(root)
            if place is None or not damage.inflict(root, place, self.older):
                return
            end, wrong = self._judged(damage, place, root, whole)
            counts.ends[damage.kind, damage.what, end] += 1
            counts.failures += [f"{damage}, {place}: {what}" for what in wrong]
        finally:
            shutil.rmtree(root)

    def _judged(self, damage: Damage, place: str, root: Path, whole: Path) -> tuple[str, list[str]]:
        table = TABLE.match(place)
        name = f"{table[1]}.{table[2]}" if table else "gold.finding"
        words = (name, table[0]) if table else (Path(place).name,)
        first, *others = self._readers(damage, name)
        wrong: list[str] = []
        is_refused = False
        for command in (first, *others):
            answer = self._asked(command, root)
            if not self._is_right(answer, command, whole):
                is_refused = True
                wrong += [f"{command}: {fault}" for fault in refusal_faults(answer, words)]
        if Random(damage.seed).random() < 0.2:
            answer = self._asked(["maintain"], root)
            wrong += [f"maintain: {fault}" for fault in refusal_faults(answer, words) if answer.status != DONE]
        is_right, said = self._run_again(root, name, first)
        end = REPAIRED if "judged again" in said.errors else MENDED if is_refused else SAME
        if not is_right:
            wrong += [f"rerun: {fault}" for fault in refusal_faults(said, words)]
            if removed := REMOVAL.search(said.errors):
                end = REMOVED
                shutil.rmtree(root / removed[1])
            else:
                end = PUT_BACK
                put_back(root, place, whole)
            is_right, said = self._run_again(root, name, first)
            if not is_right:
                wrong.append(f"a rerun after {place} was {end}: {said}")
                return end, wrong
        if found := self._difference(root, name):
            if (damage.kind, damage.what) in LIMITS:
                return LIMIT, wrong
            wrong.append(f"other tables after a rerun with status 0: {found[:600]}")
        return end, wrong

    def _is_right(self, answer: Answer, command: tuple[str, ...], whole: Path) -> bool:
        key = whole == self.whole, command
        if key not in self._answers:
            self._answers[key] = self._asked(command, whole)
            assert self._answers[key].status in (DONE, FAILED), self._answers[key]
        wanted = self._answers[key]
        return (answer.status, answer.out) == (wanted.status, wanted.out) and not UNEXPECTED.search(answer.errors)

    def _run_again(self, root: Path, name: str, reader: tuple[str, ...]) -> tuple[bool, Answer]:
        """Run the night again, then the reader. Return whether both are right, and what they said."""
        said, last = "", Answer(DONE, "", "")
        for last in self._steps_after(root, name):
            said += last.errors
            if last.status != DONE or UNEXPECTED.search(said):
                return False, last._replace(errors=said)
        last = self._asked(reader, root)
        return self._is_right(last, reader, self.whole), last._replace(errors=said + last.errors)

    def _steps_after(self, root: Path, name: str) -> Iterator[Answer]:
        """Run the night. Tables of gold are made again by replay alone, so that nightly need not validate them."""
        if self._is_judged_alone(name):
            yield self._asked(["replay", "--conf", str(self._settings), "--engine", "local"], root)
        else:
            yield from self._rerun(root, str(self.recording))

    def _is_judged_alone(self, name: str) -> bool:
        return name.startswith("gold.") and name != "gold.validation_result"

    def _difference(self, root: Path, name: str) -> str:
        """Return how the rows of tables differ from those of the whole warehouse; tables of the same files do not."""
        names = {name for name in Warehouse(str(root)).contracts if not _same_files(root, self.whole, name)}
        if self._is_judged_alone(name):
            names -= {"bronze.step"}  # validate is to be done
        return difference(_rows(root, names), _rows(self.whole, names))

    def _readers(self, damage: Damage, table: str) -> Iterator[tuple[str, ...]]:
        what = "count(*)" if table in NOT_COMPARED else "*"
        yield ("sql", f"SELECT {what} FROM {table} ORDER BY ALL", "--format", "csv")
        others = [
            ("findings",),
            ("at", AT),
            ("at", AT, "--json"),
            ("explain", self._finding),
            ("ready", "rmq-south"),
            ("tables",),
            ("advise", GROUP),
            ("whatif", "--lose-master", "rmq-south"),
            ("maintain", "--dry-run"),
        ]
        yield from Random(damage.seed).sample(others, 2)

    def _asked(self, command: Sequence[str], root: Path) -> Answer:
        """Run a command as another process does, which knows no table yet."""
        table_files._snapshot.cache_clear()
        delta_table._kept.clear()
        data_checksums._checked.clear()
        table_log._latest.clear()
        status: int = BAD_INPUT
        with _outputs() as streams:
            try:
                status = main([*command, "--warehouse", str(root)])
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else BAD_INPUT
            sys.stdout.flush()
            sys.stderr.flush()
        out, errors = (LINK.sub("", stream.replace(str(root), "W")) for stream in streams)
        return Answer(status, out, errors)


def refusal_faults(answer: Answer, words: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with a refusal: it is one line that names the table or the file, and says how to go on."""
    lines = [line for line in answer.errors.splitlines() if line.startswith("mqreplay: ")]
    if answer.status == DONE:
        yield f"another answer with status 0: {answer.out[:300]!r} {answer.errors[-300:]!r}"
    elif UNEXPECTED.search(answer.errors):
        yield f"status {answer.status}, unexpected: {answer.errors[-600:]!r}"
    elif answer.status != BAD_INPUT or len(lines) != 1:
        yield f"status {answer.status}, {len(lines)} lines: {answer.errors[-600:]!r}"
    elif not any(word in lines[0] for word in words):
        yield f"the line names none of {words}: {lines[0]!r}"
    elif not WAY_ON.search(lines[0]):
        yield f"the line does not say how to go on: {lines[0]!r}"


def _interrupt(root: Path) -> None:
    """Leave a journal: the last run replaced the brokers, and died before its step was complete."""
    warehouse = Warehouse(str(root))
    rows = warehouse.read("silver.broker").collect()
    with suppress(KeyboardInterrupt), Journal(warehouse).transaction("ingest"):
        written = warehouse.writer("silver.broker").write(rows.to_arrow().to_batches())
        warehouse.commit_files("silver.broker", written, None)
        raise KeyboardInterrupt


def _rows(root: Path, names: Iterable[str]) -> Tables:
    warehouse, rows = Warehouse(str(root)), Tables()
    for name in names:
        frame = warehouse.read(name).drop(NOT_COMPARED.get(name, ()), strict=False).collect()
        rows[name] = Counter(map(str, frame.iter_rows()))
    return {name: found for name, found in rows.items() if found}


def _same_files(root: Path, whole: Path, name: str) -> bool:
    """Return whether the table has the same files in both warehouses."""
    folders = [base / name.replace(".", "/") for base in (root, whole)]
    ours, others = ({path.relative_to(at): path for path in at.rglob("*") if path.is_file()} for at in folders)
    return ours.keys() == others.keys() and all(filecmp.cmp(path, others[key], False) for key, path in ours.items())


@contextmanager
def _outputs() -> Iterator[list[str]]:
    """Take what this process and its libraries write to stdout and stderr."""
    found: list[str] = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        before = [os.dup(number) for number in (1, 2)]
        streams, kept = (sys.stdout, sys.stderr), [os.fdopen(os.dup(f.fileno()), "w") for f in (out, errors)]
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(out.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.stdout, sys.stderr = kept
        try:
            yield found
        finally:
            for stream in kept:
                stream.close()
            sys.stdout, sys.stderr = streams
            for number, old in zip((1, 2), before, strict=True):
                os.dup2(old, number)
                os.close(old)
            for file in (out, errors):
                file.seek(0)
                found.append(file.read().decode("utf-8", "replace"))
