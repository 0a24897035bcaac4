"""Many hostile inputs given to one function in worker processes: which of them it does not survive, and why.

An input fails if anything but an error of ours comes out, if it takes more than MOST_SECONDS of processor time, if it
takes more than MOST_MEMORY beside what the process had, or if the process dies of it.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from mqreplay.words.errors import MqreplayError
from reliability.fuzz_mutations import mutated

MOST_SECONDS = 1.0
MOST_MEMORY = 256 * 1024 * 1024
MOST_BYTES = 64 * 1024  # of an input, unless its target says otherwise
STUCK_SECONDS = 120  # without a new input a worker is killed: it hangs where no signal is looked at
SHOWN = 3  # failures of a target, after which the rest of it is passed over
_PLACE = struct.Struct("<q")  # the number of the input that a worker is at


@dataclass(frozen=True)
class Target:
    """What is fuzzed: whole inputs, the function that takes one, and which errors it may raise."""

    name: str
    seeds: tuple[bytes, ...]
    run: Callable[[bytes], object]
    allowed: tuple[type[Exception], ...] = (MqreplayError,)
    most_bytes: int = MOST_BYTES

    def input(self, seed: int, number: int) -> bytes:
        """The input of that number; the first ones are the seeds as they are."""
        if number < len(self.seeds):
            return self.seeds[number]
        return mutated(self.seeds, Random(f"{self.name} {seed} {number}"), self.most_bytes)


@dataclass
class Report:
    """How many inputs each target was given, and what failed."""

    inputs: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


class TooSlow(BaseException):
    """Not an Exception, so that nothing under test catches it."""


def fuzz(
    targets: Iterable[Target], inputs: int, seed: int, processes: int = 1, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Give each target so many inputs, dealt out to so many processes."""
    report = Report()
    for target in targets:
        began = time.monotonic()
        failures = _fuzz_one(target, inputs, seed, processes)
        report.inputs[target.name] = inputs
        report.failures += failures
        say(f"{target.name}: {inputs:,} inputs, {len(failures)} failed, {time.monotonic() - began:.0f} s")
    return report


def _fuzz_one(target: Target, inputs: int, seed: int, processes: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        workers = [_Worker(target, range(k, inputs, processes), seed, Path(folder, str(k))) for k in range(processes)]
        while sum(worker.is_working() for worker in workers):
            time.sleep(0.02)
        return [failure for worker in workers for failure in worker.failures()][:SHOWN]


class _Worker:
    """A process that takes some of a target's inputs, and another one behind the input that killed it."""

    def __init__(self, target: Target, numbers: range, seed: int, path: Path) -> None:
        self.target, self.numbers, self.seed, self.path = target, numbers, seed, path
        self.place = mmap.mmap(-1, _PLACE.size)
        self.died: list[str] = []
        self._start(numbers)

    def _start(self, numbers: range) -> None:
        self.seen, self.since = -1, time.monotonic()
        self.process = os.fork() if numbers else 0
        if numbers and not self.process:
            try:
                _work(self.target, numbers, self.seed, self.place, self.path)
                os._exit(0)
            except BaseException as error:
                print(f"the worker itself failed: {error!r}", file=sys.stderr)
                os._exit(3)

    def is_working(self) -> bool:
        """Whether it still works; looks after it."""
        if not self.process:
            return False
        done, status = os.waitpid(self.process, os.WNOHANG)
        at = _PLACE.unpack(self.place[:])[0]
        if not done:
            if at != self.seen:
                self.seen, self.since = at, time.monotonic()
            elif time.monotonic() - self.since > STUCK_SECONDS:
                os.kill(self.process, signal.SIGKILL)
            return True
        self.process = 0
        if status:
            self.died.append(_told(self.target, self.seed, at, f"the process died of it, wait status {status}"))
            if len(self.died) < SHOWN:
                self._start(range(at + self.numbers.step, self.numbers.stop, self.numbers.step))
        return bool(self.process)

    def failures(self) -> list[str]:
        """What failed."""
        told = self.path.read_text().splitlines() if self.path.exists() else []
        return self.died + [json.loads(line) for line in told]


def _work(target: Target, numbers: range, seed: int, place: mmap.mmap, path: Path) -> None:
    signal.signal(signal.SIGPROF, _too_slow)
    for one in target.seeds[:20]:  # loads what is loaded once
        _outcome(target, one)
    limit = _virtual_memory() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    failed = 0
    with open(path, "a") as failures:
        for number in numbers:
            place[:] = _PLACE.pack(number)
            trouble = _outcome(target, target.input(seed, number))
            if trouble is not None:
                failures.write(json.dumps(_told(target, seed, number, trouble)) + "\n")
                failures.flush()
                failed += 1
                if failed == SHOWN:
                    return


def _outcome(target: Target, data: bytes) -> str | None:
    """Why the input failed."""
    try:
        try:
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            target.run(data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except target.allowed:
        return None
    except TooSlow:
        return f"more than {MOST_SECONDS:g} s"
    except MemoryError:
        return f"more than {MOST_MEMORY // 2**20} MiB"
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        at = "" if trace is None else f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        return f"{type(error).__name__}: {str(error)[:200]}{at}"
    return None


def _too_slow(*_: object) -> None:
    raise TooSlow


def _virtual_memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _told(target: Target, seed: int, number: int, trouble: str) -> str:
    data = target.input(seed, number)
    return f"{target.name}, seed {seed}, input {number}: {trouble}; {len(data)} bytes: {data[:300]!r}"
