"""How often findings of each kind were right on recorded nights with known faults: docs/development/accuracy.md.

A finding is right if a fault of its night must give it, or if it follows from one that is. All others of nights with
known faults are wrong, but for notes (info): nobody wrote down what every night should note.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from mqreplay.findings.registry import SHIPPED
from night.made_nights import DATA, findings_of_fault, judged_night, truth_of

PAGE = Path(__file__).parents[2] / "docs" / "development" / "accuracy.md"
NIGHTS = sorted(
    path.name.removesuffix(".truth.json")
    for path in DATA.glob("*.truth.json")
    if "faults" in truth_of(path.name.removesuffix(".truth.json"))
)
FEW, MOST_OF_FEW = 3, 0.9  # with fewer right findings than FEW, a kind may state so much at most


@dataclass
class Counts:
    """Findings of one kind, faults that it missed, and the nights that have the kind."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    nights: set[str] = field(default_factory=set)

    @property
    def most(self) -> float:
        """The most that the kind may state as its confidence."""
        if not self.right + self.wrong:
            return MOST_OF_FEW
        share = self.right / (self.right + self.wrong)
        return share if self.right >= FEW else min(share, MOST_OF_FEW)


def counted() -> dict[str, Counts]:
    """Return the counts of each kind, by its name."""
    counts: dict[str, Counts] = defaultdict(Counts)
    for name in NIGHTS:
        findings, right = judged_night(name).findings, set()
        for fault in truth_of(name)["faults"]:
            if "finding" in fault:
                met = {finding["finding_id"] for finding in findings_of_fault(fault, findings)}
                right |= met
                counts[fault["finding"]["kinds"][0]].missed += not met
        for finding in findings:
            of_kind = counts[finding["kind"]]
            if finding["finding_id"] in right or finding["follows_from"] in right:
                of_kind.right += 1
            elif finding["severity"] != "info":
                of_kind.wrong += 1
            else:
                continue
            of_kind.nights.add(name)
    return counts


def page() -> str:
    """Return the page of the documentation."""
    counts = counted()
    rows = [
        f"| {kind} | {len(of.nights)} | {of.right} | {of.wrong} | {of.missed} | {SHIPPED[kind].confidence:.0%} |"
        for kind, of in sorted(counts.items())
        if of.nights or of.missed
    ]
    unseen = sorted(kind for kind in SHIPPED if not counts[kind].nights)
    sums = [sum(getattr(of, name) for of in counts.values()) for name in ("right", "wrong", "missed")]
    return "\n".join(
        [
            "# Accuracy",
            "",
            f"{len(NIGHTS)} recorded nights of real clusters (4.9.7, 5.3.3 and 5.5.0) have a list of the faults"
            " that were injected and of the finding that each must give, with its kind, severity, place and time. A"
            " finding is right if a fault must give it, or if it follows from one that is right; any other warning or"
            " critical finding is wrong. Notes (info) that follow from nothing are not counted. The rules were written"
            " with these nights at hand: nights of other clusters may give less.",
            "",
            "No kind states a higher confidence than its share of right findings; with fewer than"
            f" {FEW} right ones, it states at most {MOST_OF_FEW:.0%}.",
            "",
            f"In all: {sums[0]} right, {sums[1]} wrong, {sums[2]} faults missed. `make accuracy` counts again.",
            "",
            "| kind | nights | right | wrong | missed | stated confidence, at most |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            f"No night with a list has these: {', '.join(unseen)}. They have tests of single rules.",
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
