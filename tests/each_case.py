"""Many small cases as one test, which names every case that fails: an item of pytest for each would cost minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def for_each(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Return a decorator that makes one test of a check; a case that is a tuple is its arguments."""

    def decorated(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            failures, count = [], 0
            for case in cases:
                count += 1
                try:
                    check(*case) if type(case) is tuple else check(case)
                except Exception as failure:
                    failures.append(f"{str(case)[:200]}: {type(failure).__name__}: {failure}")
            assert count, "there is no case"
            assert not failures, f"{len(failures)} of {count} cases fail:\n" + "\n".join(failures)

        test.__doc__ = check.__doc__
        return test

    return decorated
