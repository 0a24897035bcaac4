"""The line below an answer that leads back to the page: its path exists, and the page has the place."""

from __future__ import annotations

import datetime as dt
import doctest
import html
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from mqreplay.answers import page_path as page_path_module
from mqreplay.answers.page_path import page_link, page_path
from mqreplay.cli.command_line import main
from mqreplay.report.data import Place

FIRST = dt.datetime(2026, 11, 21, 23, tzinfo=dt.UTC)
ORDERS = Place("group", "order-group")


def made(root: Path, cluster: str, hours: float = 2) -> str:
    """Write a page with a finding, a group, and the states of a night."""
    path = Path(page_path(str(root), cluster, "html"))
    path.parent.mkdir(exist_ok=True)
    states = f'{{"f":{round(FIRST.timestamp() * 1_000)},"n":{round(hours * 3_600_000)},"s":1}}'
    path.write_text(f'<p id="f-0123"><p id="group-order-group"><template id="states">{states}</template>')
    return str(path)


def test_a_folder_in_the_place_of_a_page_is_no_page(tmp_path: Path) -> None:
    Path(page_path(str(tmp_path), "orders", "html")).mkdir(parents=True)
    assert page_link(str(tmp_path), "orders") is None


def test_doctests() -> None:
    assert doctest.testmod(page_path_module).failed == 0


def test_a_link_names_the_first_place_that_the_page_has(tmp_path: Path) -> None:
    for cluster in ("orders", "index", "a b/../c"):
        path = made(tmp_path, cluster)
        assert Path(path).parent == tmp_path / "report"
        assert page_link(str(tmp_path), cluster) == path
        assert page_link(str(tmp_path), cluster, finding_id="0123") == f"{path}#f-0123"
        assert page_link(str(tmp_path), cluster, [Place("topic", "t"), ORDERS]) == f"{path}#group-order-group"


def test_what_the_page_does_not_show_has_no_link(tmp_path: Path) -> None:
    assert page_link(str(tmp_path), "orders") is None
    made(tmp_path, "orders")
    assert page_link(str(tmp_path), "orders", finding_id="9999") is None
    assert page_link(str(tmp_path), "orders", [Place("group", "order")]) is None
    assert page_link(str(tmp_path), "others", [ORDERS]) is None


@pytest.mark.parametrize(
    ("hours", "later", "fragment"),
    [
        (0.9, 0.5, "#t=23:30:00"),
        (2, 1.5, "#t=2026-11-22T00:30:00"),
        (2, 3, None),
        (2, -24, None),  # an earlier night, which the page does not draw
    ],
)
def test_the_cursor_goes_only_into_the_night_of_the_page(
    tmp_path: Path, hours: float, later: float, fragment: str | None
) -> None:
    path = made(tmp_path, "orders", hours)
    at = FIRST + dt.timedelta(hours=later)
    assert page_link(str(tmp_path), "orders", at=at) == (None if fragment is None else path + fragment)
    both = page_link(str(tmp_path), "orders", [ORDERS], at=at)
    assert both == f"{path}#group-order-group" + ("" if fragment is None else f"&{fragment[1:]}")


def commands(text: str) -> list[str]:
    """Return one command of each kind and option that the page offers."""
    shown = [
        html.unescape(re.sub("<[^>]+>", "", each)) for each in re.findall(r'<code class="command">(.*?)</code>', text)
    ]
    kinds = {tuple(word for word in each.split() if word.startswith("--") or word.isalpha()): each for each in shown}
    return list(kinds.values())


def test_commands_of_each_page_run_as_they_are_and_lead_back(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    used = set()
    for cluster in night.outcomes:
        page = Path(page_path(night.root, cluster, "html"))
        text = page.read_text(encoding="utf-8")
        for command in commands(text):
            arguments = shlex.split(command.replace("…", shlex.quote(night.root)))[1:]
            used.add(arguments[0])
            assert main(arguments) in ((0, 1) if arguments[0] == "ready" else (0,)), command
            path, _, fragment = capsys.readouterr().out.rstrip().splitlines()[-1].removeprefix("Page: ").partition("#")
            assert path == str(page), command
            assert all(each.startswith("t=") or f'id="{each}"' in text for each in fragment.split("&") if each), command
            assert fragment or arguments[0] == "whatif", command
    assert used == {"explain", "at", "whatif", "advise", "ready"}


def test_a_comparison_of_days_leads_to_the_page(night: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "2026-11-21", "2026-11-21", "--cluster", "DefaultCluster", "--warehouse", night.root]
    assert main(words) == 0
    page = page_path(night.root, "DefaultCluster", "html")
    assert capsys.readouterr().out.splitlines()[-1] == f"Page: {page}"
    assert main([*words, "--json"]) == 0
    assert "Page: " not in capsys.readouterr().out
