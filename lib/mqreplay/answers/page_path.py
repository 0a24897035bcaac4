"""The files of report/, and the place on a cluster's page that an answer is about."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from mqreplay.lake.files import files_of, joined
from mqreplay.moment.instant import WATCH
from mqreplay.report.data import Place, anchor, finding_anchor

INDEX: Final = "index"
NIGHT: Final = re.compile(rb'<template id="states">\{"f":(\d+),"n":(\d+),')  # see report/cursor_states.py
LONGEST_FILE_NAME = 200  # characters; file systems take 255 bytes, and a suffix follows
EMPTY = "%empty"


def index_path(root: str, suffix: str) -> str:
    """Return the path of a file about all clusters."""
    return joined(root, "report", f"{INDEX}.{suffix}")


def page_path(root: str, cluster: str, suffix: str) -> str:
    """Return the path of a file about a cluster, beside the overview."""
    return joined(root, "report", f"{page_name(cluster)}.{suffix}")


def watch_path(root: str, cluster: str) -> str:
    """Return the path of the page of the last minutes that `nightly --watch` has judged."""
    return joined(root, "report", WATCH, f"{page_name(cluster)}.html")


def page_name(cluster: str) -> str:
    """Return the name of a cluster's files; never that of the overview.

    >>> page_name("orders"), page_name("index")
    ('orders', '%69ndex')
    """
    name = file_name(cluster)
    return name if name != INDEX else f"%{ord(INDEX[0]):x}{INDEX[1:]}"


def page_link(
    root: str,
    cluster: str,
    places: Iterable[Place] = (),
    finding_id: str | None = None,
    at: dt.datetime | None = None,
) -> str | None:
    """Return the path of a cluster's page, at the finding or else the first of ``places`` that it shows.

    ``at``: where its cursor goes. None if there is no page, or it shows nothing of what is asked.
    """
    asked = [] if finding_id is None else [finding_anchor(finding_id)]
    asked += [anchor(place) for place in places]
    pages = (page_path(root, cluster, "html"), watch_path(root, cluster))
    return next((link for path in pages if (link := _link(path, asked, at)) is not None), None)


def _link(path: str, asked: list[str], at: dt.datetime | None) -> str | None:
    files = files_of(path)
    if files.info(path) is None:
        return None
    try:
        html = files.read(path)
    except IsADirectoryError:  # nightly says so when it writes the page
        return None
    fragment = [each for each in asked if f'id="{each}"'.encode() in html][:1]
    if at is not None and (moment := _moment(html, at)) is not None:
        fragment.append(f"t={moment}")
    if fragment:
        return f"{path}#{'&'.join(fragment)}"
    return None if asked or at is not None else path


def overview_link(root: str) -> str | None:
    """Return the path of the overview of all clusters; None if there is none."""
    path = index_path(root, "html")
    return None if files_of(path).info(path) is None else path


def _moment(html: bytes, at: dt.datetime) -> str | None:
    """Return an instant as the page's cursor takes it; None outside of the night that the page shows."""
    found = NIGHT.search(html)
    if found is None:
        return None
    first = dt.datetime.fromtimestamp(int(found[1]) / 1_000, dt.UTC)
    last = first + dt.timedelta(milliseconds=int(found[2]))
    if not first <= at <= last:
        return None
    return f"{at:%H:%M:%S}" if first.date() == last.date() else f"{at:%Y-%m-%dT%H:%M:%S}"


def file_name(name: str) -> str:
    """Return a file name for ``name``: ASCII only, without a folder, not hidden, different for different names.

    Everything but letters, digits, ``-``, ``_``, ``.`` and ``~`` becomes %XX for each byte of its UTF-8. A long name is
    cut, and the digest of the whole follows. Encoded names have two hex digits after each ``%``, so neither the word
    for an empty name nor a digest can be another name's.

    >>> file_name("DefaultCluster"), file_name("../etc/passwd"), file_name("a b\\u20ac")
    ('DefaultCluster', '%2E.%2Fetc%2Fpasswd', 'a%20b%E2%82%AC')
    >>> file_name(""), len(file_name("x" * 300))
    ('%empty', 200)
    """
    encoded = quote(name, safe="", errors="surrogatepass")
    if encoded.startswith("."):
        encoded = f"%2E{encoded[1:]}"
    if len(encoded) > LONGEST_FILE_NAME:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        encoded = f"{encoded[: LONGEST_FILE_NAME - len(digest) - 2]}%~{digest}"
    return encoded or EMPTY
