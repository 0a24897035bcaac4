"""Everything about one gold table of decisions, in one record beside the function that decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from mqreplay.decode.kind import QUEUE_PHRASE

if TYPE_CHECKING:
    from collections.abc import Collection

    import polars as pl

    from mqreplay.decode.kind import Phrase
    from mqreplay.decode.recording.advice import Need

QUEUE_WORDS: Final = QUEUE_PHRASE
VERDICT_WORDS: Final = ("{judgement}: {reason}", "{judgement}")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Step(Generic[Result]):
    """A function that the replay of a day calls once, with frames for its parameters.

    A parameter gets the frame of its own name, or the one that ``renamed`` gives for it.
    """

    function: Callable[..., Result]
    renamed: Mapping[str, str]


def by_name(function: Callable[..., Result], **renamed: str) -> Step[Result]:
    """Return the step of a function; ``renamed`` are frames whose name is not that of their parameter."""
    return Step(function, renamed)


@dataclass(frozen=True)
class RowCount:
    """How the decisions of a table without judgements are counted: the rows of ``table``, or what ``number`` counts.

    Those with ``is_open`` are undetermined, for the ``reason``. ``decision`` names them in gold.replay_gap if the
    table's name does not.
    """

    table: str
    is_open: pl.Expr | None = None
    reason: pl.Expr | None = None
    number: pl.Expr | None = None
    decision: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One gold table of decisions.

    ``instant`` is the column of a row's instant; a row with ``until`` lasts until then. ``one`` and ``many`` name the
    decisions for a reader, and ``phrases`` say in words what a row shows. The report lists the tables in the order of
    ``importance``: 1 is the first. ``needs`` are the kinds of files without which nothing can be judged. Rows have the
    columns judgement and reason unless ``count`` is set.

    ``rows`` gives the rows, and ``steps`` other frames that it needs; several names are frames to append. Without
    ``rows``, tasks write the table. The judgements of the frame ``counted`` are counted, by default those of ``rows``.
    """

    table: str
    one: str
    many: str
    instant: str = ""
    importance: int = 100
    phrases: tuple[Phrase, ...] = ()
    until: str = ""
    needs: tuple[Need, ...] = ()
    count: RowCount | None = None
    rows: Step[pl.DataFrame] | tuple[str, ...] | None = None
    steps: Mapping[str, Step[Any] | tuple[str, ...]] = field(default_factory=dict)
    counted: str = ""

    @property
    def name(self) -> str:
        """The name of the decisions in gold.replay_gap and gold.judgement."""
        return self.count.decision if self.count is not None and self.count.decision else self.table

    def next_time(self, kind: str, recorded: Collection[str]) -> str:
        """Return the kind to record next time, so that rows are no longer undetermined for lack of ``kind``."""
        return next((need.next_time(recorded) for need in self.needs if need.kind == kind), kind)
