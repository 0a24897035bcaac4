"""A process for each mutant: forked from one that holds all cases but has not loaded core, so that nothing is stale.

The child loads core with the change in it, as every test and runner then sees it, and meets its killers until the first
fails. What never ends is ended: each stage has its seconds of processor, and all of it its memory.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import pickle
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from mutation.killers import LIB, Stage

MEMORY = 2 << 30  # bytes that a mutant may ask for, beyond what its parent has
PATIENCE = 10  # a stage may last so many times its seconds, since other programs run too
SURVIVED, TIMEOUT, CRASH, BROKEN = "survived", "timeout", "crash", "broken"
_CODES = (SURVIVED, "vectors", "examples", "tests", BROKEN)


class _Loader(importlib.machinery.SourceFileLoader):
    """Gives the code compiled beforehand."""

    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        """That of the parent, or the mutant's."""
        return self.code


class Core(importlib.abc.MetaPathFinder):
    """Finds the modules of core and decode, compiled once in the parent; one of them may be changed."""

    def __init__(self) -> None:
        """All of them as they are on the disk."""
        self.sources = {
            f"mqreplay.{folder}.{path.stem}": path
            for folder in ("core", "decode")
            for path in sorted((LIB / folder).glob("*.py"))
            if path.stem != "__init__"
        }
        self.code = {
            name: compile(path.read_text(encoding="utf-8"), str(path), "exec") for name, path in self.sources.items()
        }

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Only those modules; all else is found as ever."""
        if fullname not in self.code:
            return None
        loader = _Loader(fullname, str(self.sources[fullname]))
        loader.code = self.code[fullname]
        return importlib.machinery.ModuleSpec(fullname, loader, origin=loader.path)


def start(core: Core, change: Callable[[], tuple[str, CodeType]] | None, stages: Sequence[Stage]) -> int:
    """The process id of a child that meets these stages. Core must not be loaded."""
    assert not any(name.startswith(("mqreplay.core.", "mqreplay.decode.")) for name in sys.modules), "core is loaded"
    pid = os.fork()
    if pid:
        return pid
    try:
        outcome = _live(core, change, stages)
    except BaseException:
        outcome = BROKEN
    os._exit(_CODES.index(outcome))


def outcome_of(status: int) -> str:
    """What killed a child, of the status that os.waitpid gives: a stage's name, SURVIVED, TIMEOUT, CRASH.

    BROKEN is no outcome: then the child never came to its killers.
    """
    if os.WIFSIGNALED(status):
        return TIMEOUT if os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM, signal.SIGKILL) else CRASH
    code = os.WEXITSTATUS(status)
    return _CODES[code] if code < len(_CODES) else BROKEN


def outcome_of_core(core: Core, stages: Sequence[Stage]) -> str:
    """That of the unchanged core."""
    _, status = os.waitpid(start(core, None, stages), 0)
    return outcome_of(status)


def in_child(work: Callable[[], Any]) -> Any:
    """What work gives, done in a child: so the parent stays without core. Goes through a file, as a pickle."""
    with tempfile.NamedTemporaryFile() as file:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                Path(file.name).write_bytes(pickle.dumps(work()))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            raise RuntimeError("the unchanged core fails its vectors")
        return pickle.loads(Path(file.name).read_bytes())


def _live(core: Core, change: Callable[[], tuple[str, CodeType]] | None, stages: Sequence[Stage]) -> str:
    _quiet()
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if _linux() else 0
    if size:
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    if change is not None:
        name, code = change()
        core.code[name] = code
    sys.meta_path.insert(0, core)
    for stage in stages:
        signal.setitimer(signal.ITIMER_PROF, stage.limit)
        signal.setitimer(signal.ITIMER_REAL, stage.limit * PATIENCE)
        try:
            passes = stage.passes()
        except BaseException:  # whatever a mutant raises, SystemExit too, is its end
            passes = False
        if not passes:
            return stage.name
    return SURVIVED


def _linux() -> bool:
    return Path("/proc/self/statm").exists()


def _quiet() -> None:
    """Nothing that a mutant's tests print is wanted."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
