"""300 names that a recording can bring and that no printer may pass on as they are: payloads of each class, combined.

Classes: terminal escapes (ESC, OSC 52, C1), line breaks that begin a forged line, changes of direction, invisible
characters and lone surrogates, markup of rich, spreadsheet formulas, HTML, SQL and Spark's substitution, the shell,
JSON, and paths. Each payload is a name alone, behind a harmless beginning, and before a payload of another class.
"""

from __future__ import annotations

from itertools import chain, islice

COUNT = 300
FORGED = "mqreplay: nothing was found"
OWNED = "document.title='owned'"
CLASSES: dict[str, list[str]] = {
    "escape": [
        *("\x1b[31m", "\x1b]52;c;cm0=\x07", "\x1b]0;owned\x07", "\x1b[2J\x1b[H", "\x9b31m", "\x9d52;c;eA==\x9c"),
        *("\x90q\x9c", "\b\b\b\b", "\x7f", "a\x00b", "\x0e", "\x1b(0"),
    ],
    "line": [f"a{end}{FORGED}" for end in ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029")],
    "direction": [f"pay{mark}gro" for mark in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200e\u200f\u061c"],
    "invisible": [
        *(f"pa{c}y" for c in "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u00a0\u3000\U000e0041"),
        *("a\ud800", "\udcff", "\ufff9x", "\U000f0000"),
    ],
    "markup": [
        *(
            "[bold]",
            "[/]",
            "[/nothing]",
            "[link=file:///etc/passwd]x[/link]",
            "[red",
            "\\[bold]",
            "[@click=x]y",
            ":boom:",
        ),
    ],
    "formula": [
        *("=1+1", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", '=HYPERLINK("http://x","y")'),
        *("＝1+1", "＠SUM(1)", ' =1,"=2"', '"=1'),
    ],
    "html": [
        f"<script>{OWNED}</script>",
        f"<img src=x onerror={OWNED}>",
        f'"><svg onload="{OWNED}">',
        f"' onmouseover='{OWNED}",
        f"</title><script>{OWNED}</script>",
        f"</style><script>{OWNED}</script>",
        f"--><script>{OWNED}</script><!--",
        f"javascript:{OWNED}",
        "<base href='http://127.0.0.1:9/'>",
        "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
        "<link rel=stylesheet href=http://127.0.0.1:9/a.css>",
        "<iframe src=http://127.0.0.1:9/></iframe>",
        "<form action=http://127.0.0.1:9/><input autofocus>",
        "&lt;b&gt;&#x3c;b&#x3e;",
        "{{7*7}}{% raw %}",
        "<style>@import url(http://127.0.0.1:9/)</style>",
    ],
    "sql": [
        *("'; DROP TABLE gold.finding; --", "\\'", "\\", "`", '"', "${env:HOME}", "${spark.app.name}"),
        *("${system:user.home}", "{name}", ":name", "?", "/*", "--", "%s%n", "' OR '1'='1", "\\u0027", "''"),
    ],
    "shell": ["`id`", "$(id)", ";id", "|id", "&& id", "-rf", "--warehouse", "~root", "$HOME", "a b"],
    "json": ['{"a":1}', '\\"', "\\u0000", "NaN", "null", '","forged":"', "1e999"],
    "path": [
        *("../../etc/passwd", "/etc/passwd", "..", ".", ".hidden", "a/../b", "C:\\x", "a/b", "%2e%2e%2f", "x" * 300),
        *("", "é", "e\u0301", "日本", "%empty", "€", " ac", "a.", "file:///etc/passwd"),
    ],
}


def hostile_names() -> list[str]:
    """Return COUNT different names, always the same."""
    payloads = [(of, payload) for of, each in CLASSES.items() for payload in each]
    alone = (payload for _, payload in payloads)
    behind = (f"orders-{payload}" for _, payload in payloads)
    half = len(payloads) // 2
    pairs = (
        a + b for (of, a), (other, b) in zip(payloads, payloads[half:] + payloads[:half], strict=True) if of != other
    )
    return list(islice(dict.fromkeys(chain(alone, behind, pairs)), COUNT))
