"""The outcomes of a run, kept in build/mutation.json; docs/development/mutation.md from them and judged.toml."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

from mutation.child import SURVIVED, TIMEOUT
from mutation.mutants import Key

HERE = Path(__file__).parent
KEPT = HERE.parents[1] / "build" / "mutation.json"
VERDICTS = ("equivalent", "accepted")
HEAD = """# Mutation testing of core

Made by `make mutate` from lib/mqreplay/core and its tests; do not edit. A mutant is core with one small change: a
boundary one off, a comparison turned, a constant another, an operand or a statement lost (tools/mutation/operators.py
has them all). It is killed when a vector case, an example in a docstring, or a test of tests/core or tests/decode fails
because of it, or when it no longer ends or crashes Python. What no check notices survives, and is listed here with a
judgement: *equivalent*, since no answer of core can tell it from the original, or *accepted*, and why. Left alone are
docstrings, annotations, decorators, imports, the bodies of protocols, and the grammar of SQL92.
"""


class Judgement(NamedTuple):
    """Of a survivor: ``verdict`` is one of VERDICTS."""

    verdict: str
    why: str


Judged = Mapping[tuple[str, str, str, str], Judgement]


def load() -> dict[Key, str]:
    """The outcome of each mutant in the last run; none if there was none."""
    if not KEPT.exists():
        return {}
    return {Key(*key): outcome for key, outcome in json.loads(KEPT.read_text(encoding="utf-8"))}


def save(outcomes: Mapping[Key, str]) -> None:
    """For the next run."""
    KEPT.parent.mkdir(exist_ok=True)
    rows = [[astuple(key), outcome] for key, outcome in outcomes.items()]
    KEPT.write_text(json.dumps(rows), encoding="utf-8")


def judged(text: str) -> dict[tuple[str, str, str, str], Judgement]:
    """The judgements of judged.toml; one counts for all mutants told by the same words."""
    found = {}
    for each in tomllib.loads(text).get("survivor", []):
        if each["verdict"] not in VERDICTS:
            raise ValueError(f"{each['verdict']!r} is none of {VERDICTS}")
        module, _, place = each["place"].partition(":")
        found[module, place, each["before"], each["after"]] = Judgement(each["verdict"], each["why"])
    return found


def percent(outcomes: Mapping[Key, str]) -> float:
    """How many of a hundred are killed."""
    return 100 * sum(outcome != SURVIVED for outcome in outcomes.values()) / max(1, len(outcomes))


def total(outcomes: Mapping[Key, str]) -> str:
    """A run on one line."""
    survived = sum(outcome == SURVIVED for outcome in outcomes.values())
    killed = len(outcomes) - survived
    return f"{len(outcomes)} mutants, {killed} killed, {survived} survived: {percent(outcomes):.1f} %"


def line(key: Key) -> str:
    """A mutant on one line."""
    return f"{key.module}:{key.place}: {key.before} -> {key.after}"


def render(outcomes: Mapping[Key, str], judgements: Judged | None = None) -> str:
    """The page."""
    if judgements is None:
        judgements = judged((HERE / "judged.toml").read_text(encoding="utf-8"))
    survivors = [key for key, outcome in outcomes.items() if outcome == SURVIVED]
    parts = [HEAD, _figures(outcomes, survivors, judgements), _table(outcomes)]
    if survivors:
        parts.append("## Survivors\n")
    module = None
    for key in survivors:
        if key.module != module:
            module = key.module
            parts.append(f"### {module}\n")
        parts.append(_entry(key, judgements.get(_words(key))))
    gone = sorted(set(judgements) - {_words(key) for key in survivors})
    if gone:
        parts.append("## Judged, and not among the survivors\n")
        parts += [_entry(Key(*words), judgements[words]) for words in gone]
    return "\n".join(parts)


def _figures(outcomes: Mapping[Key, str], survivors: Iterable[Key], judgements: Judged) -> str:
    by = Counter(outcomes.values())
    verdicts = Counter(
        found.verdict if found else "not judged" for found in map(judgements.get, map(_words, survivors))
    )
    killers = ", ".join(f"{by[name]} by {name}" for name in ("vectors", "examples", "tests"))
    ended = f"{by[TIMEOUT]} did not end" + (f", {by['crash']} crashed" if by["crash"] else "")
    told = ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items())) or "none"
    return f"{total(outcomes)}. Killed {killers}; {ended}. Survivors: {told}.\n"


def _table(outcomes: Mapping[Key, str]) -> str:
    rows = ["| module | mutants | killed | survived | percent killed |", "|---|---:|---:|---:|---:|"]
    modules: dict[str, dict[Key, str]] = {}
    for key, outcome in outcomes.items():
        modules.setdefault(key.module, {})[key] = outcome
    for name, these in [*sorted(modules.items()), ("all", dict(outcomes))]:
        survived = sum(outcome == SURVIVED for outcome in these.values())
        rows.append(f"| {name} | {len(these)} | {len(these) - survived} | {survived} | {percent(these):.1f} |")
    return "\n".join(rows) + "\n"


def _entry(key: Key, judgement: Judgement | None) -> str:
    verdict = f"{judgement.verdict}: {judgement.why}" if judgement else "not judged"
    return f"- {key.place.strip('<>')}, {_code(key.before)}\n  became {_code(key.after)}\n  {verdict}\n"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _words(key: Key) -> tuple[str, str, str, str]:
    return key.module, key.place, key.before, key.after
