"""File names made from names in a recording."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

LONGEST = 200  # characters; file systems take 255 bytes, and a suffix follows
EMPTY = "%empty"


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
    if len(encoded) > LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        encoded = f"{encoded[: LONGEST - len(digest) - 2]}%~{digest}"
    return encoded or EMPTY
