"""The site of docs/ is built without a broken link, and its search knows every page."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from docs import site_hooks
from docs.pages import ROOT
from docs.site_hooks import TOP_PAGES

DOCS = ROOT / "docs"
PAGES = [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]


@pytest.fixture(autouse=True)
def _without_advertisement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")


def site(folder: Path, docs: Path = DOCS) -> Path:
    """Return the folder of the site, which is built below ``folder``. Raises Abort for a broken link."""
    build(load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(folder / "site")))
    return folder / "site"


@pytest.mark.long
def test_search_knows_every_page(tmp_path: Path) -> None:
    made = site(tmp_path)
    found = json.loads((made / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    pages = {entry["location"].partition("#")[0] for entry in found}
    for page in (*PAGES, *TOP_PAGES.values()):
        assert f"{page.removesuffix('.md')}.html" in pages
    tables = [entry for entry in found if entry["location"] == "tables.html#goldfinding"]
    assert "follows_from" in tables[0]["text"]
    assert (made / "notebook.ipynb").read_bytes() == (DOCS / "notebook.ipynb").read_bytes()
    assert 'href="../tutorial.html"' in (made / "project" / "about.html").read_text(encoding="utf-8")
    # A page may be read where there is no network.
    page = (made / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'<(?:link|script|img)[^>]*(?:href|src)="(?:https?:)?//', page)


def test_each_broken_link_and_each_page_without_a_place_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tables.md").write_text("# Tables\n", encoding="utf-8")
    index = docs / "index.md"
    index.write_text("# Documentation\n\n[a](tables.md)\n", encoding="utf-8")
    config = {"docs_dir": str(docs), "site_dir": str(tmp_path / "site"), "nav": ["index.md", "tables.md"], "hooks": []}
    build(load_config(str(ROOT / "mkdocs.yml"), **config))
    (docs / "new.md").write_text("# New\n", encoding="utf-8")
    broken = ("nowhere.md", "tables.md#no-such-table", "../conf/none.toml")
    links = "\n".join(f"[a]({link})" for link in broken)
    index.write_text(f"# Documentation\n\n{links}\n", encoding="utf-8")
    with pytest.raises(Abort):
        build(load_config(str(ROOT / "mkdocs.yml"), **config))
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    for wrong in (*broken, "new.md"):
        assert any(wrong in line for line in warned), (wrong, warned)


def test_links_between_docs_and_the_top_folder() -> None:
    assert doctest.testmod(site_hooks)[:2] == (0, 2)


def test_every_design_decision_is_in_the_index() -> None:
    index = (DOCS / "adr" / "index.md").read_text(encoding="utf-8")
    rows = [tuple(row) for row in re.findall(r"^\| (\d+) \| \[(.*)\]\((\S+)\) \|$", index, re.MULTILINE)]
    titles = []
    for page in sorted((DOCS / "adr").glob("0*.md")):
        number, _, title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(". ")
        titles.append((number, title, page.name))
    assert rows == titles
