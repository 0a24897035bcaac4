"""What a change costs: CPU seconds of nights by this tree and by an earlier commit, in turns: `make bench-check`.

`python tools/bench/check.py [COMMIT] [--nights sample,S] [--engine local|spark] [--runs 5]`; COMMIT is the last tag if
none is named. Each night is a process of its own and starts from nothing. A line of each night has the medians and
their ratio: a busy machine disturbs both trees alike. It is a report: the exit status is 0 for any ratio.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from estate.write import write_estate
from peers.usage import watched

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ("data/sample/orders-4.9.7", "data/sample/bulk-5.3.3")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="any name of git; the last tag by default")
    parser.add_argument("--nights", default="sample,S", help="of sample, XS, S, M and L, by commas")
    parser.add_argument("--engine", default="local", choices=("local", "spark"))
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    commit = given.commit or last_tag()
    if commit is None:
        print("no tag to compare with: name a commit")
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        trees = {commit: checkout(commit, folder / "before"), "this tree": ROOT}
        for night in given.nights.split(","):
            paths = recordings(night, folder)
            measured = in_turns(trees, given.runs, lambda tree, paths=paths: cpu_of(tree, paths, folder, given.engine))
            print(line(night, measured), flush=True)


def last_tag() -> str | None:
    """Return the tag that is nearest to this commit; None without tags."""
    asked = ["git", "describe", "--tags", "--abbrev=0"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def checkout(commit: str, folder: Path) -> Path:
    """Return a folder with the files of a commit. Raises CalledProcessError for a commit that git does not know."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def recordings(night: str, folder: Path) -> Sequence[str]:
    """Return the recordings of a night; a made-up estate is written below ``folder``."""
    if night == "sample":
        return [str(ROOT / name) for name in SAMPLE]
    write_estate(night, 1, folder / night)
    return [str(folder / night)]


def cpu_of(tree: Path, paths: Sequence[str], folder: Path, engine: str) -> float:
    """Return the CPU seconds of one night, by the code of a tree. Raises SystemExit if it fails."""
    search = os.pathsep.join([str(tree / "lib"), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(dir=folder) as warehouse:
        command = [sys.executable, "-m", "mqreplay", "nightly", *paths, "--warehouse", warehouse, "--engine", engine]
        done, used = watched(["env", f"PYTHONPATH={search}", *command], cwd=tree)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the night of {tree} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return used["CPU s"]


def in_turns(trees: Mapping[str, Path], runs: int, measure: Callable[[Path], float]) -> Mapping[str, Sequence[float]]:
    """Return the figures of each tree; every other turn begins with the other tree."""
    found: dict[str, list[float]] = defaultdict(list)
    for turn in range(runs):
        for name in list(trees)[:: -1 if turn % 2 else 1]:
            found[name].append(measure(trees[name]))
    return {name: found[name] for name in trees}


def line(night: str, measured: Mapping[str, Sequence[float]]) -> str:
    """Return a night's medians of both trees, and the second's as a ratio of the first's.

    >>> line("S", {"v1": [4.0, 5.0, 9.0], "this tree": [4.0, 4.5, 4.4]})
    'S: v1 5.0 CPU s, this tree 4.4 CPU s: 0.88'
    """
    medians = {name: statistics.median(figures) for name, figures in measured.items()}
    before, now = medians.values()
    texts = ", ".join(f"{name} {figure:.1f} CPU s" for name, figure in medians.items())
    return f"{night}: {texts}: {now / before:.2f}"


if __name__ == "__main__":
    main()
