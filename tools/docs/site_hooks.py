"""What mkdocs.yml needs beside docs/: the pages of the top folder (README.md and others), and links to them.

In the repository these pages and docs/ link to each other by their paths. The site has docs/ alone as its root.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# Page of the top folder -> page of the site. README.md would be taken for the index of its folder.
TOP_PAGES = {
    "README.md": "project/about.md",
    "README.zh.md": "project/about.zh.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
}
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the top folder."""
    for name, place in TOP_PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links between docs/ and the top folder lead to the pages of the site."""
    return links_of_site(markdown, page.file.src_uri)


def links_of_site(markdown: str, page: str) -> str:
    """Return the text of a page with links as the site needs them.

    >>> links_of_site("[a](../README.md), [b](tables.md#rows), [c](../conf)", "index.md")
    '[a](project/about.md), [b](tables.md#rows), [c](../conf)'
    >>> links_of_site("[a](docs/tables.md), [b](SECURITY.md)", "project/about.md")
    '[a](../tables.md), [b](security.md)'
    """
    folder = posixpath.dirname(page)
    # Where the page is in the repository.
    source = "" if page in TOP_PAGES.values() else posixpath.join("docs", folder)

    def replace(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(source, link[1]))
        if target in TOP_PAGES:
            place = TOP_PAGES[target]
        elif target.startswith("docs/"):
            place = target.removeprefix("docs/")
        else:
            return link[0]
        return f"]({posixpath.relpath(place, folder or '.')}"

    return LINK.sub(replace, markdown)
