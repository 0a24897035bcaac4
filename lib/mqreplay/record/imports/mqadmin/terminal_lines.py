"""The lines of a terminal's text as mqadmin printed them: without marks of quotes, colours and broken lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mqreplay.decode.terminal_escapes import ESCAPE

_ENDS = re.compile(r"\r*\n|\r")
_ESCAPES = re.compile(ESCAPE + r"|[\x00-\x08\x0b\x0c\x0e-\x1f]")
_QUOTE = re.compile(r"(?:\s{0,3}>)+(?: |$|(?=#))")
_CELLS = re.compile(r"\s*\|(?=\s)")
_RULE = re.compile(r"\s*\|?[\s:|+-]*-{3}[\s:|+-]*\|?\s*$")
_CONTINUED: Final = ("\\", "`", "^")
_NOISE = re.compile(
    r"[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} \|-(?:INFO|WARN|ERROR) |RocketMQLog:WARN|SLF4J:|OpenJDK 64-Bit Server VM|"
    r"Java HotSpot\(TM\)|Picked up \w*JAVA|WARNING: "
)
_FENCE = re.compile(r"\s*(?:```|~~~)")
_PROMPT = re.compile(
    r"(?:\(\S+\)\s+)?(?:"
    r"\[[^\]\s]*@[^\]]*\]\s*[$#%>]|"  # [root@host bin]#
    r"[\w.-]+@[\w.-]+[^$#%>]{0,80}[$#%>](?=\s|$)|"  # root@host:/opt#
    r"PS [A-Za-z]:[^>]*>|[A-Za-z]:\\[^>]*>|"
    r"(?:ba|z|k)?sh-[0-9.]+[$#]|"
    r"[~/][\w./~-]*\s[$#%](?=\s|$)|"
    r"[$%❯➜](?=\s|$)|"
    r"-?(?:ba|z|k|da)?sh: )"
)


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line; a command over several lines is one.

    >>> list(lines_of("> #Topic\\r> t  b\\r$ mqadmin topicStatus \\\\\\r> -t x"))
    [(1, '#Topic'), (2, 't  b'), (3, '$ mqadmin topicStatus  -t x')]
    """
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(_ENDS.split(text), 1):
        line = _plain(raw)
        if begun is not None:
            number, line = begun[0], f"{begun[1]} {line.lstrip()}"
            begun = None
        stripped = line.rstrip()
        if stripped.endswith(_CONTINUED) and "mqadmin" in stripped.lower():
            begun = number, stripped[:-1]
            continue
        yield number, line
    if begun is not None:
        yield begun


def is_noise(line: str) -> bool:
    """Return whether a line is a message of the JVM or a logger, which may be anywhere in an output."""
    return _NOISE.match(line.lstrip()) is not None


def is_prompt(line: str) -> bool:
    """Return whether a shell's prompt or message ends an output here, or a fence of Markdown does.

    >>> [is_prompt(text) for text in ("[root@h bin]# ls", "PS D:\\\\x> dir", "```", "-bash: x: command not found")]
    [True, True, True, True]
    >>> is_prompt("10.0.0.1@123#456  10.0.0.1:4321  JAVA  V4_9_7"), is_prompt("broker-a  0  0  631")
    (False, False)
    """
    return _FENCE.match(line) is not None or _PROMPT.match(line.lstrip()) is not None


def is_date_command(line: str) -> bool:
    """Return whether a line runs `date`, so that the next one is its output.

    >>> is_date_command("[root@h bin]# date"), is_date_command("$ date; sh mqadmin clusterList")
    (True, False)
    """
    return re.search(r"(?:^|[$#%>;]\s*)(?:date|Get-Date)(?:\s+[^;&|]*)?$", line.strip()) is not None


def _plain(raw: str) -> str:
    line = raw.replace("\ufeff", "").replace("\u00a0", " ").replace("\u3000", " ")
    if "\x1b" in line or not line.isprintable():
        line = _ESCAPES.sub("", line)
    if (quote := _QUOTE.match(line)) is not None:
        line = line[quote.end() :]
    if _CELLS.match(line):
        if _RULE.fullmatch(line):
            return ""
        line = re.sub(r"\s\|\s", "   ", re.sub(r"\|\s*$", "", _CELLS.sub(" ", line, count=1)))
    return line
