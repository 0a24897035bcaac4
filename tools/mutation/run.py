"""Mutation testing of core: `python tools/mutation/run.py` runs it all and writes docs/development/mutation.md.

Exit status 1 if fewer than 90 % of the mutants are killed. A run of some modules, or of the survivors alone, leaves the
rest as the last run found it (build/mutation.json), and makes the page of both.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "lib"), str(HERE.parent), str(ROOT / "tests")]

# Loaded once, for all children.
import hypothesis.strategies  # noqa: E402
import lark  # noqa: E402, F401
import pytest  # noqa: E402, F401

from mutation import child, killers, page  # noqa: E402
from mutation.mutants import Key, Mutant, mutants  # noqa: E402
from vectors.catalogue import CORE  # noqa: E402

ENOUGH = 90.0  # percent
SEED = 20_260_101


def main() -> int:
    """As the command line says."""
    args = _arguments()
    every = {path.stem: mutants(path) for path in sorted(CORE.glob("[!_]*.py"))}  # __init__ only names them
    all_keys = [mutant.key for these in every.values() for mutant in these]
    known = {key: outcome for key, outcome in page.load().items() if key in set(all_keys)}
    if args.page:
        return _write(known, all_keys)
    chosen = [mutant for module, these in every.items() if not args.module or module in args.module for mutant in these]
    if args.survivors:
        chosen = [mutant for mutant in chosen if known.get(mutant.key, child.SURVIVED) == child.SURVIVED]
    if args.share < 1:
        chosen = random.Random(args.seed).sample(chosen, round(len(chosen) * args.share))
    outcomes: dict[Key, str] = {}
    for key, outcome in _outcomes(chosen, args.jobs):
        outcomes[key] = outcome
        if args.share == 1 and len(outcomes) % 100 == 0:
            page.save(known | outcomes)
    print(page.total(outcomes))
    if args.share < 1:
        print(*(page.line(key) for key, outcome in outcomes.items() if outcome == child.SURVIVED), sep="\n")
        return 0
    known |= outcomes
    page.save(known)
    return _write(known, all_keys)


def _write(known: dict[Key, str], all_keys: Sequence[Key]) -> int:
    missing = len(set(all_keys) - set(known))
    if missing:
        print(f"no page: {missing} mutants were not run yet", file=sys.stderr)
        return 1
    outcomes = {key: known[key] for key in all_keys}
    (ROOT / "docs" / "development" / "mutation.md").write_text(page.render(outcomes), encoding="utf-8")
    print(f"docs/development/mutation.md: {page.total(outcomes)}")
    return 0 if page.percent(outcomes) >= ENOUGH else 1


def _outcomes(chosen: Sequence[Mutant], jobs: int) -> Iterator[tuple[Key, str]]:
    """What became of each, as it becomes known."""
    # The same examples each time, however busy the machine is.
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    hypothesis.settings.load_profile("mutation")
    killers.warm_up()
    core = child.Core()
    cases = killers.read_vectors()
    plan = killers.Plan(cases, child.in_child(lambda: killers.cases_through(cases)))
    untouched = child.outcome_of_core(core, killers.everything(plan))
    if untouched != child.SURVIVED:
        raise SystemExit(f"the unchanged core does not pass its {untouched}")
    began, done = time.monotonic(), 0
    running: dict[int, Mutant] = {}
    todo = iter(chosen)
    while True:
        for mutant in todo:
            running[_start(core, plan, mutant)] = mutant
            if len(running) >= jobs:
                break
        if not running:
            return
        pid, status = os.waitpid(-1, 0)
        mutant = running.pop(pid)
        outcome = child.outcome_of(status)
        if outcome == child.BROKEN:
            raise SystemExit(f"could not be tried: {page.line(mutant.key)}")
        done += 1
        if done % 100 == 0:
            print(f"{done} of {len(chosen)}, {time.monotonic() - began:.0f} s", file=sys.stderr)
        yield mutant.key, outcome


def _start(core: child.Core, plan: killers.Plan, mutant: Mutant) -> int:
    name = f"mqreplay.core.{mutant.key.module}"
    path = core.sources[name]

    def change() -> tuple[str, CodeType]:
        return name, mutant.code(path.read_text(encoding="utf-8"), str(path))

    return child.start(core, change, plan.stages(mutant.key.module, mutant.key.place))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation testing of core; writes docs/development/mutation.md.")
    parser.add_argument("--module", action="append", metavar="NAME", help="only this module of core (may be repeated)")
    parser.add_argument("--survivors", action="store_true", help="only what survived the last run, and what is new")
    parser.add_argument("--share", type=float, default=1.0, metavar="PART", help="a sample, as 0.1: printed, not kept")
    parser.add_argument("--seed", type=int, default=SEED, help="draws the sample")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time")
    parser.add_argument("--page", action="store_true", help="only the page, of the last run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
